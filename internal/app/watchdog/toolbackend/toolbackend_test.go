// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbackend_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/toolbackend"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/tools"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// office is a backend whose loop is the test: the agent works on the task form.
type office struct {
	t *testing.T
	*toolbackend.Backend
	queue   *toolbackend.Queue
	journal *trusted.Journal
	state   supervise.State
	orders  protocol.Orders
	now     time.Time
	// told are the questions whose answers the agent got.
	told []string
}

func newOffice(t *testing.T, questions ...policy.Questions) *office {
	t.Helper()
	var pinned policy.Effective
	for _, q := range questions {
		pinned.Questions = q
	}
	j, err := trusted.OpenJournal(trusted.Dir(t.TempDir()), trusted.FoldAbove, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	for _, r := range []journal.Record{
		{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}}, {Base: &journal.Base{Commit: "b", Tree: "t"}}, {TaskBegun: &journal.TaskBegun{Name: "form", Policy: pinned}},
	} {
		if err := j.Note(r); err != nil {
			t.Fatal(err)
		}
	}
	o := &office{t: t, journal: j, now: time.Date(2026, 11, 28, 5, 0, 0, 0, time.UTC), state: supervise.State{Mode: policy.ModeDeterministic, Tasks: []supervise.Task{{Name: "form", Phase: supervise.Running}}}}
	o.Backend, o.queue = toolbackend.New(j, func() (*objects.Tree, error) { return nil, nil }, func(question string) { o.told = append(o.told, question) }, func() time.Time { return o.now })
	o.orders = protocol.Orders{Feature: protocol.FeatureRef{Namespace: "shop", Name: "login"}, Prompt: "Do it.", Tasks: []protocol.Task{{Name: "form", Instructions: "Well."}}}
	o.look()
	return o
}

// look is what the loop does after everything that happens.
func (o *office) look() supervise.Tools {
	seen := o.queue.See(o.state, o.orders)
	o.state = o.state.Apply(seen, time.Now())
	return seen
}

// hear takes the next call.
func (o *office) hear() supervise.Tools {
	o.queue.Handle(<-o.Calls())
	return o.look()
}

// patch sends one as an agent does, and gives what becomes of it.
func (o *office) patch(ctx context.Context, id, text string) <-chan string {
	done := make(chan string, 1)
	go func() {
		r, err := o.Apply(ctx, id, text)
		done <- strings.TrimSpace(fmt.Sprint(r.Status, " ", message(err)))
	}()
	return done
}

func (o *office) completed() <-chan string {
	done := make(chan string, 1)
	go func() { done <- message(o.Complete(context.WithoutCancel(o.t.Context()), "it is done")) }()
	return done
}

func (o *office) question(ctx context.Context, id, text string) <-chan string {
	done := make(chan string, 1)
	go func() {
		a, err := o.Ask(ctx, protocol.Question{ID: id, Text: text})
		done <- strings.TrimSpace(fmt.Sprint(a.Status, " ", a.Answer, message(err)))
	}()
	return done
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) || want == "" && got != "" {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// Patches are judged one at a time and in order; what was answered is answered the same again by the journal.
func TestPatchesAreTakenInOrder(t *testing.T) {
	o := newOffice(t)
	first := o.patch(t.Context(), "op1", "one")
	o.hear()
	second := o.patch(t.Context(), "op2", "two")
	if seen := o.hear(); seen.Patches != 2 {
		t.Errorf("%d patches wait, want 2", seen.Patches)
	}
	if call := o.queue.Take(); call == nil || call.ID != "op1" || call.Text != "one" {
		t.Fatalf("taken first: %+v", call)
	}
	o.queue.Finish(tools.PatchResult{Status: tools.Applied}, nil)
	want(t, "the first", <-first, "applied")
	if call := o.queue.Take(); call == nil || call.ID != "op2" {
		t.Fatalf("taken then: %+v", call)
	}
	o.queue.Finish(tools.PatchResult{}, fmt.Errorf("the volume is full"))
	want(t, "the second", <-second, "the volume is full")
	if call := o.queue.Take(); call != nil || o.look().Patches != 0 {
		t.Errorf("still waits: %+v", call)
	}
}

// An agent's word that its task is done closes the queue at once, and is not taken while a patch waits or is judged.
func TestCompletionIsTheLastWord(t *testing.T) {
	o := newOffice(t)
	patch := o.patch(t.Context(), "op1", "one")
	o.hear()
	early := o.completed()
	o.hear()
	want(t, "while a patch waits", <-early, "the check of a patch is still under way")
	o.queue.Take()
	early = o.completed()
	o.hear()
	want(t, "while a patch is judged", <-early, "the check of a patch is still under way")
	o.queue.Finish(tools.PatchResult{Status: tools.Applied}, nil)
	<-patch
	word := o.completed()
	o.queue.Handle(<-o.Calls()) // and the loop has not looked yet
	want(t, "afterwards", <-word, "")
	late := o.patch(t.Context(), "op2", "two")
	if seen := o.hear(); seen.Patches != 0 || seen.Completed.IsZero() {
		t.Errorf("on the desk: %+v", seen)
	}
	want(t, "a patch after the word", <-late, "no task accepts calls")
	again := o.completed()
	o.hear()
	want(t, "the word again", <-again, "")
}

// What waits is answered when the task takes nothing more, when its caller goes, and when the loop ends.
func TestNothingWaitsForEver(t *testing.T) {
	o := newOffice(t)
	waiting := o.patch(t.Context(), "op1", "one")
	o.hear()
	ctx, cancel := context.WithCancel(t.Context())
	gone := o.patch(ctx, "op2", "two")
	o.hear()
	cancel()
	want(t, "of a caller that goes", <-gone, tools.ErrAway.Error())
	if seen := o.look(); seen.Patches != 1 {
		t.Errorf("%d patches wait, want 1", seen.Patches)
	}
	o.state.End = supervise.Suspend
	if seen := o.look(); seen.Patches != 0 {
		t.Errorf("%d patches wait, want none", seen.Patches)
	}
	want(t, "of a task that ends", <-waiting, "no task accepts calls")
	never := o.patch(t.Context(), "op3", "three")
	asked := o.question(t.Context(), "q1", "Which?")
	o.Close()
	for what, answer := range map[string]string{"a patch": <-never, "a question": <-asked, "the word": <-o.completed()} {
		want(t, what+" after the loop", answer, tools.ErrAway.Error())
	}
	if _, err := o.Tree(); !errors.Is(err, tools.ErrAway) {
		t.Errorf("the tree after the loop: %v", err)
	}
}

// A question waits until its answer is ordered, is asked once, and one at a time.
func TestQuestionsWaitForTheirAnswer(t *testing.T) {
	o := newOffice(t)
	q1 := o.question(t.Context(), "q1", "Which colour?")
	if seen := o.hear(); seen.Question == nil || seen.Question.ID != "q1" {
		t.Errorf("the question is not told: %+v", seen)
	}
	again := o.question(t.Context(), "q1", "Which colour?")
	o.hear()
	for id, text := range map[string]string{"q1": "Which size?", "q2": "Which size?"} {
		refused := o.question(t.Context(), id, text)
		o.hear()
		if got := <-refused; !strings.Contains(got, "another question") && !strings.Contains(got, "one at a time") {
			t.Errorf("%s %s: %q", id, text, got)
		}
	}
	o.orders.Answers = []protocol.Answer{{Question: "q1", Text: "Blue."}}
	if seen := o.look(); seen.Question != nil {
		t.Errorf("the question is still told: %+v", seen)
	}
	want(t, "the answer", <-q1, "Blue.")
	want(t, "to both who asked", <-again, "Blue.")
	later := o.question(t.Context(), "q1", "Which colour?")
	o.hear()
	want(t, "asked later", <-later, "Blue.")
	if diff := cmp.Diff([]string{"q1", "q1", "q1"}, o.told); diff != "" {
		t.Errorf("answers that were told (-want +got):\n%s", diff)
	}
}

// What an agent sees of its work is what the loop told last.
func TestTheViewIsTheLoops(t *testing.T) {
	o := newOffice(t)
	c := o.Context()
	if diff := cmp.Diff([]string{"shop/login", "form", "Do it.", "Well."}, []string{c.Feature, c.Task, c.Prompt, c.Instructions}); diff != "" {
		t.Errorf("context (-want +got):\n%s", diff)
	}
	o.state.Tasks[0].Phase = supervise.Done
	o.look()
	if c := o.Context(); c.Task != "" {
		t.Errorf("task %q, want none", c.Task)
	}
}

// seen is the question that the loop is told of.
func seen(t *testing.T, got supervise.Tools, id string, guess, asking bool) {
	t.Helper()
	if q := got.Question; q == nil || q.ID != id || q.Guess != guess || got.Asking != asking || q.At.IsZero() {
		t.Errorf("question %+v, asking %v", q, got.Asking)
	}
}

// TestGuess: the agent goes on at once, people see the question, and an answer is given to an agent that asks again. Asking again writes nothing.
func TestGuess(t *testing.T) {
	o := newOffice(t, policy.Questions{Asking: policy.AskGuess})
	q1 := o.question(t.Context(), "q1", "Which colour?")
	seen(t, o.hear(), "q1", true, false)
	want(t, "the first", <-q1, "guess")
	q2 := o.question(t.Context(), "q2", "Which size?")
	seen(t, o.hear(), "q2", true, false)
	want(t, "another", <-q2, "guess")
	for range 3 {
		again := o.question(t.Context(), "q1", "Which colour?")
		seen(t, o.hear(), "q2", true, false) // there is no record of it
		want(t, "once more", <-again, "guess")
	}
	o.orders.Answers = []protocol.Answer{{Question: "q1", Text: "Blue."}}
	o.look()
	again := o.question(t.Context(), "q1", "Which colour?")
	o.hear()
	want(t, "answered", <-again, "Blue.")
}

// TestTimeout: after it the agent guesses, whether it waits at that moment or asks again, and may ask something else.
func TestTimeout(t *testing.T) {
	o := newOffice(t, policy.Questions{Asking: policy.AskWait, Timeout: time.Hour})
	q1 := o.question(t.Context(), "q1", "Which colour?")
	seen(t, o.hear(), "q1", false, true)
	o.now = o.now.Add(59 * time.Minute)
	seen(t, o.look(), "q1", false, true)
	o.now = o.now.Add(time.Minute)
	seen(t, o.look(), "q1", true, false)
	want(t, "at the end", <-q1, "guess")
	again := o.question(t.Context(), "q1", "Which colour?")
	seen(t, o.hear(), "q1", true, false)
	want(t, "once more", <-again, "guess")
	o.question(t.Context(), "q2", "Which size?")
	seen(t, o.hear(), "q2", false, true)
}

// TestOff: there is no tool to ask, and a client that has it from before is told so.
func TestOff(t *testing.T) {
	o := newOffice(t, policy.Questions{Asking: policy.AskOff})
	if o.Asks() {
		t.Error("it may ask")
	}
	q1 := o.question(t.Context(), "q1", "Which colour?")
	if got := o.hear(); got.Question != nil {
		t.Errorf("question %+v", got.Question)
	}
	want(t, "refused", <-q1, "decide by yourself")
	if !newOffice(t).Asks() {
		t.Error("under the policy of an older record it may not ask")
	}
}

// TestAQuestionWaits until there is an answer, the agent has to guess, or the attempt ends for it. While it waits, an agent that asks another one hears which.
func TestAQuestionWaits(t *testing.T) {
	o := newOffice(t, policy.Questions{Asking: policy.AskWait, Timeout: time.Hour})
	waits := func(what, id string) {
		t.Helper()
		got := ""
		if q := o.queue.Waits(o.orders); q != nil {
			got = q.ID
		}
		if got != id {
			t.Errorf("%s: question %q waits, want %q", what, got, id)
		}
	}
	waits("before it", "")
	o.question(t.Context(), "q1", "Which colour?")
	o.hear()
	waits("asked", "q1")
	other := o.question(t.Context(), "q2", "Which size?")
	o.hear()
	want(t, "another one", <-other, `question q1 ("Which colour?") still waits for its answer: ask one at a time, and ask that one again with its question_id`)
	o.orders.Answers = []protocol.Answer{{Question: "q1", Text: "Blue."}}
	waits("answered", "")
	o.orders.Answers = nil
	waits("the answer was taken back", "q1")
	o.now = o.now.Add(time.Hour)
	waits("too long", "")
	o.now = o.now.Add(-time.Hour)
	if err := o.journal.Note(journal.Record{TaskParked: &journal.TaskParked{Name: "form"}}); err != nil {
		t.Fatal(err)
	}
	waits("parked", "")
}

// TestAnEndedAgentGetsNoAnswer: it would not hear it, and nobody would tell it again.
func TestAnEndedAgentGetsNoAnswer(t *testing.T) {
	o := newOffice(t, policy.Questions{Asking: policy.AskWait})
	ctx, leave := context.WithCancel(t.Context())
	q1 := o.question(ctx, "q1", "Which colour?")
	seen(t, o.hear(), "q1", false, true)
	o.state.End = supervise.Await
	o.orders.Answers = []protocol.Answer{{Question: "q1", Text: "Blue."}}
	o.look()
	again := o.question(t.Context(), "q1", "Which colour?")
	o.hear()
	want(t, "asked again", <-again, "the attempt is ending")
	leave()
	want(t, "the call that waits", <-q1, "pending")
	if len(o.told) > 0 {
		t.Errorf("it was told %q", o.told)
	}
}
