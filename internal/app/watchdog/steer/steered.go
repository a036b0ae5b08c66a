// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/clip"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/redact"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
)

const (
	// maxUnwritten steps wait for a journal that cannot be written.
	maxUnwritten = 64
	// maxSteps are written down for a Feature: requests are made up as fast as an agent likes. Beyond them, what is done with the whole run is
	// written down, and what is said by a channel of its own, because the clock and the loop bound both.
	maxSteps = 10_000
	// maxLeftOut is how much of what is taken out of the conversation goes into the journal, over all steps, in bytes: an agent must not fill
	// the volume with what it repeats.
	maxLeftOut = 8 << 20
	// margin of a text is searched for secrets too, so that one is found of which the end is cut off.
	margin = 64 << 10
	// searches is the work that searching for secrets may take, as so many files.
	searches = 4
)

// Recorder writes down what was done about an agent that is in trouble.
type Recorder interface {
	// Recorded is what is written down.
	Recorded() journal.Steered
	// Steered writes one step down. It is durable when Steered returns.
	Steered(x protocol.Steering) error
}

// outbox has the steps on their way to the Recorder. It is kept together with the state that they led to, so that a watchdog that begins
// anew neither forgets a step nor writes it down twice.
type outbox struct {
	// Newest is the number of the newest step.
	Newest int64 `json:"newest,omitempty"`
	// Steps that may not be written down yet, the oldest first.
	Steps []protocol.Steering `json:"steps,omitempty"`

	options Options
	// open steps have no number yet, because it is not known what their request is sent on as.
	open []protocol.Steering
	// redactor takes secrets out of what is written down; nil before it is needed.
	redactor *redact.Redactor
}

// kept is what is kept of a Service.
type kept struct {
	record

	Outbox outbox `json:"outbox"`
	Word   *Word  `json:"word,omitempty"`
}

// note a step that was decided. What an agent influences is text that can be seen, and bounded.
func (o *outbox) note(task string, at steering.TurnContext, step steering.Step) {
	x := protocol.Steering{
		Time: at.Now.UTC(), Attempt: o.options.Attempt, Task: task, Thread: step.Thread, Anomaly: string(step.Kind), Detector: step.Finding.Detector,
		Evidence: shown(step.Finding.Evidence, protocol.MaxSteeringEvidence), Rung: string(step.Rung), Over: step.Over,
		Message: shown(step.Message, protocol.MaxSteeringMessage),
	}
	if at.Thread == step.Thread {
		x.Turn = at.Turn
	}
	if x.Channel = step.Channel; x.Channel == "" && x.Message != "" && !at.Clock {
		x.Channel = protocol.ChannelRequest
	}
	if asked := x.Channel == protocol.ChannelRequest || x.Channel == ""; asked && !step.Halts() && o.full() {
		return
	}
	if o.open = append(o.open, x); o.full() {
		o.options.Log.Warn("Steps of steering have reached their limit: what is said in requests is not written down any more", "steps", maxSteps)
	}
}

// full says that no more steps are written down than must be.
func (o *outbox) full() bool {
	return max(o.Newest, o.options.Recorder.Recorded().Sequence)+int64(len(o.open)) >= maxSteps
}

// ended notes that the anomalies of a conversation are over, because the conversation is.
func (o *outbox) ended(r *record) {
	for _, e := range r.Steering.Episodes {
		step := steering.Step{Rung: steering.Observe, Kind: e.Finding.Kind, Thread: e.Finding.Thread, Over: true, Finding: e.Finding}
		if n := len(e.Tried); n > 0 {
			step.Rung = e.Tried[n-1]
		}
		o.note(r.Task, steering.TurnContext{Now: o.options.Now(), Clock: true}, step)
	}
}

// leftOut notes what the step that was decided last has taken out of the conversation, and what stands in its place. Neither has secrets
// where it is written down.
func (o *outbox) leftOut(ctx context.Context, before []byte, after string) {
	last := len(o.open) - 1
	if last < 0 || o.open[last].Over || o.open[last].Rung != string(steering.Surgery) { // it was not written down
		return
	}
	x := &o.open[last]
	if o.options.Recorder.Recorded().Bytes >= maxLeftOut {
		x.Missing = fmt.Sprintf("more than %d MiB were taken out of the conversations of this Feature", maxLeftOut>>20)
		return
	}
	if o.redactor == nil { // it is dear, and few need it
		o.redactor = redact.New()
	}
	var cutBefore, cutAfter string
	x.Before, cutBefore = o.clean(ctx, before, protocol.MaxSteeringBefore)
	x.After, cutAfter = o.clean(ctx, []byte(after), protocol.MaxSteeringAfter)
	x.Missing = cmp.Or(cutBefore, cutAfter)
}

// clean text of an agent: without secrets, bounded, and such that a terminal only shows it. Missing says why it is not whole.
func (o *outbox) clean(ctx context.Context, text []byte, limit int) (clean, missing string) {
	if len(text) > limit {
		missing = fmt.Sprintf("%d of %d bytes are kept", limit, len(text))
	}
	without, err := o.redactor.Redact(ctx, searches*secrets.Budget, text[:min(len(text), limit+margin)])
	switch {
	case errors.Is(err, secrets.ErrTooHard):
		return "", "the search for secrets would take too long"
	case err != nil: // the agent has hung up
		return "", "the search for secrets did not come to its end"
	}
	return shown(string(without), limit), missing
}

// shown is a text that a terminal only shows, bounded.
func shown(text string, limit int) string {
	return clip.Bytes(string(plain.Append(nil, []byte(text[:min(len(text), limit+margin)]))), limit)
}

// close what was decided, in a request that is sent on as body; nil where there is none. It gives what has got its number.
func (o *outbox) close(body []byte) []protocol.Steering {
	if len(o.open) == 0 {
		return nil
	}
	request := ""
	if body != nil {
		digest := sha256.Sum256(body)
		request = hex.EncodeToString(digest[:])
	}
	o.Newest = max(o.Newest, o.options.Recorder.Recorded().Sequence)
	closed := o.open
	o.open = nil
	for i := range closed {
		o.Newest++
		closed[i].Sequence, closed[i].Request = o.Newest, request
	}
	o.Steps = append(o.Steps, closed...)
	return closed
}

// writeDown what is in the outbox, and say whether anything has left it. What is written down already, the Recorder knows.
func (o *outbox) writeDown() (changed bool) {
	for len(o.Steps) > 0 {
		if x := o.Steps[0]; x.Sequence > o.options.Recorder.Recorded().Sequence {
			if err := o.options.Recorder.Steered(x); err != nil {
				o.options.Log.Warn("A step of steering cannot be written down yet", "step", x.Sequence, "error", err.Error())
				if more := len(o.Steps) - maxUnwritten; more > 0 {
					o.options.Log.Error("Steps of steering are lost: the journal cannot be written", "steps", more)
					o.Steps = o.Steps[more:]
				}
				return changed
			}
		}
		o.Steps, changed = o.Steps[1:], true
	}
	return changed
}

// write down what was decided, in a request that is sent on as body; nil where there is none. It keeps what is remembered first, at once
// where there is anything to write down.
func (s *Service) write(body []byte, now bool) {
	closed := s.outbox.close(body)
	for _, x := range closed {
		s.voice.take(x)
	}
	s.keep(now || len(closed) > 0)
	if s.outbox.writeDown() {
		s.dirty = true
	}
}
