// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
	"github.com/tidewaiter/tidewaiter/internal/host/tools"
)

const (
	// maxOperations of one task: each is a line of the journal.
	maxOperations = 1000
	// maxQuestions of a Feature: each is kept for good.
	maxQuestions = 200
)

// errClosed is told to an agent that calls a tool when nothing more is taken from it.
var errClosed = errors.New("no task takes anything any more: it was completed, or the attempt is ending")

// desk is where the agent's calls arrive. The loop looks at what is on it whenever something happens; what it knows of
// the loop's state is what the loop told it last.
type desk struct {
	run *run
	// notify has a token when something new is on the desk.
	notify chan struct{}

	mu sync.Mutex
	// queue of patches, the oldest first.
	queue []*patchCall
	// laying: the patch that was taken last has no answer yet.
	laying bool
	// open: patches are taken for the task.
	open   bool
	task   string
	tasks  []contract.TaskStatus
	orders contract.Orders
	// changed is closed when orders change.
	changed chan struct{}
}

var _ tools.Desk = (*desk)(nil)

// patchCall is one call of repo_apply_patch that waits for its result.
type patchCall struct {
	id, patch string
	done      chan patchDone
}

type patchDone struct {
	result tools.PatchResult
	err    error
}

func newDesk(r *run) *desk {
	return &desk{run: r, notify: make(chan struct{}, 1), changed: make(chan struct{})}
}

// see tells the desk how things stand, and gives what is on it.
func (d *desk) see(s supervise.State, o contract.Orders) supervise.Tools {
	j := d.run.journal()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open, d.task, d.tasks = s.TakesPatches(), s.AtWork(), s.Status("").Tasks
	if !slices.Equal(d.orders.Answers, o.Answers) {
		close(d.changed)
		d.changed = make(chan struct{})
	}
	d.orders = o
	if !d.open {
		for _, call := range d.queue {
			call.done <- patchDone{err: errClosed}
		}
		d.queue = nil
	}
	t := supervise.Tools{Patches: len(d.queue), Completed: j.Tasks[d.current(s)].Completed}
	if q := j.Asked; q != nil && answerTo(o, q.ID) == nil {
		t.Question = q
	}
	return t
}

func (d *desk) current(s supervise.State) string {
	if i := s.Current(); i >= 0 {
		return s.Tasks[i].Name
	}
	return ""
}

// take is the patch that waits longest; nil where its caller has gone. It is answered with finish.
func (d *desk) take() *patchCall {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		return nil
	}
	call := d.queue[0]
	d.queue = d.queue[1:]
	d.laying = true
	return call
}

// finish answers a patch that was taken.
func (d *desk) finish(call *patchCall, done patchDone) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.laying = false
	call.done <- done
}

func (d *desk) tell() {
	select {
	case d.notify <- struct{}{}:
	default:
	}
}

// Context implements tools.Desk.
func (d *desk) Context() tools.Context {
	j := d.run.journal()
	d.mu.Lock()
	defer d.mu.Unlock()
	o, task := d.orders, j.Tasks[d.task]
	c := tools.Context{
		Feature: o.Feature.Namespace + "/" + o.Feature.Name, Task: d.task, Tasks: d.tasks, Base: j.Base.Commit, Head: j.Promoted.Commit,
		AllowedAreas: task.Plan.Allowed, ForbiddenAreas: task.Plan.Forbidden, ProtectedPaths: task.Policy.Paths.Protected, Answers: o.Answers,
	}
	if f := task.Plan.Files; f != nil {
		c.PlannedFiles = &tools.PlannedFiles{Create: f.Create, Modify: f.Modify, Delete: f.Delete}
	}
	for _, t := range o.Tasks {
		if t.Name == d.task {
			c.Prompt, c.Instructions = cmp.Or(t.Prompt, o.Prompt), t.Instructions
		}
	}
	return c
}

// Tree implements tools.Desk.
func (d *desk) Tree() (*objects.Tree, error) {
	_, now, err := d.run.engine.Trees()
	return now, err
}

// Apply implements tools.Desk.
func (d *desk) Apply(ctx context.Context, operation, patch string) (tools.PatchResult, error) {
	call := &patchCall{id: operation, patch: patch, done: make(chan patchDone, 1)}
	result, known, err := d.submit(call)
	if known || err != nil {
		return result, err
	}
	d.tell()
	select {
	case done := <-call.done:
		return done.result, done.err
	case <-ctx.Done():
		d.withdraw(call)
		return tools.PatchResult{}, fmt.Errorf("what becomes of the patch is not known yet, send it again with the same operation_id: %w", context.Cause(ctx))
	}
}

// submit puts a patch on the desk, unless it is answered already.
func (d *desk) submit(call *patchCall) (result tools.PatchResult, known bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.task == "" {
		return result, false, errClosed
	}
	task := d.run.journal().Tasks[d.task]
	result, known, err = recall(task, call)
	switch {
	case known || err != nil:
	case !d.open, !task.Completed.IsZero():
		err = errClosed
	case len(task.Operations)+len(d.queue) >= maxOperations:
		err = fmt.Errorf("the task has had %d operations, and no more are taken: complete it or exit", maxOperations)
	default:
		d.queue = append(d.queue, call)
	}
	return result, known, err
}

func (d *desk) withdraw(call *patchCall) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = slices.DeleteFunc(d.queue, func(c *patchCall) bool { return c == call })
}

// recall gives the answer to an operation that was answered before.
func recall(task journal.Task, call *patchCall) (result tools.PatchResult, known bool, err error) {
	switch o, standing := task.Recall(call.id, sumOf(call.patch)); standing {
	case journal.RecallReplay:
		if err := json.Unmarshal([]byte(o.Answer), &result); err != nil {
			return result, true, fmt.Errorf("%w: the answer to operation %s cannot be read: %w", errCorrupt, call.id, err)
		}
		return result, true, nil
	case journal.RecallMismatch:
		return result, false, fmt.Errorf("operation_id %s was used for another patch: use a new id for a new patch", call.id)
	case journal.RecallNew:
	}
	return result, false, nil
}

func sumOf(patch string) string {
	sum := sha256.Sum256([]byte(patch))
	return hex.EncodeToString(sum[:])
}

// Ask implements tools.Desk.
func (d *desk) Ask(ctx context.Context, q contract.Question) (tools.Answer, error) {
	changed, answer, err := d.ask(q)
	if answer != nil || err != nil {
		return answered(q.ID, answer), err
	}
	d.tell()
	for {
		select {
		case <-changed:
			d.mu.Lock()
			changed, answer = d.changed, answerTo(d.orders, q.ID)
			d.mu.Unlock()
			if answer != nil {
				return answered(q.ID, answer), nil
			}
		case <-ctx.Done():
			return answered(q.ID, nil), nil
		}
	}
}

// ask journals a question that is asked for the first time.
func (d *desk) ask(q contract.Question) (<-chan struct{}, *contract.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.run.journal()
	text, asked := j.Questions[q.ID]
	answer := answerTo(d.orders, q.ID)
	switch {
	case d.task == "":
		return nil, nil, errClosed
	case asked && text != q.Text:
		return nil, nil, fmt.Errorf("question_id %s was used for another question: use a new id", q.ID)
	case answer != nil:
		return d.changed, answer, nil
	case j.Asked != nil && j.Asked.ID != q.ID && answerTo(d.orders, j.Asked.ID) == nil:
		return nil, nil, fmt.Errorf("question %s still waits for its answer: ask one at a time", j.Asked.ID)
	case j.Asked != nil && j.Asked.ID == q.ID:
		return d.changed, nil, nil
	case !asked && len(j.Questions) >= maxQuestions:
		return nil, nil, fmt.Errorf("%d questions were asked, and no more are taken: decide by yourself", maxQuestions)
	}
	return d.changed, nil, d.run.book.Note(journal.Record{Asked: &q})
}

func answerTo(o contract.Orders, id string) *contract.Answer {
	for i := range o.Answers {
		if o.Answers[i].Question == id {
			return &o.Answers[i]
		}
	}
	return nil
}

func answered(id string, a *contract.Answer) tools.Answer {
	if a == nil {
		return tools.Answer{QuestionID: id, Status: tools.Waiting, Message: "nobody has answered yet: ask again with the same question_id"}
	}
	return tools.Answer{QuestionID: id, Status: tools.Answered, Answer: a.Text}
}

// Complete implements tools.Desk.
func (d *desk) Complete(_ context.Context, summary string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.task == "":
		return errClosed
	case !d.run.journal().Tasks[d.task].Completed.IsZero():
		return nil
	case d.laying, len(d.queue) > 0:
		return errors.New("a patch is still being judged: wait for its answer first")
	}
	err := d.run.book.Note(journal.Record{TaskCompleted: &journal.TaskCompleted{Name: d.task, Summary: summary}})
	d.tell()
	return err
}
