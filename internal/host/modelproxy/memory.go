// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"bytes"
	"io"
	"sync"
)

// maxPooled bounds what is kept of a request's memory for another one, in bytes. Most requests are smaller.
const maxPooled = 1 << 20

// memory of a request that is heard: as it came, and as it is sent on. Requests of agents are large and grow by a little each time: new memory for
// each would cost more than to hear it.
type memory struct {
	body, room []byte
	// lent is the body as it is sent on, from here.
	lent lent
}

// buffers are the memory of requests that have ended.
type buffers struct{ pool sync.Pool }

// take memory for a request of so many bytes; less than 0 where that is not known.
func (b *buffers) take(size int64) *memory {
	m, ok := b.pool.Get().(*memory)
	if !ok {
		m = &memory{}
	}
	if n := int(max(size, 0)) + bytes.MinRead; cap(m.body) < n {
		if n < maxPooled {
			n += n / 4 // for those that follow
		}
		m.body, m.room = make([]byte, 0, n), make([]byte, 0, n)
	}
	return m
}

// give memory back. What is sent on has been read, or is not read any more.
func (b *buffers) give(m *memory) {
	m.lent.end()
	if cap(m.body) <= maxPooled {
		b.pool.Put(&memory{body: m.body[:0], room: m.room[:0]})
	}
}

// read all of a request.
func (m *memory) read(r io.Reader) ([]byte, error) {
	in := bytes.NewBuffer(m.body[:0])
	_, err := in.ReadFrom(r)
	m.body = in.Bytes()
	return m.body, err
}

// lend a text to who sends it on.
func (m *memory) lend(text []byte) io.Reader {
	m.lent.rest = text
	return &m.lent
}

// lent is a text in memory that is given back when the call has ended. The way to the gateway may want to read on: it gets nothing then.
type lent struct {
	mu   sync.Mutex
	rest []byte
}

// Read implements io.Reader.
func (l *lent) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *lent) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = nil
}
