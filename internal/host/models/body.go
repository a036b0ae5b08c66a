// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// read the body.
func (c *call) read() *failure {
	size := c.r.ContentLength
	if size > MaxBody {
		return tooLarge()
	}
	if size < 0 {
		size = MaxBody
	}
	encoding := c.r.Header.Get("Content-Encoding")
	if compressed(encoding) {
		size = MaxBody // nobody knows before it is read
	}
	size = 2*size + int64(len(c.caller.Prefix)) // as it came, and as it is sent on
	if err := c.server.memory.Acquire(c.r.Context(), size); err != nil {
		return fail(http.StatusServiceUnavailable, reasonGone, err, "the call was given up")
	}
	free := sync.OnceFunc(func() { c.server.memory.Release(size) })
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(bodyTime)) // where there is none, the server's own ends it
	body := make([]byte, 0, max(c.r.ContentLength, 4<<10)+1)
	in, err := decompressed(encoding, http.MaxBytesReader(c.w, c.r.Body, MaxBody))
	if err == nil {
		body, err = appendAll(body, in)
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	if err != nil {
		free()
		if _, large := errors.AsType[*http.MaxBytesError](err); large || errors.Is(err, errExpands) {
			return tooLarge()
		}
		if errors.Is(err, errEncoding) {
			return fail(http.StatusUnsupportedMediaType, reasonInvalid, nil, "a request in Content-Encoding %q is not read: send it as it is, or in gzip or zstd", encoding)
		}
		return fail(http.StatusBadRequest, reasonInvalid, err, "the request could not be read")
	}
	c.record.Sent = int64(len(body))
	if c.request, err = c.dialect.ReadRequest(body); err != nil {
		free()
		return fail(http.StatusBadRequest, reasonInvalid, nil, "%v", err)
	}
	c.free = free
	return nil
}

func tooLarge() *failure {
	return fail(http.StatusRequestEntityTooLarge, reasonTooLarge, nil, "the request has more than %d bytes", MaxBody)
}

// appendAll reads to the end, into a buffer that is large enough where the size is known.
func appendAll(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}
