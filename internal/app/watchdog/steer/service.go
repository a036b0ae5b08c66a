// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steer follows an agent's conversation with its models, and carries out what core/session decides. It has the lock, the gate at
// which requests wait, the timers and the cache of the session's state; it decides nothing.
package steer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
)

// Cache stores the session's state. Its loss is harmless: the decisions are in the journal.
type Cache interface {
	Load() ([]byte, error)
	Keep(data []byte) error
}

// Directives are users' messages to the working agent.
type Directives interface {
	// Given are the current directives with their states.
	Given() directives.List
	// Learn what became known of some.
	Learn(directives.News)
}

// Options of a Service.
type Options struct {
	// Terms that hold now.
	Terms func() session.Terms
	Cache Cache
	// Recorder of steering, in the Attempt with this number.
	Recorder Recorder
	Attempt  int64
	// Reach of an agent that calls no model: whether it has tools, and takes lines.
	Reach steering.Reach
	// Directives of users; nil if there are none.
	Directives Directives
	// Told is called with each notice about its work that the agent gets; it may be nil.
	Told func(text string)
	// Acknowledged stores the agent's acknowledgment; never nil.
	Acknowledged func(protocol.Acknowledgment) error
	Now          func() time.Time
	Log          *slog.Logger
}

// Service is the supervisor of one agent's conversation. Make it with New. A nil Service is that of a run without an agent.
type Service struct {
	options Options
	// changed says that there is something to report, and late when a delayed report is due.
	changed chan struct{}
	late    *time.Timer
	// unspoken says that there may be a Line.
	unspoken chan struct{}
	// passed says that some of an answer has come since the last pulse, and lives that there was a sign that its connection lives.
	passed, lives atomic.Bool

	mu    sync.Mutex
	state session.State
	steps unwritten
	idle  bool
	dirty bool
	full  bool
	gate  gate
}

var _ modelproxy.Observer = (*Service)(nil)

// New resumes with the stored state and the journal. It drops a state that it cannot read, because later requests repeat most of the conversation.
func New(o Options) *Service {
	s := &Service{
		options: o, changed: make(chan struct{}, 1), late: time.NewTimer(time.Hour), unspoken: make(chan struct{}, 1), gate: newGate(),
		steps: unwritten{recorder: o.Recorder, log: o.Log},
	}
	s.late.Stop()
	data, err := o.Cache.Load()
	if err == nil && data != nil {
		err = json.Unmarshal(data, &s.state)
	}
	if err != nil {
		o.Log.Warn("Cannot read what the watchdog remembered of the conversation; hearing it again from the start", "error", err.Error())
		s.state = session.State{}
	}
	s.state.Resume(s.facts())
	call(s.unspoken)
	s.dirty = true
	s.gate.follow(s.state.Act)
	return s
}

// call the one who waits at a channel.
func call(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// facts that hold now.
func (s *Service) facts() session.Facts {
	f := session.Facts{
		Now: s.options.Now(), Terms: s.options.Terms(), Attempt: s.options.Attempt, Recorded: s.steps.recorded(), Reach: s.options.Reach, Idle: s.idle,
	}
	if s.options.Directives != nil {
		f.Directives = s.options.Directives.Given()
	}
	return f
}

// do what was decided, in the order in which it must be done. It says which acknowledgment could not be kept.
func (s *Service) do(e session.Effects) (err error) {
	if d := s.options.Directives; d != nil {
		d.Learn(e.News)
	}
	for i, a := range e.Acknowledged {
		if err = s.options.Acknowledged(a); err != nil {
			s.options.Log.Warn("Cannot keep what the agent has acknowledged: asking it again", "checkpoint", a.Checkpoint, "rule", a.Rule, "error", err.Error())
			s.state.Unacknowledged(e, e.Acknowledged[i:])
			err = fmt.Errorf("cannot keep the acknowledgment now, give it again: %w", err)
			break
		}
	}
	s.write(e.Steps)
	if e.Full && !s.full {
		s.options.Log.Warn("Steps of steering have reached their limit: the journal keeps no more texts that the watchdog adds to requests", "steps", session.MaxSteps)
		s.full = true
	}
	if s.dirty = true; e.Keep {
		s.keep()
	}
	if e.Told != "" && s.options.Told != nil {
		s.options.Told(e.Told)
	}
	s.gate.follow(s.state.Act)
	if s.state.Word != nil {
		call(s.unspoken)
	}
	if e.Later > 0 {
		s.late.Reset(e.Later)
	}
	if e.Report {
		call(s.changed)
	}
	return err
}

// write steps down.
func (s *Service) write(steps []protocol.SteeringStep) {
	for _, x := range steps {
		attributes := []any{"step", x.Sequence, "anomaly", x.Anomaly, "thread", x.Thread, "turn", x.Turn, "evidence", x.Evidence}
		if x.Over {
			s.options.Log.Info("The anomaly is over", attributes...)
			continue
		}
		s.options.Log.Warn("Anomaly", append(attributes, "rung", x.Rung, "message", x.Message)...)
	}
	s.steps.write(steps)
}

// Known implements modelproxy.Observer.
func (s *Service) Known(list []byte) conversation.Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Book.Known(list)
}

// Asked implements modelproxy.Observer. While an act is wanted, requests are kept back.
func (s *Service) Asked(ctx context.Context, r dialect.Request) ([]byte, modelproxy.Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	born := s.state.Born()
	if !s.held(ctx, born) {
		return nil, nil
	}
	reply, effects := s.state.Request(s.facts(), r)
	_ = s.do(effects) // it is in the log, and the agent gets the request again
	if reply.Held != nil {
		if !s.held(ctx, born) {
			return nil, nil
		}
		reply, effects = s.state.Released(s.facts(), reply.Held)
		_ = s.do(effects)
	}
	if reply.Unplaced != nil {
		s.options.Log.WarnContext(ctx, "Telling the model with its next request: this one has no room for it", "thread", reply.Thread, "turn", reply.Turn, "error", reply.Unplaced.Error())
	}
	return reply.Body, &exchange{service: s, of: reply.Exchange}
}

// exchange hears how a request fared.
type exchange struct {
	service *Service
	of      session.Exchange
}

// Turn implements modelproxy.Exchange.
func (x *exchange) Turn() int64 { return x.of.Turn() }

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
	x.service.with(func(s *session.State, f session.Facts) session.Effects { return s.Answered(f, x.of, a, window) })
}

// Failed implements modelproxy.Exchange.
func (x *exchange) Failed(a failures.Answer) {
	x.service.with(func(s *session.State, f session.Facts) session.Effects { return s.Failed(f, x.of, a) })
}

// with the state, decide and do.
func (s *Service) with(decide func(*session.State, session.Facts) session.Effects) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.do(decide(&s.state, s.facts())) // it is in the log, and the agent gets the request again
}

// look at the state.
func look[T any](s *Service, at func(*session.State) T) (none T) {
	if s == nil {
		return none
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return at(&s.state)
}

// Moved says that the workspace has changed.
func (s *Service) Moved() {
	look(s, func(state *session.State) bool { state.Moved(); return true })
}

// Captured records the result of a checkpoint.
func (s *Service) Captured(tree, verdict string) {
	s.with(func(state *session.State, f session.Facts) session.Effects { return state.Captured(f, tree, verdict) })
}

// Idle says whether the agent has nothing to do: it waits for a user, is frozen, or has ended.
func (s *Service) Idle(idle bool) {
	look(s, func(*session.State) bool { s.idle = idle; return true })
}

// Ended says that the agent has ended with exit code 0, and whether it has a session.
func (s *Service) Ended(resumable bool) {
	s.with(func(state *session.State, f session.Facts) session.Effects { return state.Ended(f, resumable) })
}

// Post changes the notices about its work for the agent; change says whether to store them at once.
func (s *Service) Post(change func(*notice.Board) (keep bool)) {
	s.with(func(state *session.State, f session.Facts) session.Effects { return state.Post(f, change) })
}

// Anew forgets the conversation: the agent is about to be started without one.
func (s *Service) Anew() {
	s.with(func(state *session.State, f session.Facts) session.Effects { return state.Anew(f) })
}

// Words returns the text to add to the result of a tool; "" for none. It returns each text once.
func (s *Service) Words() (words string) {
	s.with(func(state *session.State, f session.Facts) (e session.Effects) {
		words, e = state.Words(f)
		return e
	})
	return words
}

// Line returns the text to write to the agent's standard input; false for none. Call Said after writing it.
func (s *Service) Line() (w session.Word, is bool) {
	look(s, func(state *session.State) bool { w, is = state.Line(); return is })
	return w, is
}

// Said records that the Line of a step was written, as far as possible.
func (s *Service) Said(step int64) {
	s.with(func(state *session.State, _ session.Facts) session.Effects { return state.Said(step) })
}

// Unspoken says that a Line may be waiting.
func (s *Service) Unspoken() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.unspoken
}

// Told says that the agent has received a message about an anomaly that is not over.
func (s *Service) Told() bool { return look(s, (*session.State).Told) }

// Talks says whether the agent has called a model since it was started.
func (s *Service) Talks() bool { return look(s, (*session.State).Talks) }

// Silent describes the broken rules about which the watchdog asked the agent twice without an answer.
func (s *Service) Silent() []string { return look(s, (*session.State).Silent) }

// Checked records a checkpoint of an agent that takes lines. It returns the acknowledgments to request again.
func (s *Service) Checked() (due []notice.Ask) {
	s.with(func(state *session.State, f session.Facts) (e session.Effects) {
		due, e = state.Checked(f)
		return e
	})
	return due
}

// Understood handles acknowledgments of broken rules that come by another way than the conversation.
func (s *Service) Understood(said ...notice.Understood) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, effects := s.state.Understood(s.facts(), said...)
	if n == 0 {
		return errors.New("no acknowledgment of this rule is due: the note about a checkpoint names the rules to acknowledge")
	}
	return s.do(effects)
}

// Changed says that there is something to report.
func (s *Service) Changed() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.changed
}

// Conversation as it is reported; nil before there is one, and for an agent that calls no model as long as it has no findings.
func (s *Service) Conversation() (c *protocol.Conversation) {
	return look(s, func(state *session.State) *protocol.Conversation { return state.Conversation(s.facts()) })
}

// keep what is remembered.
func (s *Service) keep() {
	data, err := json.Marshal(&s.state)
	if err == nil {
		err = s.options.Cache.Keep(data)
	}
	if err != nil {
		s.options.Log.Warn("Cannot keep what the watchdog remembers of the conversation", "error", err.Error())
		return
	}
	s.dirty = false
}
