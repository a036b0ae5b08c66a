// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// Pending is a request without an answer so far.
type Pending struct {
	request dialect.Request
	turn    conversation.Turn
	// runTurn is the turn of the run in which it was heard: others may be heard during its hold.
	runTurn int64
	place   place
	born    int64
}

// Reply to a request.
type Reply struct {
	// Body is the request for the gateway; nil during a hold.
	Body []byte
	// Held is the waiting request, until the Act is settled; nil for none.
	Held *Pending
	// Exchange identifies the request in later calls about it.
	Exchange Exchange
	// Unplaced says why the text must wait for the next request; nil if this one has it, or if there is none.
	Unplaced error
	// Thread and Turn of the request.
	Thread, Turn int
}

// Exchange is a request that was sent on.
type Exchange struct {
	thread int
	// turn of the run.
	turn int64
	// tools says that the model may call some.
	tools bool
	// born is as in State: an answer to an ended agent does not concern the next one.
	born int64
}

// Turn of the run that the request belongs to.
func (x Exchange) Turn() int64 { return x.turn }

// Request reads a request and decides about it. While the session wants an Act, it does not ask for another one. If it wants one because of
// this request, the Reply is Held.
func (s *State) Request(f Facts, r dialect.Request) (Reply, Effects) {
	d := &decision{s: s, f: f}
	d.begin(f.Terms.Task)
	turn := s.Book.Observe(r.Conversation())
	s.forget(turn)
	s.figures(turn)
	d.touched()
	s.Anomalies.Turn(turn, f.Now)
	p := Pending{request: r, turn: turn, runTurn: s.Anomalies.RunTurn, place: placeIn(r, turn), born: s.born}
	step, number := d.decide(steering.TurnContext{
		Thread: turn.Thread, Kind: turn.Kind, Turn: int64(turn.Number), RunTurn: p.runTurn, Now: f.Now, Clock: turn.Kind == conversation.KindSide || turn.Again, Closed: p.place.none != nil,
	})
	if step.Halts() {
		d.want(step, number)
		d.tell()
		return Reply{Held: &p, Thread: turn.Thread, Turn: turn.Number}, d.effects(nil)
	}
	return d.reply(p, step)
}

// Released continues with a held request. It refuses the request if the watchdog has ended its agent meanwhile: see State.Born.
func (s *State) Released(f Facts, p *Pending) (Reply, Effects) {
	return (&decision{s: s, f: f}).reply(*p, steering.Step{})
}

// Born counts the agents that this State has heard: the session does not pass on a request of an earlier one.
func (s *State) Born() int64 { return s.born }

// begin forgets the conversation about another task.
func (d *decision) begin(task string) {
	if d.s.Task != task {
		d.over()
		d.s.next(task, steering.State{})
	}
}

// decide what is done about what is wrong: one thing at most, with the number of its step. Nothing is said in calls for titles and
// summaries, and in repeated calls.
func (d *decision) decide(at steering.TurnContext) (act steering.Step, number int64) {
	for _, e := range d.s.Anomalies.Look(d.f.Terms.Rules.Thresholds, at.Now) {
		d.note(at, d.s.Steering.Over(e), false)
	}
	for {
		step, more := d.s.Steering.Decide(d.s.Anomalies.Episodes, at, d.f.Terms.Rules)
		if !more {
			return act, number
		}
		act, number = step, d.note(at, step, step.Halts())
	}
}

// place in a request for what is said in it: after the given number of entries, or why there is none.
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

// reply to a request: what people and checkpoints have to say goes with what is done about it. If the request has no place for a text, the
// next one gets it.
func (d *decision) reply(p Pending, step steering.Step) (Reply, Effects) {
	s, turn := d.s, p.turn
	was := s.thread(turn.Thread)
	directed, posted := d.directed(turn, p.request.Conversation().List(), p.place.after), d.posted(turn, p.place.after)
	words := together(due{was.Unsaid, func() { was.Unsaid = "" }}, due{step.Message, func() {}}, posted, directed)
	d.e.Keep = d.e.Keep || words.text != ""
	said := dialect.Edits{Notes: was.Notes, Cuts: was.Cuts, NoTools: was.Bare > 0 || step.Rung == steering.NoTools}
	if step.Rung == steering.Surgery {
		said = d.operated(p, step, said)
	}
	reply := Reply{Body: p.request.Bytes(), Thread: turn.Thread, Turn: turn.Number}
	switch {
	case words.text != "" && p.place.none == nil:
		said.Notes = append(slices.Clip(said.Notes), dialect.Note{After: p.place.after, Text: words.text})
		words.told()
	case words.text != "":
		reply.Unplaced = p.place.none
		s.later(turn.Thread, step.Message)
	}
	if !said.Empty() {
		s.remember(turn.Thread, turn.Messages, said)
		if step.Rung == steering.NoTools && turn.Kind == conversation.KindMain {
			s.Bared = &Bared{Thread: turn.Thread, Turn: p.runTurn, Finding: step.Finding}
		}
		reply.Body = p.request.Steer(said, turn.Ends)
	}
	d.tell()
	reply.Exchange = Exchange{thread: turn.Thread, turn: p.runTurn, tools: p.request.Tools && was.Bare == 0, born: p.born}
	return reply, d.effects(reply.Body)
}
