// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// State is the result of a journal's records. The zero State is that of an empty journal.
type State struct {
	// Epoch of the newest attempt, and its kind of run.
	Epoch int64
	Run   string
	// Orders as last received; nil before the first.
	Orders *protocol.Orders
	// Base, once it was fetched.
	Base *Base
	// Planned is the newest plan that a model has made of the work; nil before it, and for work that no model plans. Replaced is the plan before
	// it, which the newest orders may still have.
	Planned  *Planned           `json:",omitempty"`
	Replaced *protocol.Proposal `json:",omitempty"`
	// Approved is the hash of the newest plan once a user has approved it; empty before that.
	Approved string `json:",omitempty"`
	// Tasks that have begun, by name.
	Tasks map[string]Task
	// Sequence of the newest checkpoint.
	Sequence int64
	// Chain is the newest checkpoint, valid or not.
	Chain Checkpoint
	// Workspace is what that checkpoint left the workspace as.
	Workspace Workspace
	// Promoted is the newest promoted state; the base before the first promotion.
	Promoted Promoted
	// Start is the tree that an attempt starts from: the last promoted one, or the one that a user has restored since.
	Start string
	// Pending is the intent that may not be carried out completely.
	Pending *Intent
	// Asked is the newest question of the current task's agent; nil for none. Questions are the texts of all questions since the Feature began, by id.
	Asked     *protocol.Question
	Questions map[string]string
	// Directives that were given to agents.
	Directives directives.Book `json:",omitempty"`
	// Results of gates on the tree on which gates ran last.
	Results []gates.Result `json:",omitempty"`
	// Proofs are the newest results of gates before the delivery; each counts on its own tree only.
	Proofs []gates.Result `json:",omitempty"`
	// Gated are the newest results of gates for people, the newest last.
	Gated []Gated `json:",omitempty"`
	// Added are the tasks that agents got because such gates had failed, for Critical directives of reviewers, or to polish the work. Spent is how many tasks failed gates have added since a
	// user decided last.
	Added []TaskAdded `json:",omitempty"`
	Spent int         `json:",omitempty"`
	// Reviews has how far each reviewer is. Found are the directives of reviewers that are not over, and Reviewed the newest reviews, for people.
	Reviews  review.History          `json:",omitempty"`
	Found    []protocol.Directive    `json:",omitempty"`
	Reviewed []protocol.ReviewStatus `json:",omitempty"`
	// Written are the documents of the project's knowledge that reviewers have written since the Feature began: their whole texts, by path.
	Written map[string]string `json:"written,omitempty"`
	// Unconfirmed are the paths of written documents that agents get once a user has merged them, and not before. They are sorted.
	Unconfirmed []string `json:"unconfirmed,omitempty"`
	// Proved is how many tasks each document has proved itself in since it has its text, by path: its agent had the document, and the task was done without a
	// violation and a failed gate.
	Proved map[string]int `json:",omitempty"`
	// Answered are the directives of reviewers that agents have answered since their reviewers looked, the oldest first.
	Answered []protocol.Directive `json:",omitempty"`
	// Diverged is the newest MajorDivergence that is not over; nil for none. Divergences is how many there were, and Decided how many of them were over when
	// a user decided last.
	Diverged    *Diverged `json:",omitempty"`
	Divergences int       `json:",omitempty"`
	Decided     int       `json:",omitempty"`
	// Requests that have a result, by id.
	Requests map[string]protocol.RequestReport
	// Breaker that is open.
	Breaker Breaker
	// Dropped are the checkpoints that lost their content.
	Dropped map[int64]bool
	// Steered is how the agent was steered so far.
	Steered Steered
	// Failures are the newest ones that agents had to correct since the Feature began, the oldest first.
	Failures []Failure `json:",omitempty"`
	// Squashed is why the promoted commit has no history of its own; nil if it has.
	Squashed *Squashed
	// Knowledge is the newest commit with the documents of reviewers; nil if there was none. It follows the commit that was promoted then.
	Knowledge *KnowledgeCommitted `json:",omitempty"`
	// Learned are all commits with documents of reviewers on the history of the promoted commit, the oldest first: the server may have taken each of them.
	Learned []KnowledgeCommitted `json:",omitempty"`
	// Pushed is the commit that the server has taken.
	Pushed string
	// Final report of the newest attempt that ended with one; Finished says that it is this very attempt.
	Final    *protocol.FinalReport
	Finished bool
}

// Working is the name of the agent's current task, which has begun and is not over, even if the orders no longer list it; empty if there
// is none.
func (s State) Working() string {
	if s.Orders != nil {
		for _, t := range s.Orders.Tasks {
			if have := s.Tasks[t.Name]; have.Begun && !have.Over() {
				return t.Name
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tasks)) {
		if have := s.Tasks[name]; have.Begun && !have.Over() {
			return name
		}
	}
	return ""
}

// Unfinished is a task that began in this attempt or in an earlier one, and is neither over nor dropped. It is the last such task in the
// orders or, if there is none, one that they no longer list. The name is empty if there is none.
func (s State) Unfinished() (name string, task Task) {
	unfinished := func(t Task) bool { return !t.Over() && t.started() }
	for _, known := range slices.Sorted(maps.Keys(s.Tasks)) {
		if have := s.Tasks[known]; unfinished(have) {
			name, task = known, have
		}
	}
	if s.Orders != nil {
		for _, t := range s.Orders.Tasks {
			if have := s.Tasks[t.Name]; unfinished(have) {
				name, task = t.Name, have
			}
		}
	}
	return name, task
}

// Checkpoint in the chain.
type Checkpoint struct {
	Sequence int64
	// Commit is empty before the first one.
	Commit string
}

// Workspace is the tree with which the next checkpoint is compared.
type Workspace struct {
	// Tree of it.
	Tree string
	// Judgement and TreeVerdict as in Intent; Settled is false for a tree that was not checked.
	Judgement   string
	TreeVerdict protocol.Verdict `json:"Standing"` // its name in snapshots since the first version
	Objection   string
	Settled     bool
}

// Promoted is a commit that may be delivered, and its tree.
type Promoted struct {
	Commit string
	Tree   string
}

// Replay adds records up.
func Replay(records []Record) (State, error) {
	var s State
	for i, r := range records {
		next, err := s.Apply(r)
		if err != nil {
			return State{}, &CorruptError{Line: i + 1, Reason: err.Error()}
		}
		s = next
	}
	return s, nil
}

// errNoAttempt: every journal begins with an attempt, or with a snapshot.
var errNoAttempt = errors.New("a record before the first attempt")

// Apply is the state after one more record. A record that cannot follow is an error.
func (s State) Apply(r Record) (State, error) {
	s.Tasks, s.Requests = maps.Clone(s.Tasks), maps.Clone(s.Requests)
	if s.Tasks == nil {
		s.Tasks, s.Requests = map[string]Task{}, map[string]protocol.RequestReport{}
	}
	if r.Attempt == nil && r.Snapshot == nil && s.Epoch == 0 {
		return s, errNoAttempt
	}
	err := s.apply(r)
	return s, err
}

func (s *State) apply(r Record) error {
	switch {
	case r.Snapshot != nil:
		return s.snapshot(*r.Snapshot)
	case r.Attempt != nil:
		return s.attempt(*r.Attempt)
	case r.Orders != nil:
		s.ordered(r.Orders)
	case r.Base != nil:
		return s.base(*r.Base)
	case r.Planned != nil:
		return s.planned(*r.Planned)
	case r.PlanApproved != nil:
		s.Approved = r.PlanApproved.Hash
	case r.TaskBegun != nil:
		return s.begun(*r.TaskBegun)
	case r.TaskCorrected != nil:
		s.Asked = nil // by an agent that has ended
		return s.corrected(*r.TaskCorrected)
	case r.TaskRestarted != nil:
		s.Asked = nil
		return s.restarted(*r.TaskRestarted)
	case r.TaskStarted != nil:
		return s.task(r.TaskStarted.Name, func(t *Task) { t.Start, t.Session = r.TaskStarted.Start, r.TaskStarted.Session })
	case r.TaskRejected != nil:
		return s.task(r.TaskRejected.Name, func(t *Task) { t.Rejected, t.RejectedReason = r.TaskRejected.Message, r.TaskRejected.Reason })
	case r.TaskCompleted != nil:
		return s.task(r.TaskCompleted.Name, func(t *Task) {
			t.Completed, t.Work.Summary = r.Time, plain.Line(r.TaskCompleted.Summary, protocol.MaxTaskSummary)
		})
	case r.Asked != nil:
		s.asked(*r.Asked)
	case r.TaskParked != nil:
		return s.task(r.TaskParked.Name, func(t *Task) { t.Parking = true })
	case r.Operation != nil:
		return s.operation(*r.Operation)
	case r.Calls != nil:
		return s.task(r.Calls.Name, func(t *Task) { t.Failing = r.Calls.Failure })
	case r.TaskEnded != nil:
		s.Asked = nil
		return s.task(r.TaskEnded.Name, func(t *Task) {
			t.Ended, t.ExitCode, t.Stopped, t.Failure = true, r.TaskEnded.ExitCode, r.TaskEnded.Stopped, r.TaskEnded.Failure
		})
	case r.TaskProving != nil:
		return s.proving(r.TaskProving.Name)
	case r.GateRan != nil:
		return s.gated(*r.GateRan)
	case r.DeliveryGateRan != nil:
		return s.proof(*r.DeliveryGateRan)
	case r.TaskAdded != nil:
		return s.added(*r.TaskAdded)
	case r.TaskDropped != nil:
		s.Asked = nil
		return s.task(r.TaskDropped.Name, func(t *Task) { *t = Task{Before: max(t.Before, t.Start)} })
	case r.TaskAborted != nil:
		s.Asked = nil
		return s.aborted(*r.TaskAborted)
	case r.Intent != nil:
		return s.intent(*r.Intent)
	case r.Withheld != nil:
		return s.withheld(*r.Withheld)
	case r.Done != nil:
		return s.done(*r.Done)
	case r.Told != nil, r.Acknowledged != nil, r.PlanMissing != nil: // for people: nothing is decided by it
	case r.Steered != nil:
		return s.steer(*r.Steered)
	case r.Directed != nil:
		s.directed(*r.Directed)
	case r.Reviewed != nil:
		return s.reviewed(r)
	case r.Request != nil:
		s.Requests[r.Request.ID] = *r.Request
	case r.Breaker != nil:
		s.Breaker = *r.Breaker
	case r.Dropped != nil:
		return s.dropped(*r.Dropped)
	case r.Squashed != nil:
		return s.squashed(*r.Squashed)
	case r.KnowledgeCommitted != nil:
		return s.knowledge(*r.KnowledgeCommitted)
	case r.Delivered != nil:
		s.Pushed = r.Delivered.Commit
	case r.Final != nil:
		s.failed(*r.Final)
		s.Final, s.Finished = r.Final, true
	default:
		return fmt.Errorf("an empty record")
	}
	return nil
}

// asked takes a question of the agent at work. One in a record of an earlier version does not say when the agent asked.
func (s *State) asked(q protocol.Question) {
	s.Asked, s.Questions = &q, with(s.Questions, q.ID, q.Text)
	if t, is := s.Tasks[s.Working()]; is && !q.At.IsZero() {
		t.Asked = &q
		s.Tasks[s.Working()] = t
	}
}

// ordered takes new orders. A task that is begun and that they do not list is to be dropped, even if later orders list it again.
func (s *State) ordered(o *protocol.Orders) {
	s.Orders = o
	for name, t := range s.Tasks {
		if t.Begun && !t.Over() && !slices.ContainsFunc(o.Tasks, func(listed protocol.Task) bool { return listed.Name == name }) {
			t.Unlisted = true
			s.Tasks[name] = t
		}
		s.prove(name)
	}
}

// planned takes a plan in place of the one before it.
func (s *State) planned(p Planned) error {
	switch {
	case (p.Plan == nil) == (p.Message == ""):
		return fmt.Errorf("a plan and a reason for having none")
	case p.Plan == nil && s.Planned != nil && s.Planned.Plan != nil:
		return fmt.Errorf("no plan after a plan")
	case s.Planned != nil:
		s.Replaced = s.Planned.Plan
	}
	if s.Replaced != nil && p.Request != "" {
		s.happens(review.Replanned)
	}
	if p.Plan != nil {
		s.Diverged = nil
	}
	s.Planned, s.Approved = &p, "" // a plan that comes back needs its approval again
	return nil
}

// attempt begins again what the attempt before has not done.
func (s *State) attempt(a Attempt) error {
	switch {
	case a.Epoch <= s.Epoch:
		return fmt.Errorf("attempt %d after attempt %d", a.Epoch, s.Epoch)
	case a.Run == "":
		return fmt.Errorf("attempt %d without its kind of run", a.Epoch)
	}
	// The attempt follows because a user has decided so. After an agent's attempt that was lost, nobody has: the final report is that of an attempt before it.
	decided := (s.Finished || s.Run != protocol.RunAgent) && s.Final != nil && s.Final.Outcome == protocol.OutcomeBlocked
	s.Epoch, s.Run, s.Finished, s.Asked = a.Epoch, a.Run, false, nil
	if _, inPods := s.Gating(); decided || !inPods {
		s.Results = gates.Lasting(s.Results)
	}
	if decided {
		s.Proofs, s.Spent = gates.Lasting(s.Proofs), 0
		s.Diverged, s.Decided = nil, s.Divergences
	}
	again := decided && s.again(a.Run)
	for name, t := range s.Tasks {
		switch {
		case t.Aborted && again && !protocol.Directs(name): // it begins as if for the first time
			s.Tasks[name] = Task{}
		case !t.Over():
			t.InPods = t.InPods && !decided
			s.Tasks[name] = t.next()
		}
	}
	if again {
		s.Reviews = s.Reviews.Back(s.TasksDone())
	}
	return nil
}

func (s *State) base(b Base) error {
	if b.Commit == "" || b.Tree == "" {
		return fmt.Errorf("a base without commit or tree")
	}
	if s.Base != nil && *s.Base != b {
		return fmt.Errorf("base %s after base %s, and a base never moves", b.Commit, s.Base.Commit)
	}
	s.Base = &b
	if s.Promoted == (Promoted{}) {
		s.Promoted, s.Start = Promoted(b), b.Tree
		s.Workspace = Workspace{Tree: b.Tree, TreeVerdict: protocol.Valid, Settled: true}
	}
	return nil
}

// with is a map with one more entry; the old one stays as it is.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	next := make(map[K]V, len(m)+1)
	maps.Copy(next, m)
	next[key] = value
	return next
}

func (s *State) intent(i Intent) error {
	switch {
	case s.Base == nil:
		return fmt.Errorf("checkpoint %d before there is a base", i.Sequence)
	case s.Pending != nil:
		return fmt.Errorf("checkpoint %d while checkpoint %d is not done", i.Sequence, s.Pending.Sequence)
	case i.Sequence <= s.Sequence:
		return fmt.Errorf("checkpoint %d after checkpoint %d", i.Sequence, s.Sequence)
	case i.Tree == "" || i.Delivery == "":
		return fmt.Errorf("checkpoint %d without tree or delivery", i.Sequence)
	case i.OldChain != s.Chain.Commit:
		return fmt.Errorf("checkpoint %d follows %q in the chain, and the chain ends with %q", i.Sequence, i.OldChain, s.Chain.Commit)
	case i.OldDelivery != s.Promoted.Commit:
		return fmt.Errorf("checkpoint %d follows delivery %q, and the delivery ends with %q", i.Sequence, i.OldDelivery, s.Promoted.Commit)
	}
	s.Pending, s.Sequence = &i, i.Sequence
	return nil
}

// withheld takes restore and promotion from the intent that is acted on.
func (s *State) withheld(w Withheld) error {
	switch i := s.Pending; {
	case i == nil || i.Sequence != w.Sequence:
		return fmt.Errorf("checkpoint %d withheld without its intent", w.Sequence)
	case i.Withheld != "" || w.Reason == "":
		return fmt.Errorf("checkpoint %d withheld twice, or for no reason", w.Sequence)
	}
	i := s.Pending.without(w)
	s.Pending = &i
	return nil
}

// dropped remembers which checkpoints have no content any more.
func (s *State) dropped(d Dropped) error {
	for _, c := range d.Checkpoints {
		switch {
		case c.Sequence > s.Sequence || c.Sequence < 1:
			return fmt.Errorf("the content of checkpoint %d dropped, and the newest is %d", c.Sequence, s.Sequence)
		case c.Tree == s.Promoted.Tree || c.Tree == s.Workspace.Tree || c.Tree == s.Start:
			return fmt.Errorf("the content of checkpoint %d dropped, which is still needed", c.Sequence)
		}
		s.Dropped = with(s.Dropped, c.Sequence, true)
	}
	return nil
}

// squashed replaces the promoted commit by one with the same tree.
func (s *State) squashed(q Squashed) error {
	switch {
	case s.Base == nil || s.Pending != nil:
		return fmt.Errorf("delivery %s replaced before there is one, or while a checkpoint is not done", q.Old)
	case q.Old != s.Promoted.Commit:
		return fmt.Errorf("delivery %s replaced, and the delivery ends with %s", q.Old, s.Promoted.Commit)
	case q.Commit == "" || q.Commit == q.Old:
		return fmt.Errorf("delivery %s replaced by %q", q.Old, q.Commit)
	}
	s.Promoted.Commit, s.Squashed, s.Learned = q.Commit, &q, nil // what follows the old history is not delivered any more
	return nil
}

// done makes the intent's outcome the newest state.
func (s *State) done(d Done) error {
	i := s.Pending
	if i == nil || i.Sequence != d.Sequence {
		return fmt.Errorf("checkpoint %d done without its intent", d.Sequence)
	}
	s.Pending = nil
	if i.TreeVerdict == protocol.Invalid {
		s.faulty(i.Report.Task)
	}
	s.Chain = Checkpoint{Sequence: i.Sequence, Commit: i.Commit}
	if i.Chosen {
		s.Start = i.Restore
	}
	s.chosen(*i)
	if i.Delivery != i.OldDelivery {
		if t, ok := s.Tasks[i.Report.Task]; ok {
			t.Work.Promoted++
			s.Tasks[i.Report.Task] = t
		}
		s.Promoted, s.Start, s.Squashed = Promoted{Commit: i.Delivery, Tree: i.Promoted()}, i.Promoted(), nil
	}
	s.Workspace = s.left(*i)
	if i.Operation != nil {
		if err := s.operation(*i.Operation); err != nil {
			return err
		}
	}
	if t, ok := s.Tasks[i.Report.Task]; ok && i.TakesBack && i.Withheld == "" {
		t.WentBack = WentBack{i.Sequence, i.Objection}
		s.Tasks[i.Report.Task] = t
		s.fails(Failure{Task: i.Report.Task, Told: i.Objection})
	}
	s.moved()
	if _, ok := s.Tasks[i.Completes]; ok {
		s.completed(i.Completes, *i)
	}
	if i.Aborts != "" {
		return s.gone(i.Aborts, *i)
	}
	return nil
}

// chosen remembers the tree that a user has restored, if it is older than the unfinished task. Work that the user took back must not come back with an
// abort of the task.
func (s *State) chosen(i Intent) {
	r := i.Report.Rollback
	name, t := s.Unfinished()
	if !i.Chosen || len(i.RestorePaths) > 0 || r == nil || r.Cause != protocol.RollbackByRequest || name == "" || r.To == 0 || r.To > t.Since {
		return
	}
	t.Chosen = i.Restore
	s.Tasks[name] = t
}

// left is what the workspace is after an intent. What was promoted is known to be good; any other tree that was put
// together still needs a check.
func (s *State) left(i Intent) Workspace {
	switch {
	case i.Withheld != "" && i.Operation != nil: // the begun patch was taken back
		return s.Workspace
	case i.Withheld != "": // it may be half restored
		return Workspace{Tree: i.Tree}
	}
	switch i.Restore {
	case "", i.Tree:
		return Workspace{Tree: i.Tree, Judgement: i.Judgement, TreeVerdict: i.TreeVerdict, Objection: i.Objection,
			Settled: i.Report.Settled}
	case s.Promoted.Tree:
		return Workspace{Tree: i.Restore, TreeVerdict: protocol.Valid, Settled: true}
	}
	return Workspace{Tree: i.Restore}
}

// Walk adds records up one by one, for a reader of a whole journal. In contrast to Apply it does not keep the states before.
type Walk struct{ state State }

// Next is the state after one more record; the call after it changes it. A record that cannot follow is an error.
func (w *Walk) Next(r Record) (State, error) {
	s := &w.state
	if r.Attempt == nil && r.Snapshot == nil && s.Epoch == 0 {
		return State{}, errNoAttempt
	}
	if s.Tasks == nil {
		s.Tasks = map[string]Task{}
	}
	if s.Requests == nil {
		s.Requests = map[string]protocol.RequestReport{}
	}
	err := s.apply(r)
	return *s, err
}
