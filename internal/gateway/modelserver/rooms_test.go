// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"testing"
)

func TestRooms(t *testing.T) {
	for _, tc := range []struct{ n, size int }{{0, roomStep}, {1, roomStep}, {roomStep, roomStep}, {roomStep + 1, 2 * roomStep}, {mostRoom, mostRoom}, {mostRoom + 1, mostRoom + 1}} {
		if size := roomSize(tc.n); size != tc.size {
			t.Errorf("a buffer for %d bytes has %d, want %d", tc.n, size, tc.size)
		}
		b := room(roomSize(tc.n))
		if len(b) != 0 || cap(b) != tc.size {
			t.Errorf("a buffer for %d bytes has %d of %d, want 0 of %d", tc.n, len(b), cap(b), tc.size)
		}
		free(b)
	}
	free(make([]byte, 0, 100)) // none that room gives
	if b := room(roomStep); cap(b) != roomStep {
		t.Errorf("a buffer of %d bytes, want %d", cap(b), roomStep)
	}
}

// TestBodyOnItsWay: a buffer that a transport may still read is not used again.
func TestBodyOnItsWay(t *testing.T) {
	c := &call{came: room(roomStep)}
	first, second := c.sending.body([]byte("words")), c.sending.body([]byte("words"))
	if text, err := io.ReadAll(first); err != nil || string(text) != "words" {
		t.Errorf("%q, %v", text, err)
	}
	for range 2 { // which counts once
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed body: %v, want %v", err, fs.ErrClosed)
	}
	if n := c.sending.bodies.Load(); n != 1 {
		t.Fatalf("%d bodies are on their way, want 1", n)
	}
	buffer := c.came
	c.sending.vacate(&c.came)
	if other := room(roomStep); &other[:1][0] == &buffer[:1][0] {
		t.Error("a buffer of a body on its way is used again")
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if n := c.sending.bodies.Load(); n != 0 || c.came != nil {
		t.Errorf("%d bodies are on their way, want 0; the call has a buffer: %t", n, c.came != nil)
	}
	if c.sending.body(nil) != http.NoBody {
		t.Error("a request without a body has one")
	}
}
