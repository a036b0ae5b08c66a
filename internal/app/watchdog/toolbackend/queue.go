// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbackend

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/tools"
)

const (
	// maxOperations of one task: each is a line of the journal.
	maxOperations = 1000
	// maxQuestions of a Feature: each is kept for good.
	maxQuestions = 200
)

// Queue holds the agent's requests without an answer. Only the loop's goroutine may use it.
type Queue struct {
	backend *Backend
	journal Journal
	// open: the task accepts patches.
	open bool
	// ended: the agent is to be ended, so that it does not hear an answer any more. The next attempt tells it.
	ended  bool
	task   string
	orders protocol.Orders
	// patches that wait, the oldest first, and the one that is being checked.
	patches []*PatchCall
	taken   *PatchCall
	asked   []*questionCall
}

// Handle takes a call, and answers it at once if it can; See returns the others.
func (q *Queue) Handle(c Call) {
	switch {
	case c.patch != nil:
		q.submit(c.patch)
	case c.question != nil:
		q.ask(c.question)
	case c.complete != nil:
		c.complete.done <- q.complete(c.complete.summary)
	}
}

// See takes the state of the run, and returns what the agent has asked for.
func (q *Queue) See(s supervise.State, o protocol.Orders) supervise.Tools {
	q.open, q.ended, q.task, q.orders = s.TakesPatches(), s.Stopped(), s.AtWork(), o
	q.backend.view.Store(&view{orders: o, task: q.task, tasks: s.Status("").Tasks})
	q.patches = slices.DeleteFunc(q.patches, func(p *PatchCall) bool {
		if !q.open {
			p.done <- patchDone{err: errClosed}
		}
		return !q.open || p.ctx.Err() != nil
	})
	j := q.journal.State()
	q.asked = slices.DeleteFunc(q.asked, func(c *questionCall) bool {
		done := questionDone{answer: answerTo(o, c.ID), guess: j.Asked != nil && j.Asked.ID == c.ID && q.guesses(j, *j.Asked)}
		over := !q.ended && (done.answer != nil || done.guess)
		if over {
			c.done <- done
		}
		return over || c.ctx.Err() != nil
	})
	t := supervise.Tools{Patches: len(q.patches), Asking: len(q.asked) > 0}
	if i := s.Current(); i >= 0 {
		t.Completed = j.Tasks[s.Tasks[i].Name].Completed
	}
	if j.Asked != nil && answerTo(o, j.Asked.ID) == nil {
		asked := *j.Asked
		asked.Guess = q.guesses(j, asked)
		t.Question = &asked
	}
	return t
}

// Waits returns the question of the agent at work that waits for its answer under these orders; nil for none.
func (q *Queue) Waits(o protocol.Orders) *protocol.Question {
	j := q.journal.State()
	if task := j.Tasks[j.Working()]; j.Asked == nil || task.Parking || answerTo(o, j.Asked.ID) != nil || q.guesses(j, *j.Asked) {
		return nil
	}
	return j.Asked
}

// guesses says whether the agent has to continue without the answer to its question, by the policy that is pinned for its task.
func (q *Queue) guesses(j journal.State, asked protocol.Question) bool {
	return j.Tasks[j.Working()].Policy.Questions.Guess(asked.At, q.backend.now())
}

// Take returns the patch that has waited longest, for a check; nil if its caller has gone. Finish answers it.
func (q *Queue) Take() *PatchCall {
	for len(q.patches) > 0 && q.taken == nil {
		call := q.patches[0]
		q.patches = q.patches[1:]
		if call.ctx.Err() == nil {
			q.taken = call
		}
	}
	return q.taken
}

// Finish answers the patch that was taken.
func (q *Queue) Finish(result tools.PatchResult, err error) {
	if q.taken != nil {
		q.taken.done <- patchDone{result: result, err: err}
		q.taken = nil
	}
}

// submit puts a patch into the queue, unless it is answered already.
func (q *Queue) submit(call *PatchCall) {
	task := q.journal.State().Tasks[q.task]
	var done patchDone
	known := false
	if q.task != "" {
		done.result, known, done.err = checkpoint.Recall(task, call.Patch)
	}
	switch {
	case known || done.err != nil:
	case !q.open, !task.Completed.IsZero():
		done.err = errClosed
	case len(task.Operations)+len(q.patches) >= maxOperations:
		done.err = fmt.Errorf("the task has had %d operations, which is the limit: complete it or exit", maxOperations)
	default:
		q.patches = append(q.patches, call)
		return
	}
	call.done <- done
}

// ask journals a new question.
func (q *Queue) ask(call *questionCall) {
	j := q.journal.State()
	task := j.Tasks[q.task]
	text, asked := j.Questions[call.ID]
	waiting := q.Waits(q.orders)
	call.At = q.backend.now()
	if same := task.Asked; same != nil && same.ID == call.ID { // it waits since then, also in another attempt
		call.At = same.At
	}
	done := questionDone{answer: answerTo(q.orders, call.ID)}
	switch {
	case q.task == "", q.ended:
		done = questionDone{err: errClosed}
	case asked && text != call.Text:
		done = questionDone{err: fmt.Errorf("question_id %s belongs to another question: use a new id", call.ID)}
	case done.answer != nil:
	case task.Policy.Questions.Asking == policy.AskOff:
		done.err = errors.New("the policy of this project lets no agent ask users: decide by yourself")
	case waiting != nil && waiting.ID != call.ID:
		done.err = fmt.Errorf("question %s (%q) still waits for its answer: ask one at a time, and ask that one again with its question_id", waiting.ID, waiting.Text)
	case waiting != nil:
		q.asked = append(q.asked, call)
		return
	case !asked && len(j.Questions) >= maxQuestions:
		done.err = fmt.Errorf("you have asked %d questions, and there is no answer to more: decide by yourself", maxQuestions)
	case asked && q.guesses(j, call.Question): // which is known: an agent that asks again and again writes no record each time
		done.guess = true
	default:
		done.guess = q.guesses(j, call.Question)
		if done.err = q.journal.Note(journal.Record{Asked: &call.Question}); done.err == nil && !done.guess {
			q.asked = append(q.asked, call)
			return
		}
	}
	call.done <- done
}

func (q *Queue) complete(summary string) error {
	switch {
	case q.task == "":
		return errClosed
	case !q.journal.State().Tasks[q.task].Completed.IsZero():
		return nil
	case q.taken != nil, len(q.patches) > 0:
		return errors.New("the check of a patch is still under way: wait for its answer first")
	}
	return q.journal.Note(journal.Record{TaskCompleted: &journal.TaskCompleted{Name: q.task, Summary: summary}})
}

func answerTo(o protocol.Orders, id string) *protocol.Answer {
	for i := range o.Answers {
		if o.Answers[i].Question == id {
			return &o.Answers[i]
		}
	}
	return nil
}
