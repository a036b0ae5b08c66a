// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// TestAJournalThatIsBeingRead may have checkpoints that the gateway lacks: an attempt that ends meanwhile waits for them.
func TestAJournalThatIsBeingRead(t *testing.T) {
	q := newQueue(trusted.Dir(t.TempDir()), mark{})
	reading, read := make(chan struct{}), make(chan struct{})
	q.read = func(trusted.Dir, mark) ([]entry, bool, error) {
		close(reading)
		<-read
		return []entry{{sequence: 1}}, false, nil
	}
	got := make(chan entry, 1)
	go func() {
		e, _, _ := q.next()
		got <- e
	}()
	<-reading
	if waiting, _ := q.waiting(); !waiting {
		t.Error("nothing waits while the journal is read")
	}
	close(read)
	if e := <-got; e.sequence != 1 {
		t.Errorf("read %+v", e)
	}
	if err := q.taken(entry{sequence: 1}); err != nil {
		t.Fatal(err)
	}
	if waiting, known := q.waiting(); waiting || known > 0 {
		t.Errorf("%d wait in the end", known)
	}
}
