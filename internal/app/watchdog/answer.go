// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/host/report"
)

// errCut: the answer is longer than answers may be.
var errCut = fmt.Errorf("cut after %d MiB: ask for less, such as one checkpoint", contract.MaxAnswerBytes>>20)

// answer writes what an inquiry asks for, from the trusted volume. It changes nothing there, and needs no lock.
func answer(ctx context.Context, p Paths, q contract.Inquiry, out io.Writer) error {
	out = &limited{out: out, left: contract.MaxAnswerBytes}
	switch q.Kind {
	case contract.InquiryDiff:
		return writeDiff(ctx, p, q, out, out)
	case contract.InquiryLog:
		return writeLog(p, q.Files, out)
	case contract.InquiryVerify:
		if _, err := readJournal(p); err != nil {
			return err
		}
		v, err := verifyVolume(ctx, verifyOptions{trusted: p.Trusted, commit: q.Commit})
		if err != nil {
			return err
		}
		return v.write(out, q.JSON)
	default:
		return fmt.Errorf("%w: this watchdog knows no inquiry %q", errUsage, q.Kind)
	}
}

// answerCode is the HTTP status that an error has for the one who asked.
func answerCode(err error) int {
	switch {
	case errors.Is(err, errUsage):
		return http.StatusBadRequest
	case errors.Is(err, errNoCheckpoint), errors.Is(err, errNoJournal):
		return http.StatusNotFound
	case errors.Is(err, errDropped):
		return http.StatusGone
	default:
		return http.StatusInternalServerError
	}
}

// limited passes so many bytes on, and then fails.
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

// inquiries answers one inquiry at a time, beside everything else; one that comes meanwhile takes its place in the queue,
// which holds one.
type inquiries struct {
	paths Paths
	log   *slog.Logger
	next  chan contract.Inquiry
}

func newInquiries(p Paths, log *slog.Logger) *inquiries {
	return &inquiries{paths: p, log: log, next: make(chan contract.Inquiry, 1)}
}

// take never blocks. Who asked the one that is dropped has given up: there is one inquiry of a Feature at a time.
func (i *inquiries) take(q contract.Inquiry) {
	select {
	case <-i.next:
	default:
	}
	select {
	case i.next <- q:
	default:
	}
}

// serve answers until the context ends.
func (i *inquiries) serve(ctx context.Context, client *report.Client) {
	for {
		select {
		case q := <-i.next:
			if err := sendAnswer(ctx, client, i.paths, q); err != nil && ctx.Err() == nil {
				i.log.WarnContext(ctx, "An inquiry is not answered", "kind", q.Kind, "error", err.Error())
			}
			ReturnMemory()
		case <-ctx.Done():
			return
		}
	}
}

func sendAnswer(ctx context.Context, client *report.Client, p Paths, q contract.Inquiry) error {
	ctx, cancel := context.WithTimeout(ctx, contract.InquiryTime)
	defer cancel()
	return client.Answer(ctx, q.ID, func(out io.Writer) error { return answer(ctx, p, q, out) }, answerCode)
}

// Answer answers the one inquiry that the environment holds, and ends: what the pod of a Feature without an attempt does.
func Answer(ctx context.Context, o Options) error {
	var q contract.Inquiry
	if err := json.Unmarshal([]byte(os.Getenv(contract.EnvInquiry)), &q); err != nil {
		return fmt.Errorf("read %s: %w", contract.EnvInquiry, err)
	}
	client := report.NewClient(report.Options{URL: o.Intake, ServerName: o.IntakeName, CAPath: o.Paths.CA, TokenPath: o.Paths.Token})
	return sendAnswer(ctx, client, o.Paths, q)
}
