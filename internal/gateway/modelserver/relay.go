// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// copied are the headers of an answer that reach the agent, in addition to the dialect's; one that ends in "-" stands for all that begin with it.
// Cookies and what the way back has added do not.
var copied = []string{"content-type", "request-id", "retry-after", "retry-after-ms", "x-request-id", "x-should-retry", "x-ratelimit-", "anthropic-ratelimit-"}

// lastWords is how long a backend may take to end a stream whose answer has ended: some servers never do.
const lastWords = 2 * time.Second

func reachesAgent(header string) bool {
	header = strings.ToLower(header)
	return slices.ContainsFunc(copied, func(c string) bool {
		return header == c || strings.HasSuffix(c, "-") && strings.HasPrefix(header, c)
	})
}

// copy an answer to the agent as it comes, or as far as its rules let it pass. A failure has not been told yet.
func (c *call) copy(ctx context.Context, answer *http.Response, silence *time.Timer) *failure {
	r, f := c.relay(answer)
	if f != nil {
		return f
	}
	if f := r.read(ctx, answer, silence); f != nil {
		return f
	}
	c.reply.end()
	return nil
}

// read the answer to its end.
func (r *relay) read(ctx context.Context, answer *http.Response, silence *time.Timer) *failure {
	c := r.call
	buffer := room(roomStep)
	defer free(buffer)
	var over time.Time // when a stream has ended its answer
	for buffer = buffer[:cap(buffer)]; ; {
		patience := c.patienceFor(r.begun())
		if !over.IsZero() {
			patience = time.Until(over.Add(lastWords))
		}
		silence.Reset(patience)
		n, err := answer.Body.Read(buffer)
		silence.Stop() // while the agent reads, the backend is not silent
		if n > 0 {
			if more, f := r.pass(buffer[:n]); !more {
				return f
			}
		}
		if over.IsZero() && r.over() {
			over = time.Now()
		}
		// A backend that notices the end of a call that was given up may still end its answer as if it were whole.
		if errors.Is(err, io.EOF) && ctx.Err() == nil {
			return r.end()
		}
		if err != nil && !over.IsZero() && c.r.Context().Err() == nil { // the agent has the whole answer
			return r.end()
		}
		if err != nil {
			return c.broken(ctx, err, patience)
		}
	}
}

// relay begins with an answer: its head is sent, unless it is checked first.
func (c *call) relay(answer *http.Response) (*relay, *failure) {
	final := c.mayBeFinal() && answer.StatusCode < http.StatusMultipleChoices
	checks := final && c.caller.Answers.Holds()
	streamed := strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream")
	if !checks || !streamed { // no comments go with it
		if c.reply.settle(); c.reply.started.Load() {
			return nil, fail(http.StatusBadGateway, reasonUnreachable, nil, "the gateway asked the backend %q for a better answer, and got one with status %d; try again", c.route.Backend.Name, answer.StatusCode)
		}
	}
	answer.Request = nil
	c.record.Reason, c.record.Status = reasonAnswered, answer.StatusCode
	c.turn.answered(c.server.options.Now(), answer.StatusCode, streamed, checks)
	if c.turn != nil {
		c.turn.audits = final && !checks
	}
	if c.reply.uncounted = nil; c.counted && streamed {
		c.reply.uncounted = &dialect.UsageFilter{}
	}
	c.heads(answer, checks)
	r := &relay{call: c, checks: checks, held: c.turn != nil && !streamed}
	switch {
	case checks && streamed:
		c.reply.keepAlive(c.server.options.Limits.Alive)
	case !checks:
		c.forget()
		c.reply.start(c.record.Status)
		if r.held {
			_ = http.NewResponseController(c.w).Flush() // the agent waits for something
		}
	}
	return r, nil
}

// forget the request: an answer takes minutes, and it is not needed any more.
func (c *call) forget() {
	c.request, c.body = dialect.Request{Model: c.request.Model, TakenOut: c.request.TakenOut, Streamed: c.request.Streamed, Reasons: c.request.Reasons}, nil
	c.sending.vacate(&c.came)
	c.sending.vacate(&c.made)
	c.asking.end()
	c.spliced = 0
}

// heads are the headers that the agent gets. The length of an answer that is checked is not known yet, nor is that of a stream, which may end with an event
// of the gateway.
func (c *call) heads(answer *http.Response, checks bool) {
	if c.reply.alive != nil || c.reply.started.Load() {
		return
	}
	if c.record.FirstByte == 0 {
		c.record.FirstByte = c.server.options.Now().Sub(c.began)
	}
	header := c.w.Header()
	clear(header) // an earlier answer may have left some
	for name, values := range answer.Header {
		if reachesAgent(name) || c.dialect.PassesBack(name) {
			header[name] = values
		}
	}
	header.Set("X-Content-Type-Options", "nosniff")
	if wait, worth := models.Again(answer.StatusCode, answer.Header.Get, c.server.options.Now()); worth && wait > 0 && header.Get("Retry-After") == "" && header.Get("Retry-After-Ms") == "" {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds())))) // clients read nothing else
	}
	if window := c.route.Model.ContextWindow; window > 0 {
		header.Set(protocol.WindowHeader, strconv.FormatInt(window, 10))
	}
	if c.turn != nil && c.record.Role == policy.RoleSupervisor {
		header.Set(protocol.CallHeader, c.turn.entry.ID)
	}
	c.reply.streams = strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream")
	if answer.ContentLength >= 0 && !checks && !c.reply.streams {
		header.Set("Content-Length", strconv.FormatInt(answer.ContentLength, 10))
	}
}

// relay passes an answer on.
type relay struct {
	call *call
	// checks says that nothing passes before it is known whether the answer is one that ends a turn, and keeps to its rules.
	checks bool
	// held says that a part waits in next until the following one is there: an answer that is not a stream of events does not say
	// where it ends.
	held bool
	next []byte
}

// over says that a stream has ended its answer. Its connection may last.
func (r *relay) over() bool {
	t := r.call.turn
	return t != nil && t.streamed && t.reader.Answer().Ended
}

// begun says that the backend has begun to say something: a stream with its first text or tool call, anything else with its first byte.
func (r *relay) begun() bool {
	c := r.call
	if c.turn == nil || !c.turn.streamed {
		return c.record.Received > 0
	}
	a := c.turn.reader.Answer()
	return len(a.Text)+len(a.Tools) > 0 || a.Ended
}

// pass the next part on; more is false where the answer is over for the agent.
func (r *relay) pass(part []byte) (more bool, f *failure) {
	r.call.record.Received += int64(len(part))
	over := r.call.turn.see(part)
	if !r.checks || r.call.turn.whole() { // else it is not held on
		if f := r.call.turn.pay(r.call.r.Context()); f != nil {
			return false, f
		}
	}
	if r.checks {
		return r.hold(part, over)
	}
	if over {
		if f := r.call.settled(); f != nil {
			return false, f
		}
	}
	if r.held {
		part, r.next = r.next, append([]byte(nil), part...)
	}
	return len(part) == 0 || r.call.send(part), nil
}

// end an answer of which the backend sends nothing more.
func (r *relay) end() *failure {
	if r.checks {
		return r.judge()
	}
	if r.call.turn.early() {
		return fail(http.StatusServiceUnavailable, reasonCutOff, nil, "the backend's answer broke off; try again")
	}
	if f := r.call.settled(); f != nil {
		return f
	}
	if len(r.next) > 0 {
		r.call.send(r.next)
	}
	return nil
}

// settled records the call; a failure where the agent must not see its end.
func (c *call) settled() *failure {
	if err := c.turn.record(); err != nil {
		return unrecorded(err)
	}
	return nil
}

// send a part of the answer to the agent; false where it is gone.
func (c *call) send(part []byte) bool {
	if c.reply.pass(part) {
		return true
	}
	c.record.Reason = reasonGone
	if c.reply.stalled {
		c.record.Reason = reasonStalled
	}
	return false
}

// broken is said of an answer that cannot be completed; nil where nobody listens.
func (c *call) broken(ctx context.Context, err error, patience time.Duration) *failure {
	switch {
	case errors.Is(context.Cause(ctx), errSilent):
		c.renew()
		return fail(http.StatusServiceUnavailable, reasonSilent, err, "the backend said nothing for %s; try again", patience)
	case c.r.Context().Err() != nil:
		c.record.Reason = reasonGone
		return nil //nolint:nilerr // there is nobody to tell
	}
	return fail(http.StatusServiceUnavailable, reasonCutOff, err, "the backend's answer broke off; try again")
}

// interrupt an answer that has begun. A stream of events ends with one that says so; any other answer with its connection, so
// that nobody takes it for whole.
func (c *call) interrupt(f *failure) {
	if !c.reply.streams {
		panic(http.ErrAbortHandler)
	}
	for name, value := range f.told() {
		c.w.Header().Set(http.TrailerPrefix+name, value)
	}
	c.reply.deadline()
	// What was cut in the middle of an event ends there.
	_, _ = c.w.Write(c.reply.alike(append([]byte("\n\n"), c.dialect.Broken(f.Failure)...))) // an agent that hung up does not read it
}
