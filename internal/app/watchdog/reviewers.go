// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	crypto "crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/consult"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/faults"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/handover"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/changes"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

const (
	// consultWithin bounds the calls of one review, also with a model that answers slowly. The next task waits for them, and a skipped review loses nothing. What is done with the
	// answer has its time: a quote that is looked up too late would not count.
	consultWithin = 3 * time.Minute
	// maxReviewed bounds how many changed files a reviewer hears of, and maxQuoted the size in bytes of a file that it can quote.
	maxReviewed = 500
	maxQuoted   = 1 << 20
)

// breakpoint is what reviewers have to do now; nothing while a task is at work, or without an agent that could follow them.
func (l *loop) breakpoint() supervise.Breakpoint {
	var now supervise.Breakpoint
	if l.state.Seal || l.agent == nil {
		return now
	}
	j := l.attempt.journal.State()
	if d := j.Diverged; d != nil { // also under a policy without an assessor: a user decides, not an edit of the policy
		now.Diverged = &supervise.Divergence{Request: d.Request, Reason: d.Reason, Last: d.Last}
	}
	if len(review.All(l.latest.Policy)) == 0 {
		return now
	}
	b, is := j.Breakpoint()
	if is {
		for _, r := range j.Reviews.Due(l.latest.Policy, l.latest.Unheeded, b) {
			now.Due = append(now.Due, r.Name)
		}
	}
	_, now.Critical = j.NextCritical(idsOf(l.services.directives.CriticalOfReviewers()))
	now.Polish = l.state.Current() < 0 && j.NextPolish(l.services.directives.OpenOfReviewers()) != ""
	return now
}

// consult asks a reviewer. What it finds is journaled before an agent hears of it. If no model answers in a form that can be used, the work continues
// without the review.
func (x *acts) consult(ctx context.Context, o protocol.Orders, name string) (supervise.Event, error) {
	r, known := review.Find(name, o.Policy)
	switch {
	case known:
	case review.Is(name): // orders have changed the policy that defines it
		return supervise.Consulted{}, nil
	default:
		return nil, fmt.Errorf("no such reviewer: %q", name)
	}
	j := x.attempt.journal.State()
	reviewed := journal.Reviewed{Reviewer: name, Task: j.LastOver(), Over: j.TasksDone(), Tree: j.Promoted.Tree}
	look := x.look
	if r.Assesses {
		look = x.assess
	}
	err := look(ctx, o, r, &reviewed)
	switch {
	case err == nil:
	case steps.Fatal(err):
		return nil, err
	case ctx.Err() != nil:
		return supervise.CalledOff{}, nil //nolint:nilerr // an act that was called off is an event, not an error
	default:
		reviewed.Outcome, reviewed.Summary = protocol.ReviewSkipped, plain.CutBytes(err.Error(), faults.MaxMessage)
		x.log().WarnContext(ctx, "Review skipped: the work continues without it", "reviewer", name, "task", reviewed.Task, "error", err.Error())
	}
	err = x.services.directives.While(func() error { return x.note(journal.Record{Reviewed: &reviewed}, "reviewed") })
	if err != nil {
		return nil, err
	}
	// The loop follows the directives, by the orders of then: these may be older.
	x.log().InfoContext(ctx, "Review", "reviewer", name, "task", reviewed.Task, "outcome", reviewed.Outcome, "directives", len(reviewed.Directives),
		"discarded", len(reviewed.Discarded), "documents", len(reviewed.Documents), "summary", reviewed.Summary)
	return supervise.Consulted{}, x.attempt.options.Probe.After("directives of reviewers")
}

// look has a reviewer look at what has changed since its own last look.
func (x *acts) look(ctx context.Context, o protocol.Orders, r review.Reviewer, v *journal.Reviewed) error {
	j := x.attempt.journal.State()
	from := cmp.Or(x.seen(ctx, j.Reviews[r.Name].Tree), j.Base.Tree)
	asked := review.Shown(answered(j, r.Name))
	first, err := x.establishes(ctx, o, r)
	if err != nil {
		return err
	}
	if from == v.Tree && len(r.Paths) == 0 && !j.Reviews[r.Name].Called && len(asked) == 0 && !first { // of a task that was aborted, the tree shows nothing
		v.Passed = true // no model looks, so it stays due
		return nil
	}
	scene, err := x.scene(ctx, o, r, from, *v)
	if err != nil {
		return err
	}
	if first {
		if scene.Baseline, err = x.baseline(ctx); err != nil {
			return err
		}
	} else if r.Compares {
		if scene.Peers, err = x.peers(ctx, j.Base.Tree, scene.Changes); err != nil {
			return err
		}
	}
	scene.Answered = asked
	if len(r.Paths) > 0 && len(scene.Changes) == 0 && len(asked) == 0 {
		v.Passed = true
		return nil
	}
	var answer review.Answer
	err = x.ask(ctx, scene, v, func(arguments json.RawMessage) (objection string) {
		answer, objection = review.Read(r, r.Writes(o.Policy), arguments)
		return objection
	})
	if err != nil {
		return err
	}
	text := r.Within(x.quotable(ctx, v.Tree))
	kept, discarded := review.Keep(r, answer, text, j.Directives.Has, o.Policy.Reviewers.MaxDirectives)
	still, others := review.StillThere(answer, asked, text)
	v.Discarded = slices.Concat(discarded, others)
	v.Outcome, v.Summary, v.Directives = review.Outcome(kept, len(still)), review.Words(r, len(answer.Findings), len(kept)), kept
	for _, a := range asked {
		v.Checked = append(v.Checked, a.ID)
	}
	v.StillThere = still
	again, left := 0, 0
	for _, id := range still {
		if j.Directives.Find(id).Again < directives.MaxAgain {
			again++
		} else {
			left++
		}
	}
	v.Summary += review.StillWords(again, left)
	if err := x.write(ctx, o, r, answer.Documents, v); err != nil {
		return err
	}
	if r.Writes(o.Policy) {
		v.Summary += review.WrittenWords(r, len(v.Documents)) + review.RefusedWords(v.Refused, x.library.Closed)
	}
	if answer.Summary != "" {
		v.Summary += ". " + answer.Summary
	}
	return nil
}

// ask the model of a reviewer about a scene, and keep the question for the record of the review. Where the model is away, the first reviewer waits for it.
func (x *acts) ask(ctx context.Context, scene review.Scene, v *journal.Reviewed, check func(json.RawMessage) (objection string)) error {
	question := review.Question(scene)
	asked := review.NewAsked(question)
	v.Asked = &asked
	patience := consult.Short
	if x.away { // else a model that is away delays each task by three minutes for each reviewer
		patience = consult.None
	}
	within, cancel := context.WithTimeout(ctx, consultWithin)
	defer cancel()
	calls, err := x.services.consult.Ask(within, question, patience, check)
	asked.Calls = calls
	_, invalid := errors.AsType[*consult.InvalidError](err)
	x.away = err != nil && !invalid && !errors.Is(err, context.Canceled) // as when orders call the review off
	return err
}

// answered are the directives of a reviewer whose answers it has not checked, with what the agent said.
func answered(j journal.State, reviewer string) (all []review.Answered) {
	for _, d := range j.Answered {
		if d.Source == reviewer {
			all = append(all, review.Answered{Directive: d, Said: j.Directives.Find(d.ID).Message})
		}
	}
	return all
}

// seen is the tree of a last look, and empty if there is none or the repository does not have it any more: after a rollback, for example, no commit that
// is kept has it.
func (x *acts) seen(ctx context.Context, tree string) string {
	id, err := objects.ParseID(tree)
	if err != nil {
		return ""
	}
	if _, _, err := x.services.repository.Objects().Stat(ctx, id); errors.Is(err, git.ErrNoObject) {
		return ""
	}
	return tree
}

// scene is what a reviewer sees.
func (x *acts) scene(ctx context.Context, o protocol.Orders, r review.Reviewer, from string, v journal.Reviewed) (review.Scene, error) {
	j := x.attempt.journal.State()
	s := review.Scene{
		Reviewer: r, Team: r.Rule(o.Policy).Instructions, Request: o.Prompt, Task: v.Task,
		Gates: j.Results, Nonce: crypto.Text(), MaxFindings: review.MaxFindings, Writes: r.Writes(o.Policy),
	}
	s.Last, s.After = j.Reviews[r.Name].Said, j.Reviews[r.Name].After
	if milestone, _, is := strings.Cut(v.Task, "/"); is {
		s.Milestone = milestone
	}
	for _, d := range x.services.directives.Unsettled() {
		s.Directives = append(s.Directives, d.Directive)
	}
	works := j.Works()
	for _, t := range o.Tasks {
		have := j.Tasks[t.Name]
		if !have.Over() {
			s.Ahead = append(s.Ahead, review.Ahead{Name: t.Name, Instructions: t.Instructions})
			continue
		}
		done := review.Done{Name: t.Name, Instructions: t.Instructions, Aborted: have.Aborted}
		if w := works[t.Name]; w != nil {
			done.Summary = w.Summary
		}
		if have.Aborting != nil {
			done.Why = have.Aborting.Message
		}
		s.Done = append(s.Done, done)
	}
	if r.Mute {
		s.Mended, s.Reasons = x.mended(ctx, j), x.reasons(ctx, j)
	}
	var err error
	if s.Changes, s.Left, err = x.changed(ctx, from, v.Tree, r.Sees(), chance(s.Nonce)); err != nil {
		return s, err
	}
	s.Known, s.KnownLeft, err = x.known(ctx, o, r, s.Changes)
	return s, err
}

// chance draws what a question shows if it has no room for all. It depends on the question's nonce only: an agent cannot know the choice, and who has
// the question can repeat it.
func chance(nonce string) *rand.Rand { return rand.New(rand.NewChaCha8(sha256.Sum256([]byte(nonce)))) }

// changed is the difference of two trees in the files that a reviewer sees, without secrets. If there is no room for all, draws decides what the reviewer sees.
func (x *acts) changed(ctx context.Context, from, to string, sees func(path string) bool, draws *rand.Rand) (list []review.Change, left review.Left, err error) {
	before, err := objects.ParseID(from)
	if err != nil {
		return nil, left, err
	}
	after, err := objects.ParseID(to)
	if err != nil {
		return nil, left, err
	}
	aside := git.NewAside(x.services.repository)
	defer func() { _ = aside.Close() }()
	outline, total, err := aside.Sample(ctx, before, after, maxReviewed, sees, draws.IntN)
	if err != nil {
		return nil, left, err
	}
	left.Files = total - len(outline)
	paths := review.Compared(outline, draws.Shuffle)
	if len(paths) == 0 { // git would compare everything
		return review.Changed(outline, ""), left, nil
	}
	var patch string
	err = aside.Patch(ctx, before, after, changes.MaxFile, func(in *bufio.Reader) (err error) {
		patch, _, err = changes.NewMaker().Patch(ctx, in, handover.Contents(aside))
		return err
	}, paths...)
	if err != nil {
		return nil, left, err
	}
	return review.Changed(outline, patch), left, nil
}

// quotable gives the text of a file in a tree, if it is text. A tree can have very many files, and a review needs a few of them.
func (x *acts) quotable(ctx context.Context, tree string) func(path string) (string, bool) {
	return func(path string) (string, bool) {
		content, err := x.file(ctx, tree, path)
		if err != nil {
			x.log().WarnContext(ctx, "Cannot read a file that a reviewer quotes: the finding does not count", "path", path, "error", err.Error())
			return "", false
		}
		return string(content), content != nil && isText(content)
	}
}

// isText says whether a content is text that a reviewer can read.
func isText(content []byte) bool { return utf8.Valid(content) && !bytes.ContainsRune(content, 0) }

// file is the content of a file in a tree; nil if there is none, or none that can be quoted.
func (x *acts) file(ctx context.Context, tree, path string) ([]byte, error) {
	root, err := objects.ParseID(tree)
	if err != nil {
		return nil, err
	}
	e, is, err := x.services.repository.Entry(ctx, root, path)
	if err != nil || !is || e.Mode != objects.ModeFile && e.Mode != objects.ModeExecutable {
		return nil, err
	}
	all := x.services.repository.Objects()
	if _, size, err := all.Stat(ctx, e.ID); err != nil || size > maxQuoted {
		return nil, err
	}
	_, content, err := all.Read(ctx, e.ID, maxQuoted)
	return content, err
}
