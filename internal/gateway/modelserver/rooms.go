// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"sync"
	"sync/atomic"
)

// Buffers that calls use one after the other. Their sizes are multiples of roomStep up to mostRoom; a larger one is not kept.
const roomStep, mostRoom = 32 << 10, 1 << 20

// rooms are free buffers, by their size. The garbage collector takes unused ones.
var rooms [mostRoom/roomStep + 1]sync.Pool

// roomSize is the size of a buffer for the given bytes.
func roomSize(n int) int {
	if n > mostRoom {
		return n
	}
	return max(1, (n+roomStep-1)/roomStep) * roomStep
}

// room is an empty buffer of such a size.
func room(size int) []byte {
	if size <= mostRoom && size%roomStep == 0 {
		if b, is := rooms[size/roomStep].Get().(*[]byte); is {
			return *b
		}
	}
	return make([]byte, 0, size)
}

// free a buffer that nobody reads or writes any more.
func free(b []byte) {
	if size := cap(b); 0 < size && size <= mostRoom && size%roomStep == 0 {
		b = b[:0]
		rooms[size/roomStep].Put(&b)
	}
}

// sending counts the bodies that are on their way to backends.
type sending struct{ bodies atomic.Int32 }

// body of a request. A transport may read it after the answer has come, until it closes it.
func (s *sending) body(b []byte) io.ReadCloser {
	if len(b) == 0 {
		return http.NoBody
	}
	s.bodies.Add(1)
	return &sent{of: s, rest: bytes.NewReader(b)}
}

// sent is a body that is being sent.
type sent struct {
	of *sending

	mu   sync.Mutex
	rest *bytes.Reader // nil when it is closed
}

// Read implements io.Reader.
func (s *sent) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rest == nil {
		return 0, fs.ErrClosed
	}
	return s.rest.Read(p)
}

// Close implements io.Closer. Nothing is read afterwards.
func (s *sent) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rest != nil {
		s.rest = nil
		s.of.bodies.Add(-1)
	}
	return nil
}

// vacate a buffer. One that a transport may still read is left to the garbage collector.
func (s *sending) vacate(b *[]byte) {
	if s.bodies.Load() == 0 {
		free(*b)
	}
	*b = nil
}
