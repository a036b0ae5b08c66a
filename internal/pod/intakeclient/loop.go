// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intakeclient

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Pauses between tries, doubling, with jitter: an intake that comes back is not met by every pod at once.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 15 * time.Second
)

// Bounds of a batch: intake takes no more reports at once, and the bytes leave room for the batch around them.
const (
	batchReports = 256
	batchBytes   = protocol.MaxReportBytes - 4096
)

// tooEarlyPause is short: a pod is made known within a second or two of its start.
const tooEarlyPause = time.Second

// gatherTime is how long a status or a valid checkpoint waits for what follows it: the manager writes the Feature's status for each batch, and so
// does whoever copies from it. The last checkpoint of an attempt comes with the final report. Reports that a user waits for do not wait.
const gatherTime = time.Second

// Queue holds reports until they are acknowledged.
type Queue interface {
	// Batch is the oldest reports, within bounds.
	Batch(bytes, reports int) []protocol.Report
	Ack(protocol.ReportAck) error
	// SetAside removes one report from the queue that intake refuses for good, and keeps it elsewhere with the reason.
	SetAside(r protocol.ReportAck, reason string) error
	Ready() <-chan struct{}
}

// Deliver sends the reports in the queue, and later ones, until the context ends.
func (c *Client) Deliver(ctx context.Context, q Queue, log *slog.Logger) {
	r := retrier{log: log, what: "Cannot send reports yet"}
	var g gatherer
	most := batchReports
	for ctx.Err() == nil {
		batch := g.gather(ctx, q, most)
		if len(batch) == 0 {
			continue
		}
		ack, err := c.Send(ctx, batch)
		if err == nil {
			err = q.Ack(ack)
		}
		if err == nil && !takes(ack, batch[0]) {
			err = errors.New("intake acknowledged nothing of what it was sent")
		}
		if err == nil {
			g.tell(batch)
		}
		most = batchReports
		switch refused, reason := refusedBy(err, batch); {
		case refused != nil:
			log.ErrorContext(ctx, "Intake does not take a report; setting it aside", "epoch", refused.Epoch, "sequence", refused.Sequence, "error", reason)
			err = q.SetAside(*refused, reason)
		case tooLarge(err):
			most, err = 1, nil // a batch of one finds the report that is too large
		}
		r.pause(ctx, err)
	}
}

// gatherer knows what people have been told: the question, the fault and the problems of the last status.
type gatherer struct{ told []string }

// gather waits for reports and returns at most the given number: at once if one of them is urgent, else after a while, with the ones that
// have come meanwhile. It gives none when the context ends.
func (g *gatherer) gather(ctx context.Context, q Queue, most int) []protocol.Report {
	var late <-chan time.Time
	for over := false; ; {
		batch := q.Batch(batchBytes, most)
		if over || most == 1 && len(batch) == 1 || slices.ContainsFunc(batch, g.urgent) { // one of some that were urgent together
			return batch
		}
		if late == nil && len(batch) > 0 {
			timer := time.NewTimer(gatherTime)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-q.Ready():
		case <-late:
			over = true
		case <-ctx.Done():
			return nil
		}
	}
}

// urgent says that a report is more than one status or one valid checkpoint of many. A question, a fault, a problem and a rule that is not acknowledged are new when they were not in the last one.
func (g *gatherer) urgent(r protocol.Report) bool {
	if c := r.Checkpoint; c != nil {
		return c.Verdict != protocol.Valid
	}
	return r.Status == nil || slices.ContainsFunc(news(*r.Status), func(n string) bool { return !slices.Contains(g.told, n) })
}

func (g *gatherer) tell(batch []protocol.Report) {
	for _, r := range batch {
		if r.Status != nil {
			g.told = news(*r.Status)
		}
	}
}

// news of a status: what a user may wait for.
func news(s protocol.StatusReport) []string {
	list := slices.Concat(s.Problems, s.Unacknowledged)
	if s.Question != nil {
		list = append(list, "question "+s.Question.ID)
	}
	if s.Fault != nil {
		list = append(list, "fault "+s.Fault.Reason)
	}
	return list
}

// refusedBy an error is the report of a batch that intake will never take; nil where that is not known. Of what is too large intake does not read
// the number.
func refusedBy(err error, batch []protocol.Report) (refused *protocol.ReportAck, reason string) {
	var status *StatusError
	switch {
	case tooLarge(err) && len(batch) == 1:
		return &protocol.ReportAck{Epoch: batch[0].Epoch, Sequence: batch[0].Sequence}, "it is larger than intake takes"
	case errors.As(err, &status):
		return status.Refused, status.Message
	}
	return nil, ""
}

func tooLarge(err error) bool {
	var status *StatusError
	return errors.Is(err, errTooLarge) || errors.As(err, &status) && status.Code == http.StatusRequestEntityTooLarge
}

func takes(a protocol.ReportAck, r protocol.Report) bool {
	return r.Epoch < a.Epoch || r.Epoch == a.Epoch && r.Sequence <= a.Sequence
}

// Follow calls with the orders as they are, and again whenever they change, until the context ends.
func (c *Client) Follow(ctx context.Context, log *slog.Logger, orders func(protocol.Orders)) {
	r := retrier{log: log, what: "Cannot get orders"}
	etag := ""
	for ctx.Err() == nil {
		o, next, changed, err := c.Orders(ctx, etag, protocol.MaxWaitSeconds*time.Second)
		if err == nil {
			etag = next
			if changed {
				orders(o)
			}
			if changed && etag == "" {
				err = errors.New("intake sent orders without an ETag")
			}
		}
		r.pause(ctx, err)
	}
}

// retrier pauses after errors, and logs each kind of error once until it changes or goes away.
type retrier struct {
	log   *slog.Logger
	what  string
	tries int
	last  string
}

func (r *retrier) pause(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		if r.tries > 0 && err == nil {
			r.log.InfoContext(ctx, "Intake is reachable again", "tries", r.tries)
		}
		r.tries, r.last = 0, ""
		return
	}
	kind := kindOf(err)
	if kind != r.last {
		r.log.WarnContext(ctx, r.what, "kind", kind, "error", err.Error())
		r.last = kind
	}
	pause := min(lastPause, firstPause<<min(r.tries, 10))
	if kind == tooEarly {
		pause = min(pause, tooEarlyPause)
	}
	timer := time.NewTimer(jitter(pause))
	defer timer.Stop()
	r.tries++
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

const tooEarly = "too-early"

// kindOf tells errors apart that need different hands to fix them.
func kindOf(err error) string {
	var status *StatusError
	switch {
	case !errors.As(err, &status):
		return "unreachable"
	case status.Code == http.StatusTooEarly:
		return tooEarly
	case status.Code == http.StatusUnauthorized:
		return "unauthenticated"
	case status.Code == http.StatusForbidden:
		return "forbidden"
	case status.Code >= http.StatusInternalServerError:
		return "failing"
	}
	return "refused"
}

func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) } //nolint:gosec // spreads load, hides nothing
