// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steer hears an agent's conversation with its models, finds out when it goes wrong, and says a few words to the model then.
// core/anomaly finds and core/steering decides; this package carries what they need, and remembers it.
package steer

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/clip"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
	"github.com/tidewaiter/tidewaiter/internal/host/modelproxy"
)

const (
	// pulseEvery is how often the agent's processes are looked at: a fraction of the shortest silence that a policy may set.
	pulseEvery = 30 * time.Second
	// keepEvery is how often what is remembered is kept, where nothing was said to the model. Of what is lost, most is heard again.
	keepEvery = 10 * time.Second
)

// Memory keeps what is remembered.
type Memory interface {
	Load() ([]byte, error)
	Keep(data []byte) error
}

// Options of a Service.
type Options struct {
	// Terms that hold now.
	Terms  func() Terms
	Memory Memory
	// Recorder of what is done, in the Attempt with this number.
	Recorder Recorder
	Attempt  int64
	// Reach of an agent that asks no model: whether it has tools, and takes lines.
	Reach steering.Reach
	// Directives of people; nil where there are none.
	Directives Directives
	// Told hears what the agent was told of its work; nil where nobody wants to know.
	Told func(text string)
	// Acknowledged keeps what the agent has acknowledged; never nil.
	Acknowledged func(protocol.Acknowledgment) error
	Now          func() time.Time
	Log          *slog.Logger
}

// Service is the supervisor of one agent's conversation. Make it with New.
type Service struct {
	options Options
	// changed says that there is something to report, and late when what was held back may be told.
	changed chan struct{}
	late    *time.Timer

	mu     sync.Mutex
	record record
	outbox outbox
	voice  Voice
	// moved says that the workspace has changed since anything was heard, and idle that the agent has nothing to do.
	moved, idle bool
	// passed says that some of an answer has come since the last pulse, and lives that there was a sign that its connection lives.
	passed   atomic.Bool
	lives    atomic.Bool
	dirty    bool
	reported reported
	gate     gate
}

var _ modelproxy.Observer = (*Service)(nil)

// New remembers what was kept before. What cannot be read is forgotten: supervision begins anew.
func New(o Options) *Service {
	s := &Service{options: o, changed: make(chan struct{}, 1), late: time.NewTimer(reportEvery), gate: newGate()}
	s.late.Stop()
	data, err := o.Memory.Load()
	var k kept
	if err == nil && data != nil {
		err = json.Unmarshal(data, &k)
	}
	if err != nil {
		o.Log.Warn("What was remembered of the conversation cannot be read; it is heard anew", "error", err.Error())
		k = kept{}
	}
	s.record, s.outbox = k.record, k.Outbox
	s.outbox.options = o
	if s.record.Attempt != o.Attempt { // what was tried with the run before need not fail again
		s.record.Attempt, s.record.Steering.Spent, s.record.Bared = o.Attempt, nil, nil
		s.record.Board.Anew() // the workspace begins with what is valid, and the agent is told so
	}
	s.voice = Voice{service: s, word: k.Word, unspoken: make(chan struct{}, 1)}
	s.voice.call()
	s.dirty = s.outbox.writeDown()
	if s.record.Act != nil {
		s.gate.shut()
	}
	return s
}

// Known implements modelproxy.Observer.
func (s *Service) Known(list []byte) conversation.Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.Book.Known(list)
}

// Asked implements modelproxy.Observer. While an act is wanted, requests are kept back.
func (s *Service) Asked(ctx context.Context, r dialect.Request) ([]byte, modelproxy.Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	born := s.gate.born
	if !held(ctx, s, born) {
		return nil, nil
	}
	terms, now := s.options.Terms(), s.options.Now()
	begin(s, terms.Task)
	turn := s.record.Book.Observe(r.Conversation())
	s.record.forget(turn)
	s.record.figures(turn)
	touched(s, now)
	s.record.Anomalies.Turn(turn, now)
	at := placeIn(r, turn)
	step := s.decide(ctx, terms, steering.TurnContext{
		Thread: turn.Thread, Kind: turn.Kind, Turn: int64(turn.Number), Now: now, Clock: turn.Kind == conversation.KindSide || turn.Again, Closed: at.none != nil,
	})
	if step.Halts() {
		want(s, step)
		s.tell(terms, now)
		if step = (steering.Step{}); !held(ctx, s, born) {
			return nil, nil
		}
	}
	directed, posted := directed(s, turn, at.after), s.posting(turn, at.after)
	says := step.Message != "" || s.record.Unsaid[turn.Thread] != "" || directed.text != "" || posted.text != ""
	body := s.steered(ctx, r, turn, at, step, directed, posted)
	s.write(body, says)
	s.tell(terms, now)
	_, bare := s.record.Bare[turn.Thread]
	return body, &exchange{service: s, thread: turn.Thread, turn: turn.Number, tools: r.Tools && !bare, born: born}
}

// begin forgets the conversation about another task.
func begin(s *Service, task string) {
	if s.record.Task != task {
		s.outbox.ended(&s.record)
		s.record = s.record.next(task, steering.State{})
		s.gate.open()
	}
}

// decide what is done about what is wrong: one thing at most. Nothing is said in calls for titles and summaries, and in those that are made
// once more.
func (s *Service) decide(ctx context.Context, terms Terms, at steering.TurnContext) (act steering.Step) {
	findings := s.record.Anomalies.Findings(terms.Rules.Rules, at.Now)
	for {
		step, more := s.record.Steering.Decide(findings, at, terms.Rules)
		if !more {
			return act
		}
		s.outbox.note(terms.Task, at, step)
		attributes := []any{"anomaly", string(step.Kind), "thread", step.Thread, "turn", step.Finding.Turn, "evidence", step.Finding.Evidence}
		if step.Over {
			s.options.Log.InfoContext(ctx, "The anomaly is over", attributes...)
			continue
		}
		s.options.Log.WarnContext(ctx, "Anomaly", append(attributes, "rung", string(step.Rung), "message", step.Message)...)
		act = step
	}
}

// place in a request for what is said in it: after so many entries, or why there is none.
type place struct {
	after int
	none  error
}

// placeIn a request is behind what is new in it and before what its client repeats at the end of each, so that the next one has it, too.
func placeIn(r dialect.Request, turn conversation.Turn) place {
	if before := turn.Messages - turn.Tail; turn.Tail > 0 && r.HasPlace(before, turn.Ends) == nil {
		return place{after: before}
	}
	return place{turn.Messages, r.HasPlace(turn.Messages, turn.Ends)}
}

// steered is the request as it is sent on. Where there is no place for what is said, it is said with the next one.
func (s *Service) steered(ctx context.Context, r dialect.Request, turn conversation.Turn, at place, step steering.Step, directed mandate, posted posted) []byte {
	_, bare := s.record.Bare[turn.Thread]
	said := dialect.Steering{Notes: s.record.Notes[turn.Thread], Cuts: s.record.Cuts[turn.Thread], NoTools: bare || step.Rung == steering.NoTools}
	if step.Rung == steering.Surgery {
		var before []byte
		var after string
		said, before, after = s.record.operated(r, turn, step, said)
		if after != "" {
			s.outbox.leftOut(ctx, before, after)
		}
	}
	unsaid := s.record.Unsaid[turn.Thread]
	switch all := both(unsaid, step.Message, posted.text, directed.text); {
	case all != "" && at.none == nil:
		said.Notes = append(slices.Clip(said.Notes), dialect.Note{After: at.after, Text: all})
		delete(s.record.Unsaid, turn.Thread)
		if directed.text != "" {
			s.record.Directed, s.record.Stood = directed.memory, s.record.Stood || !directed.left
		}
		s.told(posted)
	case all != "":
		s.options.Log.WarnContext(ctx, "The model is told with its next request: this one has no place for it", "thread", turn.Thread, "turn", turn.Number, "error", at.none.Error())
		if step.Message != "" {
			s.record.later(turn.Thread, step.Message)
		}
	}
	if said.Empty() {
		return r.Bytes()
	}
	s.record.note(turn.Thread, turn.Messages, said)
	if step.Rung == steering.NoTools && turn.Kind == conversation.KindMain {
		s.record.Bared = &bared{Thread: turn.Thread, Turn: int64(turn.Number), Finding: step.Finding}
	}
	return r.Steer(said, turn.Ends)
}

// exchange hears how a request fared.
type exchange struct {
	service *Service
	thread  int
	turn    int
	// tools says that the model may call some.
	tools bool
	// born is as in gate: what an agent that has ended still hears is no matter of the next one.
	born int64
}

// Passed implements modelproxy.Exchange.
func (x *exchange) Passed(says bool) {
	if says {
		x.service.passed.Store(true)
	} else {
		x.service.lives.Store(true)
	}
}

// Answered implements modelproxy.Exchange.
func (x *exchange) Answered(a *conversation.Answer, window int64) {
	x.service.heard(func(r *record, now time.Time) {
		if x.born != x.service.gate.born {
			return
		}
		r.Book.Answered(x.thread, a)
		r.Anomalies.Answer(x.thread, *a, window, now)
		r.answered(x.thread, a, window)
		addressed(x.service, x.thread, a)
		if b := r.Bared; b != nil && x.tools && (a.Ended || a.Stop != conversation.StopNone) && b.before(x) {
			goesOn(x.service)
		}
	})
}

// Failed implements modelproxy.Exchange.
func (x *exchange) Failed(a failures.Answer) {
	x.service.heard(func(r *record, now time.Time) {
		if x.born == x.service.gate.born {
			r.Anomalies.Failed(x.thread, a, now)
		}
	})
}

// Moved says that the workspace has changed.
func (s *Service) Moved() {
	if s == nil { // there is no agent
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = true
}

// touched takes it that the workspace has changed, if it has.
func touched(s *Service, now time.Time) {
	if s.moved {
		s.record.Anomalies.Work(anomaly.Work{Changed: true}, now)
		s.moved = false
	}
}

// Captured says what a checkpoint has found.
func (s *Service) Captured(tree, verdict string) {
	if s == nil {
		return
	}
	s.heard(func(r *record, now time.Time) { r.Anomalies.Work(anomaly.Work{Tree: tree, Verdict: verdict}, now) })
}

// Idle says whether the agent has nothing to do: it waits for a person, is frozen, or has ended.
func (s *Service) Idle(idle bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = idle
}

// Follow takes the pulse of the agent, keeps what is remembered, and tells what was held back, until the context ends.
func (s *Service) Follow(ctx context.Context, pulse func(context.Context) (protocol.RunnerPulse, error)) {
	defer keepDirty(s)
	var pulses sync.WaitGroup // a runner may take long to answer
	defer pulses.Wait()
	pulses.Go(func() { followPulse(ctx, s, pulse) })
	keeps := time.NewTicker(keepEvery)
	defer keeps.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-keeps.C:
			keepDirty(s)
		case <-s.late.C:
			tellLate(s)
		}
	}
}

// followPulse takes the pulse until the context ends.
func followPulse(ctx context.Context, s *Service, pulse func(context.Context) (protocol.RunnerPulse, error)) {
	pulses := time.NewTicker(pulseEvery)
	defer pulses.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pulses.C:
			if p, err := pulse(ctx); err == nil { // a runner that does not answer is told of elsewhere
				s.Pulse(p)
			}
		}
	}
}

// tellLate tells what was held back.
func tellLate(s *Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(s.options.Terms(), s.options.Now())
}

// Pulse of the agent's processes.
func (s *Service) Pulse(p protocol.RunnerPulse) {
	s.heard(func(r *record, now time.Time) {
		r.Anomalies.Pulse(anomaly.Pulse{CPU: p.CPU, Processes: p.Processes, Output: p.Written, Idle: s.idle, Commands: commands(p.Commands), Answers: s.passed.Swap(false), Lives: s.lives.Swap(false)}, now)
		if p.Age > 0 {
			r.Anomalies.Started(now.Add(-p.Age))
		}
	})
}

// commands are the processes beside the agent's own, as far as the detectors look at them.
func commands(told []protocol.RunnerProcess) (list []anomaly.Command) {
	for _, c := range told[:min(len(told), maxCommands)] {
		list = append(list, anomaly.Command{Name: clip.Bytes(c.Name, maxCommand), Age: c.Age})
	}
	return list
}

// maxCommands and maxCommand, in bytes, are what a runner tells.
const maxCommands, maxCommand = 32, 15

// heard takes something that was heard, and looks what is wrong now: people are told of it before the agent asks again.
func (s *Service) heard(take func(r *record, now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	touched(s, now)
	take(&s.record, now)
	s.clock(now)
	s.tell(s.options.Terms(), now)
}

// keep what is remembered: at once, where something was said, and otherwise when its time comes.
func (s *Service) keep(now bool) {
	if s.dirty = true; !now {
		return
	}
	data, err := json.Marshal(&kept{s.record, s.outbox, s.voice.word})
	if err == nil {
		err = s.options.Memory.Keep(data)
	}
	if err != nil {
		s.options.Log.Warn("What is remembered of the conversation cannot be kept", "error", err.Error())
		return
	}
	s.dirty = false
}

// keepDirty keeps what was not.
func keepDirty(s *Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirty {
		s.keep(true)
	}
}
