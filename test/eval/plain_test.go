// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	blame "github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
)

// plain is the pipeline without a proxy and without HTTP: what the agent's client and the provider write is read, and decided on.
type plain struct {
	wire   dialect.Dialect
	window int64
	terms  session.Terms
	state  session.State
	// steps is the number of the newest step, as a journal would have it.
	steps int64
	// beside is what requests have said beside the conversation.
	beside *dialect.Beside
	// exchange of the last request, and the reader of its answer; nil before it has begun.
	exchange session.Exchange
	reader   *conversation.Reader
	// passed and lives are what has come since the last pulse, as in a watchdog.
	passed, lives bool
	// told has the notes of each thread.
	told map[int][]string
}

func newPlain(under configuration, c client, window int64) *plain {
	return &plain{wire: c.wire(), window: cmp.Or(window, defaultWindow), terms: under.terms(c), told: map[int][]string{}}
}

// directly is the pipeline of a run without HTTP.
func (c configuration) directly(r Run) Pipeline { return newPlain(c, r.client, r.window) }

func (d *plain) facts(now time.Time) session.Facts {
	return session.Facts{Now: now, Terms: d.terms, Recorded: journal.Steered{Sequence: d.steps}}
}

// did what a watchdog would do: it counts the steps.
func (d *plain) did(e session.Effects) {
	if n := len(e.Steps); n > 0 {
		d.steps = e.Steps[n-1].Sequence
	}
}

// Request implements Pipeline.
func (d *plain) Request(body []byte, now time.Time) (thread int, told []string) {
	request, err := d.wire.ReadFurther(body, nil, d.beside, d.state.Book.Known)
	if err != nil {
		panic(err)
	}
	d.beside = request.Beside()
	reply, effects := d.state.Request(d.facts(now), request)
	d.did(effects)
	if reply.Held != nil {
		panic("no ladder of a run goes as far")
	}
	d.exchange, d.reader = reply.Exchange, nil
	all := notes(reply.Body)
	for _, note := range all {
		if !slices.Contains(d.told[reply.Thread], note) {
			told = append(told, note)
		}
	}
	d.told[reply.Thread] = all
	return reply.Thread, told
}

// Answer implements Pipeline.
func (d *plain) Answer(r reply, now time.Time) {
	if r.status >= http.StatusBadRequest {
		d.did(d.state.Failed(d.facts(now), d.exchange, blame.Answer{Status: r.status}))
		return
	}
	if d.reader == nil {
		d.reader = conversation.NewReader(d.wire.Answer(), strings.HasPrefix(r.kind, "text/event-stream"))
	}
	if d.reader.Write(r.body); len(r.body) > 0 {
		if d.reader.Says() {
			d.passed = true
		} else {
			d.lives = true
		}
	}
	if !r.more {
		d.did(d.state.Answered(d.facts(now), d.exchange, d.reader.Close(), d.window))
	}
}

// Signals implements Pipeline.
func (d *plain) Signals(s Signals, now time.Time) {
	if s.Changed {
		d.state.Moved()
	}
	if !s.Pulse {
		return
	}
	f := d.facts(now)
	d.did(d.state.Captured(f, s.Tree, s.Verdict))
	f = d.facts(now)
	f.Idle = s.Idle
	d.did(d.state.Pulse(f, anomaly.Pulse{CPU: s.CPU, Processes: s.Processes, Output: s.Output, Idle: s.Idle, Answers: d.passed, Lives: d.lives}, 0))
	d.passed, d.lives = false, false
}

// Findings implements Pipeline.
func (d *plain) Findings(now time.Time) (list []Finding) {
	c := d.state.Conversation(d.facts(now))
	if c == nil {
		return nil
	}
	for _, a := range c.Anomalies {
		list = append(list, Finding{Kind: a.Type, Evidence: a.Message})
	}
	return list
}

// Close implements Pipeline.
func (*plain) Close() {}

// TestThroughTheProxy plays some runs of each kind once more through the proxy of a watchdog and over HTTP: what is found, when, and what the model is told
// is the same.
func TestThroughTheProxy(t *testing.T) {
	g := newGateway(t)
	all := slices.Concat(written(), heldBack(), blind())
	var runs []Run
	for i := 0; i < len(all); i += len(all) / 48 {
		runs = append(runs, all[i])
	}
	for _, c := range configurations() {
		decided := plays(c, runs, c.directly)
		proxied := plays(c, runs, func(r Run) Pipeline { return g.run(c, r.client, r.window) })
		for i := range runs {
			if was, is := fmt.Sprintf("%+v", decided[i].reports), fmt.Sprintf("%+v", proxied[i].reports); was != is {
				t.Errorf("%s: %s: without the proxy %s, through it %s", c.name, runs[i].Name, was, is)
			}
		}
	}
}
