// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
	"github.com/tidewaiter/tidewaiter/internal/host/tools"
	"github.com/tidewaiter/tidewaiter/internal/host/workspace"
)

// serveTools lets the agent call its tools, where it is to work through them. It must be listening before the runner can
// connect: a process of the agent that had the port first would be taken for the watchdog.
func (r *run) serveTools(ctx context.Context) error {
	if r.latest.Mode != policy.ModeDeterministic {
		return nil
	}
	l, err := tools.Listen(r.Tools)
	if err != nil {
		return err
	}
	r.toolsURL = tools.URL(l)
	ctx, r.closeTools = context.WithCancel(context.WithoutCancel(ctx))
	r.serving.Go(func() {
		if err := tools.Serve(ctx, l, tools.Options{Desk: r.desk, Repository: r.repo, Log: r.Log}); err != nil {
			r.Log.ErrorContext(ctx, "The agent's tools are gone", "error", err.Error())
		}
	})
	r.Log.InfoContext(ctx, "Serving the agent's tools", "url", r.toolsURL)
	return nil
}

// layPatch judges the patch that waits longest, and lays it into the workspace if it is valid.
func (r *run) layPatch(a supervise.Action, o occasion) work {
	return func(ctx context.Context) (supervise.Event, error) {
		call := r.desk.take()
		if call == nil {
			return supervise.Aborted{}, nil
		}
		result, err := r.patch(ctx, o, call)
		if err != nil && !fatal(err) {
			err = errors.Join(errors.New("the patch could not be judged, send it again with the same operation_id"), err)
		}
		r.desk.finish(call, patchDone{result: result, err: err})
		if err != nil {
			return r.missed(ctx, a, err)
		}
		r.Log.InfoContext(ctx, "Patch", "operation", result.OperationID, "status", result.Status, "checkpoint", result.Checkpoint,
			"violations", len(result.Violations))
		s := r.journal()
		return supervise.Laid{Head: s.Promoted.Commit, Changed: s.Promoted.Tree != s.Base.Tree}, nil
	}
}

// patch carries an operation out. An error means that nothing was decided, or that the intent is in the journal and is
// acted on when it is read again.
func (r *run) patch(ctx context.Context, o occasion, call *patchCall) (tools.PatchResult, error) {
	if err := r.ready(ctx, &o); err != nil {
		return tools.PatchResult{}, err
	}
	if result, known, err := recall(r.journal().Tasks[o.task], call); known || err != nil {
		return result, err
	}
	candidate, reason, err := r.candidate(ctx, call.patch)
	if err != nil {
		return tools.PatchResult{}, err
	}
	if reason != "" {
		return r.refuse(o, call, tools.PatchResult{Message: reason})
	}
	started := r.Now()
	judgement, err := r.judge(ctx, candidate, o)
	if err != nil {
		return tools.PatchResult{}, err
	}
	j := judged{snapshot: candidate, judgement: judgement}
	j.judgeTime = r.Now().Sub(started)
	j.consequence = supervise.Act(j.judgement, o.policy, true)
	result := resultOf(j)
	if !j.consequence.Promote {
		result.Message = "nothing was changed. " + judge.Summary(j.judgement)
		return r.refuse(o, call, result)
	}
	j.back = &restoration{tree: candidate.Tree}
	i, err := r.plan(ctx, o, j)
	if err != nil {
		return tools.PatchResult{}, err
	}
	result.OperationID, result.Status = call.id, tools.Applied
	result.Checkpoint = naming.Checkpoint(o.orders.Feature.Name, i.Sequence)
	result.Message = "the patch is laid into the workspace"
	if i.Operation, err = operationOf(o, call, result); err != nil {
		return tools.PatchResult{}, err
	}
	if err := r.record(ctx, *i); err != nil {
		return result, err
	}
	// The workspace may have refused what every rule allows.
	result, _, err = recall(r.journal().Tasks[o.task], call)
	return result, err
}

// refuse remembers a refusal, so that it is repeated when the patch is sent again.
func (r *run) refuse(o occasion, call *patchCall, result tools.PatchResult) (tools.PatchResult, error) {
	result.OperationID, result.Status = call.id, tools.Refused
	operation, err := operationOf(o, call, result)
	if err != nil {
		return result, err
	}
	if err := r.book.Note(journal.Record{Operation: operation}); err != nil {
		return result, err
	}
	return result, r.probe("refusal journaled")
}

func operationOf(o occasion, call *patchCall, result tools.PatchResult) (*journal.Operation, error) {
	answer, err := json.Marshal(result)
	return &journal.Operation{ID: call.id, Task: o.task, Patch: sumOf(call.patch), Answer: string(answer)}, err
}

// candidate is the workspace as it would be with the patch, or the reason for which there is none.
func (r *run) candidate(ctx context.Context, patch string) (workspace.Snapshot, string, error) {
	base, now, err := r.engine.Trees()
	if err != nil {
		return workspace.Snapshot{}, "", err
	}
	started := r.Now()
	patched, err := r.repo.ApplyPatch(ctx, now, patch)
	if refusal, refused := errors.AsType[*git.PatchError](err); refused {
		return workspace.Snapshot{}, "nothing was changed. " + refusal.Error(), nil
	}
	if err != nil {
		return workspace.Snapshot{}, "", err
	}
	reason, err := r.unseen(ctx, patched.Changes)
	if reason != "" || err != nil {
		return workspace.Snapshot{}, reason, err
	}
	s := workspace.Snapshot{Tree: patched.Tree.ID, Previous: now.ID, At: started, Settled: true, Dirty: len(patched.Changes)}
	if s.Changes, err = r.repo.Changes(ctx, base, patched.Tree); err != nil {
		return s, "", err
	}
	patched.Tree.Walk(func(_ string, e *objects.Entry) bool {
		s.Workspace.Files++
		s.Workspace.Bytes += e.Size
		return true
	})
	s.CaptureTime = r.Now().Sub(started)
	return s, "", nil
}

// unseen says which files of a patch no checkpoint would see.
func (r *run) unseen(ctx context.Context, changes []judge.Change) (string, error) {
	var added []string
	for _, c := range changes {
		if c.Kind == judge.Added {
			added = append(added, c.Path)
		}
	}
	ignored, err := r.engine.Ignored(ctx, added)
	if err != nil || len(ignored) == 0 {
		return "", err
	}
	var names []string
	for _, path := range ignored[:min(len(ignored), maxNamed)] {
		names = append(names, judge.Escape(path))
	}
	return fmt.Sprintf("nothing was changed. The repository's ignore rules leave out %s: choose other names", strings.Join(names, ", ")), nil
}

// resultOf says what was found out about a patch.
func resultOf(j judged) tools.PatchResult {
	var result tools.PatchResult
	for _, v := range j.judgement.Violations[:min(len(j.judgement.Violations), maxToldViolations)] {
		result.Violations = append(result.Violations, tools.Violation{Rule: v.Rule, Path: toldPath(v.Path), Severity: strings.ToLower(string(v.Severity)),
			Message: v.Message, Suggestion: v.Suggestion})
	}
	for _, c := range j.snapshot.Changes[:min(len(j.snapshot.Changes), maxToldFiles)] {
		result.FilesChanged = append(result.FilesChanged, toldPath(c.Path))
	}
	return result
}

// toolsEnv tells the agent where its tools are.
func (r *run) toolsEnv() []string {
	if r.toolsURL == "" {
		return nil
	}
	return []string{contract.EnvMCP + "=" + r.toolsURL}
}
