// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// Client is where answers go: write writes one, and code is the HTTP status that an error of it has.
type Client interface {
	Answer(ctx context.Context, id string, write func(io.Writer) error, code func(error) int) error
}

// Inquiries answers one inquiry at a time, in the background; the queue holds one more, the newest.
type Inquiries struct {
	dir  trusted.Dir
	log  *slog.Logger
	next chan protocol.Inquiry
}

// NewInquiries about a trusted volume.
func NewInquiries(d trusted.Dir, log *slog.Logger) *Inquiries {
	return &Inquiries{dir: d, log: log, next: make(chan protocol.Inquiry, 1)}
}

// Take queues an inquiry, drops an older waiting one, and never blocks. The caller of the dropped one has given up: there is one inquiry of
// a Feature at a time.
func (i *Inquiries) Take(q protocol.Inquiry) {
	select {
	case <-i.next:
	default:
	}
	select {
	case i.next <- q:
	default:
	}
}

// Serve answers until the context ends.
func (i *Inquiries) Serve(ctx context.Context, to Client) {
	for {
		select {
		case q := <-i.next:
			if err := Send(ctx, to, i.dir, q); err != nil && ctx.Err() == nil {
				i.log.WarnContext(ctx, "Cannot answer an inquiry", "kind", q.Kind, "error", err.Error())
			}
			debug.FreeOSMemory() // what an answer took the next checkpoint need not wait for
		case <-ctx.Done():
			return
		}
	}
}

// Send answers one inquiry.
func Send(ctx context.Context, to Client, d trusted.Dir, q protocol.Inquiry) error {
	ctx, cancel := context.WithTimeout(ctx, protocol.InquiryTime)
	defer cancel()
	return to.Answer(ctx, q.ID, func(out io.Writer) error { return Answer(ctx, d, q, out) }, Code)
}
