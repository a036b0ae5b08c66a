// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// read the body. Memory is taken for what has arrived. A body that makes no progress ends.
func (c *call) read() *failure {
	if t := c.r.Header.Get("Content-Type"); !plainText(t) {
		return fail(http.StatusUnsupportedMediaType, reasonInvalid, nil, "a request of the type %.100q is not read: send UTF-8", t)
	}
	// The watchdog has read the same bytes. Whoever compresses them has gone around it.
	if encoding := c.r.Header.Get("Content-Encoding"); compressed(encoding) {
		return fail(http.StatusUnsupportedMediaType, reasonInvalid, nil, "a request in Content-Encoding %.100q is not read: send it without one", encoding)
	}
	if c.r.ContentLength > dialect.MaxBody {
		return tooLarge()
	}
	most := dialect.MaxBody + 1
	if c.r.ContentLength >= 0 {
		most = int(c.r.ContentLength) + 1
	}
	progress := &progressing{r: http.MaxBytesReader(c.w, c.r.Body, dialect.MaxBody), response: http.NewResponseController(c.w), stall: c.server.options.Limits.Stall, end: time.Now().Add(bodyTime)}
	body, f, err := c.asking.appendAll(c.r.Context(), progress, most, c.r.ContentLength >= 0)
	if f != nil {
		return f
	}
	_ = progress.response.SetReadDeadline(time.Time{})
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return tooLarge()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fail(http.StatusRequestTimeout, reasonStalled, err, "nothing of the request has come for %s, or all of it has not within %s; try again", progress.stall, bodyTime)
		}
		return fail(http.StatusBadRequest, reasonInvalid, err, "the request could not be read")
	}
	c.came, c.record.Sent, c.spliced = body, int64(len(body)), c.asking.ahead
	if gone := c.work(c.r.Context(), len(body), func() { c.request, err = c.dialect.ReadRequest(body) }); gone != nil {
		return gone
	}
	if err != nil {
		return fail(http.StatusBadRequest, reasonInvalid, nil, "%v", err)
	}
	return nil
}

// progressing is a body that ends where nothing of it comes for a while, and at a time in any case.
type progressing struct {
	r        io.Reader
	response *http.ResponseController
	stall    time.Duration
	end      time.Time
}

// Read implements io.Reader.
func (p *progressing) Read(b []byte) (int, error) {
	next := time.Now().Add(p.stall)
	if next.After(p.end) {
		next = p.end
	}
	_ = p.response.SetReadDeadline(next) // where there is none, the server's own ends it
	return p.r.Read(b)
}

// plainText says that a type of content has no charset but that of JSON (RFC 8259, 8.1): a provider could read other words than we do.
func plainText(contentType string) bool {
	_, parameters, err := mime.ParseMediaType(contentType)
	charset, has := parameters["charset"]
	return contentType == "" || err == nil && (!has || strings.EqualFold(charset, "utf-8"))
}

func tooLarge() *failure {
	return fail(http.StatusRequestEntityTooLarge, reasonTooLarge, nil, "the request has more than %d bytes", dialect.MaxBody)
}

// appendAll reads to the end, into memory that grows with what has arrived.
func (h *holding) appendAll(ctx context.Context, r io.Reader, most int, known bool) (b []byte, f *failure, err error) {
	for {
		if b, f = h.grown(ctx, b, most, known); f != nil {
			return nil, f, nil
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil, nil
		}
		if err != nil {
			return b, nil, err
		}
	}
}
