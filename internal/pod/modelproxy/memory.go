// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

const (
	// small is how large most requests are at the most, in bytes. Each connection may hold as much without waiting, and what has held it is kept
	// for the next request.
	small = 1 << 20
	// spare is room for the words of the supervisor in a large request, in bytes.
	spare = 64 << 10
	// maxLarge bounds the memory of all larger requests, in bytes: one of the largest, as it came and as it is sent on, or several others.
	// With the small ones, requests hold 2 * maxConnections * small + maxLarge = 192 MiB at the most.
	maxLarge = 2 * (dialect.MaxBody + spare)
)

var (
	errTooLarge = errors.New("the request is too large")
	errNoRoom   = errors.New("other requests hold all memory for large ones")
)

// buffers are the memory of requests that are heard.
type buffers struct {
	pool  sync.Pool
	large *semaphore.Weighted
}

func newBuffers() *buffers { return &buffers{large: semaphore.NewWeighted(maxLarge)} }

// memory of a request that is heard: as it came, and as it is sent on. Requests of agents are large and grow by a little each time: new memory for
// each would cost more than to hear it.
type memory struct {
	buffers    *buffers
	body, room []byte
	// large is the share of buffers.large that this request holds, in bytes.
	large int64

	mu sync.Mutex
	// rest of the body that has yet to be sent on.
	rest  []byte
	given bool
}

// take memory for a request. It has to be given back.
func (b *buffers) take() *memory {
	if m, ok := b.pool.Get().(*memory); ok {
		return m
	}
	return &memory{buffers: b}
}

// give memory back. What is sent on has been read, or is not read any more. Later calls do nothing.
func (m *memory) give() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.given {
		return
	}
	m.given, m.rest = true, nil
	m.buffers.large.Release(m.large)
	if m.large == 0 {
		m.buffers.pool.Put(&memory{buffers: m.buffers, body: m.body[:0], room: m.room[:0]})
	}
	m.body, m.room = nil, nil
}

// fill reads all of a request. Size is its length in bytes, or less than 0 if the client does not give it. A large request waits for memory
// until the context ends.
func (m *memory) fill(ctx context.Context, r io.Reader, size int64) error {
	if size > dialect.MaxBody {
		return errTooLarge
	}
	if err := m.grow(ctx, max(int(size), 0)+bytes.MinRead); err != nil {
		return err
	}
	for {
		if len(m.body) == cap(m.body) {
			if err := m.grow(ctx, 2*cap(m.body)); err != nil {
				return err
			}
		}
		n, err := r.Read(m.body[len(m.body):cap(m.body)])
		m.body = m.body[:len(m.body)+n]
		if len(m.body) > dialect.MaxBody {
			return errTooLarge
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the request: %w", err)
		}
	}
}

// grow the buffers to size bytes. A large request of unknown size gets the memory of the largest, so that it waits once.
func (m *memory) grow(ctx context.Context, size int) error {
	switch {
	case size <= cap(m.body):
		return nil
	case size <= small:
		size = min(size+size/4, small) // room for later requests of the same conversation
	default:
		if len(m.body) > 0 {
			size = dialect.MaxBody
		}
		size = min(size, dialect.MaxBody) + spare
		if err := m.buffers.large.Acquire(ctx, int64(2*size)); err != nil {
			return errNoRoom
		}
		m.large = int64(2 * size)
	}
	m.body, m.room = append(make([]byte, 0, size), m.body...), make([]byte, 0, size)
	return nil
}

// lend a text to who sends it on. When it has been read to its end, the memory is given back: the call may last for long after that.
func (m *memory) lend(text []byte) io.Reader {
	m.rest = text
	return (*lent)(m)
}

// lent is memory that is sent on. The way to the gateway may want to read on when the call has ended: it gets nothing then.
type lent memory

// Read implements io.Reader.
func (l *lent) Read(p []byte) (int, error) {
	l.mu.Lock()
	if len(l.rest) == 0 {
		l.mu.Unlock()
		return 0, io.EOF
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	read := len(l.rest) == 0
	l.mu.Unlock()
	if read {
		(*memory)(l).give()
	}
	return n, nil
}
