// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/clip"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/directives"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
)

const (
	// maxNotes of a thread are remembered. Of more, the oldest half goes at once: each that is missing changes the request from there on, and a
	// provider has not cached what follows.
	maxNotes = 128
	// maxUnsaid bounds what waits to be said to a thread, in bytes: some six messages.
	maxUnsaid = 4096
	// maxStep is how much of a path is remembered for people, in bytes.
	maxStep = 256
	// maxFiles that are told apart.
	maxFiles = 4096
)

// record is what is remembered of the conversation about a task.
type record struct {
	Task      string                 `json:"task"`
	Book      conversation.Book      `json:"book"`
	Anomalies anomaly.State          `json:"anomalies"`
	Steering  steering.State         `json:"steering"`
	Notes     map[int][]dialect.Note `json:"notes,omitempty"`
	Cuts      map[int][]dialect.Cut  `json:"cuts,omitempty"`
	// Unsaid is what could not be said to a thread yet, because a request had no place for it.
	Unsaid map[int]string `json:"unsaid,omitempty"`
	// Bare is, of a thread whose last turn has no tools, how many messages the request had: a client may send it once more.
	Bare map[int]int `json:"bare,omitempty"`
	// Bared is the turn without tools that the agent may end with; nil where there was none, or the agent has gone on after it.
	Bared *bared `json:"bared,omitempty"`
	// Directed is what the main thread was told of directives.
	Directed directives.Memory `json:"directed,omitempty"`
	// Stood: the main thread was told what people had said before it began, or before it was compacted.
	Stood bool `json:"stood,omitempty"`
	// Board has what the agent is to be told of its work, and what it was told.
	Board notice.Board `json:"board,omitzero"`
	// Turns of main threads, over all tasks.
	Turns int64 `json:"turns"`
	// Attempt that it was kept in last.
	Attempt int64 `json:"attempt,omitempty"`
	// Act that is wanted, and the number of the newest one, over all tasks.
	Act  *Act  `json:"act,omitempty"`
	Acts int64 `json:"acts,omitempty"`
	Seen seen  `json:"seen"`
}

// seen are the figures of a status report.
type seen struct {
	Tool         string                `json:"tool,omitempty"`
	Step         string                `json:"step,omitempty"`
	Call         conversation.Digest   `json:"call"`
	Iterations   int64                 `json:"iterations,omitempty"`
	Failures     int64                 `json:"failures,omitempty"`
	InARow       int64                 `json:"inARow,omitempty"`
	Files        []conversation.Digest `json:"files,omitempty"`
	Model        string                `json:"model,omitempty"`
	Tokens       int64                 `json:"tokens,omitempty"`
	Window       int64                 `json:"window,omitempty"`
	TokensBefore int64                 `json:"tokensBefore,omitempty"`
}

// forget what was said behind messages that are not there any more, and to threads that nothing is remembered of.
func (r *record) forget(turn conversation.Turn) {
	gone := func(thread int) bool {
		return !slices.ContainsFunc(r.Book.Threads, func(t *conversation.Thread) bool { return t.ID == thread })
	}
	maps.DeleteFunc(r.Notes, func(thread int, _ []dialect.Note) bool { return gone(thread) })
	maps.DeleteFunc(r.Cuts, func(thread int, _ []dialect.Cut) bool { return gone(thread) })
	maps.DeleteFunc(r.Bare, func(thread, messages int) bool {
		return gone(thread) || thread == turn.Thread && messages != turn.Messages
	})
	maps.DeleteFunc(r.Unsaid, func(thread int, _ string) bool { return gone(thread) })
	r.align(turn)
}

// align what was said in a thread, and what was left out of it, with its new request. What stood behind something that was in one request alone
// stands behind what comes before that.
func (r *record) align(turn conversation.Turn) {
	notes, cuts := r.Notes[turn.Thread], r.Cuts[turn.Thread]
	if turn.Fleeting && turn.Aligned > 0 {
		for i := range notes {
			notes[i].After = min(notes[i].After, turn.Aligned)
		}
		if turn.Kind == conversation.KindMain {
			r.Directed = r.Directed.Within(turn.Aligned)
			r.Board.Within(turn.Aligned)
		}
	}
	gone := func(c dialect.Cut) bool { return c.To > turn.Aligned }
	notes = slices.DeleteFunc(notes, func(n dialect.Note) bool {
		// What says that something is left out goes with that.
		return n.After > turn.Aligned || slices.ContainsFunc(cuts, func(c dialect.Cut) bool { return gone(c) && c.From == n.After })
	})
	if delete(r.Notes, turn.Thread); len(notes) > 0 {
		r.Notes[turn.Thread] = notes
	}
	cuts = slices.DeleteFunc(cuts, gone)
	if delete(r.Cuts, turn.Thread); len(cuts) > 0 {
		r.Cuts[turn.Thread] = cuts
	}
}

// next is what is remembered when the agent begins anew, on the same task or another.
func (r *record) next(task string, s steering.State) record {
	r.Board.Anew()
	return record{Task: task, Anomalies: anomaly.State{Task: task}, Steering: s, Board: r.Board, Turns: r.Turns, Attempt: r.Attempt, Acts: r.Acts}
}

// note what was said, and what was left out.
func (r *record) note(thread, messages int, said dialect.Steering) {
	if r.Notes == nil {
		r.Notes = map[int][]dialect.Note{}
	}
	if r.Cuts == nil {
		r.Cuts = map[int][]dialect.Cut{}
	}
	if r.Bare == nil {
		r.Bare = map[int]int{}
	}
	if said.NoTools {
		r.Bare[thread] = messages
	}
	if r.Notes[thread] = said.Notes; len(said.Notes) > maxNotes {
		r.Notes[thread] = slices.Clone(said.Notes[len(said.Notes)-maxNotes/2:])
		r.Stood = false // what stands may have been said in one of them
	}
	if delete(r.Cuts, thread); len(said.Cuts) > 0 {
		r.Cuts[thread] = said.Cuts
	}
}

// later is what has to be said with a thread's next request, beside what waits already. The newest has room.
func (r *record) later(thread int, text string) {
	if r.Unsaid == nil {
		r.Unsaid = map[int]string{}
	}
	waiting := r.Unsaid[thread]
	for waiting != "" && len(both(waiting, text)) > maxUnsaid {
		_, waiting, _ = strings.Cut(waiting, between)
	}
	r.Unsaid[thread] = both(waiting, text)
}

// figures of a turn.
func (r *record) figures(turn conversation.Turn) {
	if turn.Again {
		return
	}
	if turn.Kind == conversation.KindMain {
		r.Turns++
	}
	for _, step := range turn.Steps {
		r.Seen.step(step)
	}
}

func (s *seen) step(step conversation.Step) {
	call := conversation.Sum([]byte(step.Call.Name), step.Call.Arguments.Digest[:])
	if call != s.Call {
		s.Iterations = 0
	}
	s.Tool, s.Call, s.Iterations = step.Call.Name, call, s.Iterations+1
	path := step.Call.Reads()
	s.Step = clip.Bytes(cmp.Or(path, step.Call.Edit.Path), maxStep)
	if step.Failure != conversation.FailureNone {
		s.Failures, s.InARow = s.Failures+1, s.InARow+1
		return
	}
	s.InARow = 0
	if path != "" && len(s.Files) < maxFiles {
		if at, known := slices.BinarySearchFunc(s.Files, conversation.Sum([]byte(path)), conversation.Digest.Compare); !known {
			s.Files = slices.Insert(s.Files, at, conversation.Sum([]byte(path)))
		}
	}
}

// answered takes what an answer says of the model. How full its window is counts for the main thread.
func (r *record) answered(thread int, a *conversation.Answer, window int64) {
	if !r.main(thread) {
		return
	}
	if a.Model != "" {
		r.Seen.Model = a.Model
	}
	if a.Counted {
		r.Seen.TokensBefore, r.Seen.Tokens = r.Seen.Tokens, a.Usage.Total()
	}
	if window > 0 {
		r.Seen.Window = window
	}
}
