// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// board is told of checkpoints, and tells an agent.
type board struct {
	t *testing.T
	notice.Board
}

// breaks are violations of the areas by paths.
func breaks(paths ...string) (list []protocol.Violation) {
	for _, path := range paths {
		list = append(list, protocol.Violation{Rule: "areas", Path: path, Severity: policy.Error, Message: "it is outside", Suggestion: "move it to web"})
	}
	return list
}

// broken is a checkpoint that finds paths outside.
func (b *board) broken(n int, back *notice.Back, paths ...string) {
	b.Broken(int64(n), notice.Broken(fmt.Sprint("login-", n), time.Time{}, judge.Judgement{Severity: policy.Error, Violations: breaks(paths...)}, nil, back))
}

// tells is what the agent is told now, behind so many entries. What is kept is what is written down.
func (b *board) tells(after int, want string) {
	b.t.Helper()
	text, next := b.Note(after)
	if diff := cmp.Diff(want, text); diff != "" {
		b.t.Errorf("it is told (-want +got):\n%s", diff)
	}
	written, err := json.Marshal(next)
	b.Board = notice.Board{}
	if err == nil {
		err = json.Unmarshal(written, &b.Board)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestABoardTellsOfACheckpointOnce: the newest takes the place of what is fixed, and what is fixed is said to be.
func TestABoardTellsOfACheckpointOnce(t *testing.T) {
	t.Parallel()
	b := board{t: t}
	b.tells(1, "")
	b.broken(1, nil, "a.md")
	b.broken(2, nil, "a.md", "b.md") // before it was told
	b.tells(1, `[SUPERVISOR] Checkpoint login-2 found 2 broken rules of severity error.
- "a.md", rule areas: it is outside. To fix it: move it to web.
- "b.md", rule areas: it is outside. To fix it: move it to web.
All files are as you wrote them. Fix this now, then continue with your task.`)
	b.broken(3, nil, "a.md", "b.md") // it is told so
	b.tells(3, "")
	b.broken(4, nil, "b.md")
	b.tells(5, `[SUPERVISOR] Checkpoint login-4 found 1 broken rule of severity error. This replaces what the supervisor told you of checkpoint login-2. Fixed since: "a.md" (rule areas).
- "b.md", rule areas: it is outside. To fix it: move it to web.
All files are as you wrote them. Fix this now, then continue with your task.`)
	b.Valid(5, "login-5")
	b.tells(7, `[SUPERVISOR] Checkpoint login-5: the rules that were broken at checkpoint login-4 are fixed. There is nothing more to do about them.`)
	b.Valid(6, "login-6")
	b.tells(9, "")
	b.broken(7, nil, "c.md")
	b.Valid(8, "login-8") // before it was told
	b.tells(11, "")
}

// TestWhatWentBackIsTold whatever is right by then, each time.
func TestWhatWentBackIsTold(t *testing.T) {
	t.Parallel()
	b := board{t: t}
	want := func(n int, stays string) string {
		return fmt.Sprintf(`[SUPERVISOR] Checkpoint login-%d found 1 broken rule of severity error.
- "a.md", rule areas: it is outside. To fix it: move it to web.
Because of this, files went back to the last valid checkpoint: "a.md", "web/b.md". %s Checkpoint login-%d keeps what went back. The task is not done by that: look at a file before you edit it, and do the work again without breaking these rules.`, n, stays, n)
	}
	b.broken(1, &notice.Back{Paths: []string{"a.md", "web/b.md"}, Kept: 2}, "a.md")
	b.Valid(2, "login-2")
	b.tells(1, want(1, "2 other changes of yours stayed as they were."))
	b.Valid(3, "login-3")
	b.tells(3, "")
	b.broken(4, &notice.Back{Paths: []string{"a.md", "web/b.md"}, Kept: 1}, "a.md")
	b.broken(5, &notice.Back{Paths: []string{"a.md", "web/b.md"}}, "a.md")
	b.tells(5, want(4, "1 other change of yours stayed as it was.")+"\n\n"+want(5, "Nothing else had changed."))
	person := notice.RolledBack(notice.Reverted{Request: "r1", Kind: protocol.RollbackPaths, Before: "login-6", From: "checkpoint login-2", Paths: []string{"web/b.md"}, Kept: 1})
	b.broken(6, nil, "c.md")
	b.RolledBack(person, true)
	b.tells(7, `[SUPERVISOR] A user has put files of the workspace back. Reverted 1 file: web/b.md. Kept 1 other change. As in checkpoint login-2; the state before it is checkpoint login-6. Do not write the same again unless your task cannot be done without it, and look at a file before you edit it.`)
	b.RolledBack(person, false)
	b.Valid(8, "login-8")
	b.tells(9, "")
}

// TestWhatWentBackIsRecalled, once, where the watchdog ended before it could be told.
func TestWhatWentBackIsRecalled(t *testing.T) {
	t.Parallel()
	b := board{t: t}
	b.broken(1, nil, "a.md")
	b.Recall(1, "login-1", "never told")
	b.Recall(2, "login-2", "Rule areas is broken by a.md: it is outside.")
	b.Recall(2, "login-2", "Rule areas is broken by a.md: it is outside.")
	b.tells(1, "[SUPERVISOR] Files of yours went back at checkpoint login-2, which keeps them. What was wrong: Rule areas is broken by a.md: it is outside. Look at a file before you edit it, and do the work again without breaking that rule.")
	b.Forget(3)
	b.Recall(3, "login-3", "told otherwise")
	b.tells(3, "")
}

// TestABoardTellsOfAQuestionThatWasCutOff once, before what it tells of work. The notice of a checkpoint holds as before.
func TestABoardTellsOfAQuestionThatWasCutOff(t *testing.T) {
	t.Parallel()
	b := board{t: t}
	b.broken(1, nil, "a.md")
	b.tells(1, `[SUPERVISOR] Checkpoint login-1 found 1 broken rule of severity error.
- "a.md", rule areas: it is outside. To fix it: move it to web.
All files are as you wrote them. Fix this now, then continue with your task.`)
	b.Question = &protocol.Question{ID: "q1", Text: "Which\ncolour?"}
	b.Valid(2, "login-2")
	b.tells(3, `[SUPERVISOR] A restart has cut off your question q1 ("Which\ncolour?"). If the call of ask_user has no answer, make the same call again with the same question_id: you get the answer as soon as there is one.

[SUPERVISOR] Checkpoint login-2: the rules that were broken at checkpoint login-1 are fixed. There is nothing more to do about them.`)
	b.tells(5, "")
	b.Question = &protocol.Question{ID: "q1"}
	b.Anew()
	b.tells(7, "")
}

// TestABoardWarnsAhead: of each broken rule once, and of none that is fixed before it could be told. A checkpoint tells the rest.
func TestABoardWarnsAhead(t *testing.T) {
	t.Parallel()
	b := board{t: t}
	if !b.Warn(breaks("a.md"), true) || b.Warn(breaks("a.md"), true) || !b.Warn(breaks("b.md"), true) { // a.md is fixed
		t.Error("it does not know what is new")
	}
	b.tells(1, `[SUPERVISOR] The next checkpoint will find 1 broken rule in what you have written.
- "b.md", rule areas: it is outside. To fix it: move it to web.
Fix this before then, and nothing comes of it.`)
	b.Warn(breaks("b.md"), true)
	b.tells(3, "")
	b.Warn(nil, true)
	if b.Heeded != 2 {
		t.Errorf("%d were fixed in time, want 2", b.Heeded)
	}
	b.Warn(breaks("c.md", "d.md"), true)
	b.tells(5, `[SUPERVISOR] The next checkpoint will find 2 broken rules in what you have written.
- "c.md", rule areas: it is outside. To fix it: move it to web.
- "d.md", rule areas: it is outside. To fix it: move it to web.
Fix this before then, and nothing comes of it.`)
	b.broken(1, nil, "d.md")
	if b.Heeded != 3 {
		t.Errorf("%d were fixed in time, want 3", b.Heeded)
	}
	b.Note(7)
	b.Board.Valid(2, "login-2")
	b.Warn(breaks("e.md"), true)
	b.Valid(3, "login-3")
	b.tells(7, "")
	if b.Heeded != 4 {
		t.Errorf("%d were fixed in time, want 4", b.Heeded)
	}
}

// TestALookAtAPart takes nothing back: what it does not find may be broken still. What an agent was told it is not told again, however much there is.
func TestALookAtAPart(t *testing.T) {
	t.Parallel()
	b := board{t: t}
	b.Warn(breaks("a.md", "b.md"), true)
	b.Warn(breaks("b.md", "c.md"), false)
	b.Warn(nil, false)
	b.tells(1, `[SUPERVISOR] The next checkpoint will find 3 broken rules in what you have written.
- "a.md", rule areas: it is outside. To fix it: move it to web.
- "b.md", rule areas: it is outside. To fix it: move it to web.
- "c.md", rule areas: it is outside. To fix it: move it to web.
Fix this before then, and nothing comes of it.`)
	b.Warn(nil, false)
	b.Warn(breaks("a.md", "b.md", "c.md"), true)
	if b.tells(3, ""); b.Heeded != 0 {
		t.Errorf("%d were fixed in time, want none", b.Heeded)
	}
	var many []string
	for n := range 1000 {
		many = append(many, fmt.Sprintf("%03d.md", n))
	}
	notes := 0
	for n := range 20 {
		b.Warn(breaks(many[n*50:][:50]...), false)
		b.Warn(breaks(many...), true)
		text, next := b.Note(5)
		if b.Board = next; text != "" {
			notes++
		}
	}
	if notes != 1 {
		t.Errorf("told %d times of 1000 paths, want once", notes)
	}
}

// TestAConversationThatLostTheWordIsToldAgain, while it holds.
func TestAConversationThatLostTheWordIsToldAgain(t *testing.T) {
	t.Parallel()
	b := board{t: t}
	b.broken(1, nil, "a.md")
	first, _ := b.Note(5)
	b.tells(5, first)
	b.Keep(func(after int) bool { return after == 5 })
	b.tells(7, "")
	b.Within(3)
	b.Keep(func(after int) bool { return after == 3 })
	b.tells(7, "")
	b.Keep(func(int) bool { return false })
	b.tells(1, first)
	b.Valid(2, "login-2")
	b.Keep(func(int) bool { return false }) // it has not heard of it, and need not
	b.tells(1, "")
}

// TestABoardIsBounded, whatever checkpoints find.
func TestABoardIsBounded(t *testing.T) {
	t.Parallel()
	b := board{t: t}
	list := breaks(strings.Split(strings.Repeat(strings.Repeat("\u202e", 1000)+" ", 999)+"a", " ")...)
	for i := range list {
		list[i].Rule, list[i].Message, list[i].Suggestion = fmt.Sprint("rule", i), strings.Repeat("m", 4000), strings.Repeat("s", 4000)
	}
	paths := make([]string, 1000)
	for n := range 6 {
		b.Broken(int64(n), notice.Broken(fmt.Sprint("login-", n), time.Time{}, judge.Judgement{Severity: policy.Error, Violations: list}, nil, &notice.Back{Paths: paths}))
		b.Warn(list, true)
	}
	if written, err := json.Marshal(b.Board); err != nil || len(written) > 150_000 {
		t.Errorf("%d bytes are kept, %v", len(written), err)
	}
	text, _ := b.Note(1)
	if len(text) > 45_000 || !strings.Contains(text, "\n- and 988 more violations.") || !strings.Contains(text, ", and 988 more. Nothing else") {
		t.Errorf("%d bytes: %.400s", len(text), text)
	}
	for range 4 {
		b.Warn(list, true)
		_, b.Board = b.Note(1)
	}
	if len(b.Warned) > 64 {
		t.Errorf("%d are remembered", len(b.Warned))
	}
}
