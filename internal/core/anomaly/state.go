// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
)

// Bounds of what is remembered.
const (
	// maxSteps of a thread are enough to see the highest tier of a repetition every second turn, with some calls at once in each turn.
	maxSteps = 96
	// maxTurnSteps are the most steps of one turn that are looked at.
	maxTurnSteps = 16
	// maxTurns are enough for the highest tier of a cycle of four turns, and for a stall as roles have it.
	maxTurns = 24
	// maxEdits and maxTrees are enough for the highest tier of going back and forth.
	maxEdits, maxTrees = 16, 16
)

// State is what the watchdog has seen of an agent. The zero value has seen nothing. It is stored as JSON.
type State struct {
	// Task that the agent works on, by its name; "" where it has none.
	Task string `json:"task,omitempty"`
	// RunTurn is the turn of the run, which users see: it counts the turns of main threads, over all agents, tasks and attempts. The caller sets it.
	RunTurn int64     `json:"runTurn,omitempty"`
	Threads []*Thread `json:"threads,omitempty"`
	// Changes counts the observed changes in the workspace.
	Changes int64 `json:"changes,omitempty"`
	// Trees that were captured, the newest last, and how many times in a row one came that had been there before.
	Trees []sum `json:"trees,omitempty"`
	// Succeeded counts the calls that have brought something since the newest checkpoint that was valid.
	Succeeded int `json:"succeeded,omitempty"`
	Returns   int `json:"returns,omitempty"`
	// Refused counts the trees in a row whose checkpoint was not valid.
	Refused int  `json:"refused,omitempty"`
	Valid   bool `json:"valid,omitempty"`
	// Moved is the time of the last activity. It excludes signs of life, which Printed has: output of the agent, and data that only keeps the
	// connection of an answer open. Worked also excludes the computing of processes.
	Moved   time.Time `json:"moved,omitzero"`
	Worked  time.Time `json:"worked,omitzero"`
	Printed time.Time `json:"printed,omitzero"`
	// Used is the newest pulse, and Pulsed when it was taken.
	Used   Pulse     `json:"used,omitzero"`
	Pulsed time.Time `json:"pulsed,omitzero"`
	// Acted is when the model called a tool for the first time since the agent was started.
	Acted time.Time `json:"acted,omitzero"`
	// Episodes that are not over, most urgent first, and within one kind the main thread's first. There is at most one of a kind for
	// each thread.
	Episodes []Episode `json:"episodes,omitempty"`
}

// Thread is what was seen of one thread of the conversation.
type Thread struct {
	ID   int               `json:"id"`
	Kind conversation.Kind `json:"kind"`
	// Turn is the number of the newest turn, and Heard when it came.
	Turn  int64     `json:"turn"`
	Heard time.Time `json:"heard,omitzero"`
	// Task is the turn with the newest instruction.
	Task int64 `json:"task,omitempty"`
	// Told is the newest text from a user or the client, and Spoken the turn in which it was new.
	Told   sum   `json:"told,omitempty"`
	Spoken int64 `json:"spoken,omitempty"`
	// Idle counts the turns that brought nothing.
	Idle int `json:"idle,omitempty"`
	// Asked is the time of the request that a model has not answered, and Answered the end of the newest answer.
	Asked    time.Time `json:"asked,omitzero"`
	Answered time.Time `json:"answered,omitzero"`
	// Calls says that tools are at work, and Sleeps is the waiting time that they announced.
	Calls  bool          `json:"calls,omitempty"`
	Sleeps time.Duration `json:"sleeps,omitempty"`
	Steps  []step        `json:"steps,omitempty"`
	// File that was read or written last, as findings name it.
	File  string `json:"file,omitempty"`
	Turns []turn `json:"turns,omitempty"`
	Edits []edit `json:"edits,omitempty"`
	// Changes of the workspace that this thread knows of, and Own counts the turns in which it has changed something itself.
	Changes int64 `json:"changes,omitempty"`
	Own     int64 `json:"own,omitempty"`
	// Words of the model, and the number of turns in which they were the same and brought nothing.
	Words sum `json:"words,omitempty"`
	Same  int `json:"same,omitempty"`
	// Fails counts the consecutive turns without a success and without a change.
	Fails int `json:"fails,omitempty"`
	// Fill is the used part of the window after the newest answers, in thousandths. Compacts is the lowest fill at which the client compacted,
	// and Left the fill after the newest compaction. Window of the model that answered last, in tokens.
	Fill     []int `json:"fill,omitempty"`
	Compacts int   `json:"compacts,omitempty"`
	Left     int   `json:"left,omitempty"`
	Window   int64 `json:"window,omitempty"`
	// Before has the results of calls before the newest compaction. Known counts the later calls with the same results, and News the others.
	// Rounds is the number of consecutive compactions before which most results were known and nothing had changed since Began.
	Before []sum `json:"before,omitempty"`
	Known  int   `json:"known,omitempty"`
	News   int   `json:"news,omitempty"`
	Rounds int   `json:"rounds,omitempty"`
	Began  int64 `json:"began,omitempty"`
	// Errors is the number of consecutive errors instead of an answer, and Asks the number of consecutive requests without anything new.
	// Troubled is the time of the first of them, and Status the newest status.
	Errors    int       `json:"errors,omitempty"`
	Asks      int       `json:"asks,omitempty"`
	Permanent int       `json:"permanent,omitempty"`
	Troubled  time.Time `json:"troubled,omitzero"`
	Status    int       `json:"status,omitempty"`
	// Failing are the calls since the last good answer, and who is to blame for them.
	Failing failures.Streak `json:"failing,omitzero"`
	// Served says that a model has answered, and that no turn has come since.
	Served bool `json:"served,omitempty"`
}

// step is what is remembered of a call and its result.
type step struct {
	Turn    int64                `json:"t"`
	Tool    string               `json:"n,omitempty"`
	Program string               `json:"x,omitempty"`
	Call    sum                  `json:"c"`
	Result  sum                  `json:"r"`
	Failure conversation.Failure `json:"f,omitempty"`
	// Form of a command, and the sums of what a failure names, as in outcome; Fails counts them.
	Form    sum      `json:"o,omitempty"`
	Failing []uint32 `json:"i,omitempty"`
	Fails   int      `json:"j,omitempty"`
	// Path of the file that it is about, where it says one.
	Path sum `json:"h,omitempty"`
	// May says that it can change files, Fresh that it was not made before with the same result, and Wrote that it was fresh and files have changed.
	May   bool `json:"y,omitempty"`
	Fresh bool `json:"s,omitempty"`
	Wrote bool `json:"w,omitempty"`
	// Hard says that it failed in a way that no time heals, and Over that it succeeded and does not say that something has not ended.
	Hard bool `json:"d,omitempty"`
	Over bool `json:"u,omitempty"`
	// Waits says that it was there to wait, Long that it took its time, and Polls that it asks how far something is.
	Waits bool `json:"p,omitempty"`
	Long  bool `json:"g,omitempty"`
	Polls bool `json:"q,omitempty"`
	// Until says that it has waited for something itself, and has given up after its own time.
	Until bool `json:"l,omitempty"`
	// After says that the turn before slept: what is done again then looks how far something is.
	After bool `json:"a,omitempty"`
	// Bare says that the result says no more than that it failed.
	Bare bool `json:"b,omitempty"`
	// New says that it brought something that was not known, Varies that the same call gave another result the last time.
	New    bool `json:"k,omitempty"`
	Varies bool `json:"v,omitempty"`
	// Edits says that it was there to change a file, and did.
	Edits bool `json:"e,omitempty"`
	// Whole is how large the call was, in bytes, where it has written a whole file, and Lines are the lines with the lowest sums, sorted.
	Whole int      `json:"z,omitempty"`
	Lines []uint32 `json:"m,omitempty"`
}

// turn is what is remembered of a turn.
type turn struct {
	// Said is the digest of its steps, or of its words where it has none.
	Said sum `json:"s"`
	// Calls is the digest of its calls, without what came of them.
	Calls   sum   `json:"c,omitempty"`
	Changes int64 `json:"w,omitempty"`
	Fails   bool  `json:"f,omitempty"`
	Waits   bool  `json:"p,omitempty"`
	// Slept says that a call said that it waits, or that somebody woke the agent after a while.
	Slept bool `json:"l,omitempty"`
	// New says that it brought something, Varies that a call gave another result than the last time.
	New    bool `json:"n,omitempty"`
	Varies bool `json:"v,omitempty"`
}

// edit of a file: what it takes out and what it puts in. From is 0 where it writes the whole file.
type edit struct {
	Path sum   `json:"p"`
	From sum   `json:"f,omitempty"`
	To   sum   `json:"o,omitempty"`
	Call sum   `json:"c"`
	Turn int64 `json:"t"`
}

// thread by its number; it is made where there is none.
func (s *State) thread(id int, kind conversation.Kind) *Thread {
	for _, t := range s.Threads {
		if t.ID == id {
			if kind != "" {
				t.Kind = kind
			}
			return t
		}
	}
	t := &Thread{ID: id, Kind: kind}
	s.Threads = append(s.Threads, t)
	return t
}

// Retain keeps the known threads and forgets all others.
func (s *State) Retain(known func(thread int) bool) {
	s.Threads = slices.DeleteFunc(s.Threads, func(t *Thread) bool { return !known(t.ID) })
}

// Answer takes the end of an answer. Window is the context window of the model in tokens; 0 if it is unknown.
func (s *State) Answer(thread int, a conversation.Answer, window int64, now time.Time) {
	s.move(now)
	t := s.thread(thread, "")
	t.Asked = time.Time{}
	if a.Failure != "" {
		t.Errors++
		t.Failing = t.Failing.Hear(failures.Answer{Reason: failures.AnswerFailed}, now)
		t.trouble(now)
		return
	}
	t.Failing, t.Served = failures.Streak{}, true
	t.Errors, t.Permanent, t.Status, t.Answered = 0, 0, 0, now
	if t.Asks == 0 {
		t.Troubled = time.Time{}
	}
	if t.Calls, t.Sleeps = len(a.Tools) > 0, 0; t.Calls && s.Acted.IsZero() {
		s.Acted = now
	}
	for _, c := range a.Tools {
		t.Sleeps = max(t.Sleeps, takes(string(c.Arguments[:min(len(c.Arguments), conversation.MaxQuote)])))
	}
	if a.Counted && window > 0 {
		fill := int(min(max(a.Usage.Total(), 0), 2*window) * 1000 / window)
		if t.Window = window; t.Compacts > 0 && len(t.Fill) == 0 {
			t.Left = fill
		}
		t.Fill = capped(append(t.Fill, fill), 4)
	}
}

// Failed takes a call that the provider or the gateway has answered with an error.
func (s *State) Failed(thread int, a failures.Answer, now time.Time) {
	s.move(now)
	t := s.thread(thread, "")
	t.Asked = time.Time{}
	t.Errors++
	t.Failing = t.Failing.Hear(a, now)
	if t.Status = a.Status; lasting(a.Status) {
		t.Permanent++
	} else {
		t.Permanent = 0
	}
	t.trouble(now)
}

// move says that something more than a processor has moved.
func (s *State) move(now time.Time) { s.Moved, s.Worked = now, now }

func (t *Thread) trouble(now time.Time) {
	if t.Troubled.IsZero() {
		t.Troubled = now
	}
}

// lasting says that the same call will be answered in the same way.
func lasting(status int) bool {
	return status >= 400 && status < 500 && status != 408 && status != 409 && status != 425 && status != 429
}

// Work takes what changed in the workspace.
func (s *State) Work(w Work, now time.Time) {
	if w.Changed {
		s.Changes++
		s.move(now)
	}
	if valid := w.Verdict == "Valid"; w.Verdict != "" && valid != s.Valid {
		if s.Valid = valid; valid {
			s.Changes++
		}
	}
	if s.Valid {
		s.Refused = 0
	}
	tree := textSum(w.Tree)
	if n := len(s.Trees); w.Tree == "" || n > 0 && s.Trees[n-1] == tree {
		return
	}
	s.move(now)
	if w.Verdict == "Invalid" {
		s.Refused++
	}
	if s.Valid {
		s.Succeeded = 0
	}
	if slices.Contains(s.Trees, tree) {
		s.Returns++
	} else {
		s.Returns = 0
		s.Changes++
	}
	s.Trees = capped(append(s.Trees, tree), maxTrees)
}

// busy is the share of one core, as a divisor, below which processes only pass the time: processes of a waiting agent look at timers.
const busy = 50

// Pulse takes what the agent's processes have used.
func (s *State) Pulse(p Pulse, now time.Time) {
	was, since := s.Used, now.Sub(s.Pulsed)
	s.Used = p
	if s.Pulsed.IsZero() || p.Idle || p.Processes == 0 || p.Processes != was.Processes || (p.CPU-was.CPU)*busy >= max(since, time.Second) {
		s.Moved = now
	}
	if s.Worked.IsZero() || p.Idle || p.Processes == 0 {
		s.Worked = now
	}
	if p.Answers {
		s.move(now)
	}
	if p.Output != was.Output || p.Lives {
		s.Printed = now
	}
	s.Pulsed = now
}
