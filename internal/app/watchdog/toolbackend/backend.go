// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolbackend is the backend of the agent's tools. Calls arrive in any goroutine at the Backend and go to the loop as
// events. Its Queue answers them.
package toolbackend

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/tools"
)

// Journal stores the answers to an agent's calls.
type Journal interface {
	Note(journal.Record) error
	State() journal.State
}

// errClosed is the answer to an agent that calls a tool after its task is over.
var errClosed = errors.New("no task accepts calls: the task is complete, or the attempt is ending")

// Backend is the backend of the tool server. Its methods are safe for concurrent use.
type Backend struct {
	journal Journal
	trees   func() (*objects.Tree, error)
	calls   chan Call
	// answered gets the answer that reached the agent.
	answered func(question string)
	now      func() time.Time
	// view is how things stood when the loop told it last.
	view   atomic.Pointer[view]
	closed chan struct{}
	once   sync.Once
}

var _ tools.Backend = (*Backend)(nil)

// view is what an agent may know of the loop's state.
type view struct {
	orders protocol.Orders
	task   string
	tasks  []protocol.TaskStatus
}

// New makes a backend, and the queue behind it, which only the loop may use. The function tree returns the tree of the workspace now. The
// backend calls answered with each answer that the agent gets. The function now is the clock.
func New(j Journal, tree func() (*objects.Tree, error), answered func(question string), now func() time.Time) (*Backend, *Queue) {
	b := &Backend{journal: j, trees: tree, answered: answered, now: now, calls: make(chan Call), closed: make(chan struct{})}
	b.view.Store(&view{})
	return b, &Queue{backend: b, journal: j}
}

// Calls are the events for the loop, which hands each to the queue.
func (b *Backend) Calls() <-chan Call { return b.calls }

// Close ends every call that has no answer, and every later call: the loop is over, and the next watchdog decides about the task.
func (b *Backend) Close() { b.once.Do(func() { close(b.closed) }) }

// Call is a request of the agent; one of the fields is set.
type Call struct {
	patch    *PatchCall
	question *questionCall
	complete *completeCall
}

// PatchCall is one call of repo_apply_patch that waits for its result.
type PatchCall struct {
	checkpoint.Patch
	ctx  context.Context //nolint:containedctx // tells the queue that the caller has gone
	done chan patchDone
}

type patchDone struct {
	result tools.PatchResult
	err    error
}

type questionCall struct {
	protocol.Question
	ctx  context.Context //nolint:containedctx // tells the queue that the caller has gone
	done chan questionDone
}

type questionDone struct {
	// answer of a user; nil if there is none. guess: nobody is waited for.
	answer *protocol.Answer
	guess  bool
	err    error
}

type completeCall struct {
	summary string
	done    chan error
}

// send hands a call to the loop, and says false where nothing takes it.
func (b *Backend) send(ctx context.Context, c Call) bool {
	select {
	case b.calls <- c:
		return true
	case <-ctx.Done():
	case <-b.closed:
	}
	return false
}

// Context implements tools.Backend.
func (b *Backend) Context() tools.Context {
	j, v := b.journal.State(), b.view.Load()
	o, task := v.orders, j.Tasks[v.task]
	c := tools.Context{
		Feature: o.Feature.Namespace + "/" + o.Feature.Name, Task: v.task, Tasks: v.tasks, Base: j.Base.Commit, Head: j.Promoted.Commit,
		AllowedAreas: task.Plan.Allowed, PlannedAreas: task.Plan.Proposed, ForbiddenAreas: task.Plan.Forbidden, ProtectedPaths: task.Policy.Paths.Protected, Answers: o.Answers,
	}
	if f := task.Plan.Files; f != nil {
		c.PlannedFiles = &tools.PlannedFiles{Create: f.Create, Modify: f.Modify, Delete: f.Delete}
	}
	for _, t := range o.Tasks {
		if t.Name == v.task {
			c.Prompt, c.Instructions = o.Prompt, t.Instructions
		}
	}
	return c
}

// Tree implements tools.Backend.
func (b *Backend) Tree() (*objects.Tree, error) {
	select {
	case <-b.closed:
		return nil, tools.ErrAway
	default:
		return b.trees()
	}
}

// Apply implements tools.Backend.
func (b *Backend) Apply(ctx context.Context, operation, patch string) (tools.PatchResult, error) {
	call := &PatchCall{Patch: checkpoint.Patch{ID: operation, Text: patch}, ctx: ctx, done: make(chan patchDone, 1)}
	if !b.send(ctx, Call{patch: call}) {
		return tools.PatchResult{}, tools.ErrAway
	}
	select {
	case done := <-call.done:
		return done.result, done.err
	case <-ctx.Done():
	case <-b.closed:
	}
	return tools.PatchResult{}, tools.ErrAway
}

// Ask implements tools.Backend.
func (b *Backend) Ask(ctx context.Context, q protocol.Question) (tools.Answer, error) {
	call := &questionCall{Question: q, ctx: ctx, done: make(chan questionDone, 1)}
	if !b.send(ctx, Call{question: call}) {
		return b.unanswered(q.ID)
	}
	select {
	case done := <-call.done:
		if done.answer != nil {
			b.answered(q.ID)
		}
		return answered(q.ID, done), done.err
	case <-ctx.Done():
	case <-b.closed:
	}
	return b.unanswered(q.ID)
}

// unanswered is for a question that nobody has answered in time, or that there is nobody to hear of.
func (b *Backend) unanswered(id string) (tools.Answer, error) {
	select {
	case <-b.closed:
		return tools.Answer{}, tools.ErrAway
	default:
		return answered(id, questionDone{}), nil
	}
}

func answered(id string, done questionDone) tools.Answer {
	switch {
	case done.answer != nil:
		return tools.Answer{QuestionID: id, Status: tools.Answered, Answer: done.answer.Text}
	case done.guess:
		return tools.Answer{QuestionID: id, Status: tools.Guess, Message: "nobody answers now: continue with your best guess, and say in your summary what you assumed. The supervisor tells you an answer that comes later"}
	}
	return tools.Answer{QuestionID: id, Status: tools.Waiting, Message: "the question has no answer yet: ask again with the same question_id"}
}

// Asks implements tools.Backend.
func (b *Backend) Asks() bool {
	j := b.journal.State()
	return j.Tasks[j.Working()].Policy.Questions.Asking != policy.AskOff
}

// Complete implements tools.Backend.
func (b *Backend) Complete(ctx context.Context, summary string) error {
	call := &completeCall{summary: summary, done: make(chan error, 1)}
	if !b.send(ctx, Call{complete: call}) {
		return tools.ErrAway
	}
	select {
	case err := <-call.done:
		return err
	case <-b.closed:
		return tools.ErrAway
	}
}
