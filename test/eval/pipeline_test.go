// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"cmp"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
)

// kind of what can be wrong.
type kind = string

// Signals are what a watchdog sees of an agent beside its conversation.
type Signals struct {
	// Tree of the files that was captured last, whether paths have changed since the last signals, and what was decided about the last checkpoint.
	Tree    string
	Changed bool
	Verdict string
	// Pulse says that processes were looked at: CPU time that they have used, how many they are, and how many bytes the agent has printed,
	// and whether it has ended its turn.
	Pulse     bool
	CPU       time.Duration
	Processes int
	Output    int64
	Idle      bool
}

// Finding is what is wrong as far as a pipeline sees.
type Finding struct {
	Kind     kind
	Thread   int
	Evidence string
}

// Pipeline is what is tried: the supervision of one run.
type Pipeline interface {
	// Request of the agent, byte by byte. It gives the number of its conversation, and what the agent is told at the end of it.
	Request(body []byte, now time.Time) (thread int, told []string)
	// Answer of the provider, as a stream of events.
	Answer(thread int, stream []byte, now time.Time)
	// Failed says that the provider has answered with an error.
	Failed(thread, status int, now time.Time)
	// Signals that have come.
	Signals(s Signals, now time.Time)
	// Findings of now.
	Findings(now time.Time) []Finding
}

// core is the pipeline of the pure packages: the book of conversations, the detectors and what is decided, under the rules that hold where a policy sets
// none, for an agent with a role.
type core struct {
	dialect dialect.Dialect
	window  int64
	rules   steering.Rules
	book    conversation.Book
	state   anomaly.State
	steer   steering.State
}

func newCore(c client, window int64) Pipeline {
	d, _ := dialect.Find(c.dialect)
	p := &core{dialect: d, window: cmp.Or(window, defaultWindow), rules: steering.Defaults()}
	p.rules.Role = true
	return p
}

func (c *core) Request(body []byte, now time.Time) (thread int, told []string) {
	r, err := c.dialect.ReadRequest(body)
	if err != nil {
		panic(err)
	}
	turn := c.book.Observe(r.Conversation())
	c.state.Turn(turn, now)
	at := steering.TurnContext{Thread: turn.Thread, Kind: turn.Kind, Turn: int64(turn.Number), Now: now}
	for {
		step, ok := c.steer.Decide(c.state.Findings(c.rules.Rules, now), at, c.rules)
		if !ok {
			return turn.Thread, told
		}
		if step.Message != "" {
			told = append(told, step.Message)
		}
	}
}

func (c *core) Answer(thread int, stream []byte, now time.Time) {
	r := conversation.NewReader(c.dialect.Answer(), true)
	r.Write(stream)
	answer := r.Close()
	c.book.Answered(thread, answer)
	c.state.Answer(thread, *answer, c.window, now)
}

func (c *core) Failed(thread, status int, now time.Time) { c.state.Failed(thread, status, now) }

func (c *core) Signals(s Signals, now time.Time) {
	c.state.Work(anomaly.Work{Tree: s.Tree, Changed: s.Changed, Verdict: s.Verdict}, now)
	if s.Pulse {
		c.state.Pulse(anomaly.Pulse{CPU: s.CPU, Processes: s.Processes, Output: s.Output, Idle: s.Idle}, now)
	}
}

func (c *core) Findings(now time.Time) []Finding {
	var list []Finding
	for _, f := range c.state.Findings(c.rules.Rules, now) {
		list = append(list, Finding{Kind: string(f.Kind), Thread: f.Thread, Evidence: f.Detector + ": " + f.Evidence})
	}
	return list
}
