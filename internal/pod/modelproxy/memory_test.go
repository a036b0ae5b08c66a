// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// fill memory with a text, as one that says how long it is, or not.
func fill(t *testing.T, b *buffers, text string, known bool) *memory {
	t.Helper()
	size := int64(-1)
	if known {
		size = int64(len(text))
	}
	m := b.take()
	if err := m.fill(t.Context(), strings.NewReader(text), size); err != nil || string(m.body) != text {
		t.Fatalf("%d bytes of %d, %v", len(m.body), len(text), err)
	}
	return m
}

// TestFill reads requests of each size whole, bounds what they hold, and gives all of it back.
func TestFill(t *testing.T) {
	b := newBuffers()
	for _, known := range []bool{true, false} {
		for _, n := range []int{0, 1, 511, 512, 640, small - bytes.MinRead, small - 1, small, small + 1, 5 << 20, dialect.MaxBody - 1, dialect.MaxBody} {
			m := fill(t, b, strings.Repeat("x", n), known)
			if held := int64(cap(m.body) + cap(m.room)); held > max(2*small, m.large) || cap(m.room) < n {
				t.Errorf("a request of %d bytes holds %d, and %d of the memory for large ones", n, held, m.large)
			}
			m.give()
		}
	}
	if !b.large.TryAcquire(maxLarge) {
		t.Fatal("not all is given back")
	}
	m, ctx := b.take(), t.Context()
	if err := m.fill(ctx, strings.NewReader(""), dialect.MaxBody+1); !errors.Is(err, errTooLarge) {
		t.Errorf("it says that it is too large: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := m.fill(ended, strings.NewReader(""), 2<<20); !errors.Is(err, errNoRoom) {
		t.Errorf("without room: %v", err)
	}
	if err := m.fill(ctx, iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("some"))), -1); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a reader that fails: %v", err)
	}
	m.give()
	b.large.Release(maxLarge)
	m = b.take()
	defer m.give()
	if err := m.fill(ctx, strings.NewReader(strings.Repeat("x", dialect.MaxBody+1)), -1); !errors.Is(err, errTooLarge) {
		t.Errorf("it is too large: %v", err)
	}
}

// TestMemoryIsGivenBack when a request has been sent on, and when its call has ended before: the way to the gateway that still sends it on gets
// nothing of the next one.
func TestMemoryIsGivenBack(t *testing.T) {
	b := newBuffers()
	m := fill(t, b, strings.Repeat("x", 2<<20), true)
	sent := m.lend(m.body)
	if _, err := io.CopyN(io.Discard, sent, 2<<20); err != nil {
		t.Fatal(err)
	}
	if !b.large.TryAcquire(maxLarge) {
		t.Error("it was sent on, and still holds memory")
	}
	b.large.Release(maxLarge)
	m.give() // at the end of the call, which holds nothing any more
	m = fill(t, b, "the first request", false)
	sent = m.lend(m.body)
	if head, err := io.ReadAll(io.LimitReader(sent, 9)); string(head) != "the first" || err != nil {
		t.Errorf("%q, %v", head, err)
	}
	m.give()
	next := fill(t, b, "the second request", true)
	if rest, err := io.ReadAll(sent); len(rest) > 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	if text, err := io.ReadAll(next.lend(next.body)); string(text) != "the second request" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
