// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"io"
	"strings"
	"testing"
)

// TestMemoryIsGivenBack: the way to the gateway that still sends on a request whose call has ended gets nothing of the next one.
func TestMemoryIsGivenBack(t *testing.T) {
	var b buffers
	m := b.take(-1)
	first, err := m.read(strings.NewReader("the first request"))
	if err != nil {
		t.Fatal(err)
	}
	sent := m.lend(first)
	if head, err := io.ReadAll(io.LimitReader(sent, 9)); string(head) != "the first" || err != nil {
		t.Errorf("%q, %v", head, err)
	}
	b.give(m)
	next := b.take(18)
	if _, err := next.read(strings.NewReader("the second request")); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(sent); len(rest) > 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	if text, err := io.ReadAll(next.lend([]byte("the second request"))); string(text) != "the second request" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
