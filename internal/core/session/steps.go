// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

const (
	// MaxSteps is how many steps the journal records for a Feature, because an agent can make requests at any rate. Beyond it, the journal
	// records only measures on the whole run and texts on other channels than requests: the clock and the loop bound both.
	MaxSteps = 10_000
	// maxLeftOut is how much of what is taken out of the conversation goes into the journal, over all steps, in bytes: an agent must not fill
	// the volume with what it repeats.
	maxLeftOut = 8 << 20
	// margin of a text is searched for secrets too, so that one is found of which the end is cut off.
	margin = 64 << 10
	// searches is the work that searching for secrets may take, as a number of files.
	searches = 4
)

// note a step that was decided, and give its number; 0 where it is not written down. What an agent influences is text that can be seen, and bounded. One
// that must be written down is.
func (d *decision) note(at steering.TurnContext, step steering.Step, must bool) int64 {
	x := protocol.SteeringStep{
		Sequence: d.f.Recorded.Sequence + int64(len(d.e.Steps)) + 1,
		Time:     at.Now.UTC(), Attempt: d.f.Attempt, Task: d.s.Task, Thread: step.Thread, Anomaly: string(step.Kind), Detector: step.Finding.Detector,
		Evidence: shown(step.Finding.Evidence, protocol.MaxSteeringEvidence), Rung: string(step.Rung), Over: step.Over,
		Message: shown(step.Message, protocol.MaxSteeringMessage),
	}
	if at.Thread == step.Thread {
		x.Turn = at.RunTurn
	}
	if x.Channel = step.Channel; x.Channel == "" && x.Message != "" && !at.Clock {
		x.Channel = protocol.ChannelRequest
	}
	if n := d.s.same(x); n > 0 {
		return n
	}
	if asked := x.Channel == protocol.ChannelRequest || x.Channel == ""; asked && !must && x.Sequence > MaxSteps {
		return 0
	}
	d.e.Steps = append(d.e.Steps, x)
	d.e.Full = x.Sequence >= MaxSteps
	return x.Sequence
}

// over notes that the anomalies of a conversation are over, because the conversation is.
func (d *decision) over() {
	for _, e := range d.s.Anomalies.Episodes {
		d.note(steering.TurnContext{Now: d.f.Now, Clock: true}, d.s.Steering.Over(e), false)
	}
}

// leftOut notes what the step that was decided last has taken out of the conversation, and its replacement. Neither has secrets
// where it is written down.
func (d *decision) leftOut(before []byte, after string) {
	last := len(d.e.Steps) - 1
	if last < 0 || d.e.Steps[last].Over || d.e.Steps[last].Rung != string(steering.Surgery) { // it was not written down
		return
	}
	x := &d.e.Steps[last]
	if d.f.Recorded.Bytes >= maxLeftOut {
		x.Missing = fmt.Sprintf("the watchdog took more than %d MiB out of the conversations of this Feature", maxLeftOut>>20)
		return
	}
	if d.s.redactor == nil { // it is dear, and few need it
		d.s.redactor = secrets.NewRedactor()
	}
	var cutBefore, cutAfter string
	x.Before, cutBefore = d.s.clean(before, protocol.MaxSteeringBefore)
	x.After, cutAfter = d.s.clean([]byte(after), protocol.MaxSteeringAfter)
	x.Missing = cmp.Or(cutBefore, cutAfter)
}

// clean text of an agent: without secrets, bounded, and such that a terminal only shows it. Missing says why it is not whole.
func (s *State) clean(text []byte, limit int) (clean, missing string) {
	if len(text) > limit {
		missing = fmt.Sprintf("%d of %d bytes are kept", limit, len(text))
	}
	without, err := s.redactor.Redact(context.Background(), searches*secrets.Budget, text[:min(len(text), limit+margin)])
	if err != nil {
		return "", "the search for secrets would take too long"
	}
	return shown(string(without), limit), missing
}

// shown is a text that a terminal only shows, bounded.
func shown(text string, limit int) string {
	return plain.CutBytes(string(plain.Append(nil, []byte(text[:min(len(text), limit+margin)]))), limit)
}

// effects of what was decided, in a request that is sent on as body; nil where there is none.
func (d *decision) effects(body []byte) Effects {
	request := ""
	if body != nil && len(d.e.Steps) > 0 {
		digest := sha256.Sum256(body)
		request = hex.EncodeToString(digest[:])
	}
	for i := range d.e.Steps {
		d.e.Steps[i].Request = request
		d.s.Step = d.e.Steps[i].Sequence
		d.s.take(d.e.Steps[i])
	}
	d.e.Keep = d.e.Keep || len(d.e.Steps) > 0
	return d.e
}
