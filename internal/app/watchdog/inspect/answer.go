// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// errCut: the answer is longer than answers may be.
var errCut = fmt.Errorf("cut after %d MiB: ask for less, such as one checkpoint", protocol.MaxAnswerBytes>>20)

// Answer writes the answer to an inquiry.
func Answer(ctx context.Context, d trusted.Dir, q protocol.Inquiry, out io.Writer) error {
	out = &limited{out: out, left: protocol.MaxAnswerBytes}
	switch q.Kind {
	case protocol.InquiryDiff:
		return writeDiff(ctx, d, q, out, out)
	case protocol.InquiryLog:
		return writeLog(d, q.Files, out)
	case protocol.InquiryGates:
		return writeGates(d, q, out)
	case protocol.InquiryVerify:
		if _, err := trusted.ReadJournal(d); err != nil {
			return err
		}
		v, err := verifyVolume(ctx, verifyOptions{dir: d, commit: q.Commit})
		if err != nil {
			return err
		}
		return v.write(out, q.JSON)
	default:
		return fmt.Errorf("%w: this watchdog knows no inquiry %q", ErrUsage, q.Kind)
	}
}

// Code is the HTTP status of an error for the caller of an inquiry.
func Code(err error) int {
	switch {
	case errors.Is(err, ErrUsage):
		return http.StatusBadRequest
	case errors.Is(err, errNoCheckpoint), errors.Is(err, errNoGate), errors.Is(err, trusted.ErrNoJournal):
		return http.StatusNotFound
	case errors.Is(err, errDropped):
		return http.StatusGone
	default:
		return http.StatusInternalServerError
	}
}

// limited passes the given number of bytes on, and then fails.
type limited struct {
	out  io.Writer
	left int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if len(p) <= l.left {
		n, err := l.out.Write(p)
		l.left -= n
		return n, err
	}
	n, err := l.out.Write(p[:l.left])
	l.left -= n
	if err == nil {
		err = errCut
	}
	return n, err
}
