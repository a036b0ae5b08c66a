// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestAVolumeOfALaterVersion: a version that finds a record whose kind it does not know says so, and leaves the volume as it is.
func TestAVolumeOfALaterVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "echo good > web/good.html", seldom)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	records, _ := w.recorded()
	last := records[len(records)-1]
	body := fmt.Sprintf(`{"version":1,"time":"2027-01-01T00:00:00Z","previous":%q,"dance":{}}`, last.Sum)
	sum := sha256.Sum256([]byte(body))
	path := filepath.Join(w.paths.Trusted, "journal.jsonl")
	journal, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := journal.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(journal, "%s,\"sum\":\"%s\"}\n", body[:len(body)-1], hex.EncodeToString(sum[:])); err != nil {
		t.Fatal(err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}

	before := w.sums(w.paths.Trusted)
	ended := make(chan error, 1)
	go func() { ended <- w.prepare(2) }()
	w.eventually("the fault is told", func() bool {
		unheard, err := filepath.Glob(filepath.Join(w.paths.Trusted, "spool/*.report.json")) // the answer to the report may be under way
		return err == nil && len(unheard) == 0 && w.intake.Status().Fault != nil
	})
	if got := w.intake.Status().Fault; got.Reason != protocol.ReasonVolumeVersionUnsupported {
		t.Errorf("fault %+v, want the reason %s", got, protocol.ReasonVolumeVersionUnsupported)
	}
	after := w.sums(w.paths.Trusted)
	for _, own := range []string{"epoch", "spool/acknowledged.json"} { // the attempt has claimed the volume, and knows which reports have arrived
		delete(before, own)
		delete(after, own)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the volume has changed (-before +after):\n%s", diff)
	}
	if err := os.Truncate(path, whole.Size()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("prepare without the record: %v", err)
	}
}

// sums of all files below a directory.
func (w *world) sums(dir string) map[string]string {
	w.t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum, name := sha256.Sum256(data), path[len(dir)+1:]
		sums[name] = hex.EncodeToString(sum[:])
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return sums
}
