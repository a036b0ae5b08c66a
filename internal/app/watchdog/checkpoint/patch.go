// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/tools"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// Patch is a patch that the agent sends.
type Patch struct {
	// ID is the agent's own: the watchdog carries out one ID once.
	ID string
	// Text in Git's format.
	Text string
}

// sum identifies the patch.
func (p Patch) sum() string {
	sum := sha256.Sum256([]byte(p.Text))
	return hex.EncodeToString(sum[:])
}

// Recall returns the answer to an operation that was answered before. The error is for the agent: another patch has the id.
func Recall(task journal.Task, p Patch) (result tools.PatchResult, known bool, err error) {
	switch o, recall := task.Recall(p.ID, p.sum()); recall {
	case journal.RecallReplay:
		if err := json.Unmarshal([]byte(o.Answer), &result); err != nil {
			return result, true, fmt.Errorf("%w: the answer to operation %s cannot be read: %w", trusted.ErrCorrupt, p.ID, err)
		}
		return result, true, nil
	case journal.RecallMismatch:
		return result, false, fmt.Errorf("operation_id %s belongs to another patch: use a new id for a new patch", p.ID)
	case journal.RecallNew:
	}
	return result, false, nil
}

// Patch checks a patch, and applies it to the workspace if it is valid. An error means that nothing was decided, or that the intent is in
// the journal and a restarted watchdog carries it out.
func (s *Service) Patch(ctx context.Context, o Occasion, p Patch) (tools.PatchResult, error) {
	if err := s.ready(ctx, &o); err != nil {
		return tools.PatchResult{}, err
	}
	if result, known, err := Recall(s.Journal.State().Tasks[o.Task], p); known || err != nil {
		return result, err
	}
	candidate, reason, err := s.candidate(ctx, p.Text)
	if err != nil {
		return tools.PatchResult{}, err
	}
	if reason != "" {
		return s.refuse(o, p, tools.PatchResult{Message: reason})
	}
	started := s.Now()
	judgement, err := s.Judge.Snapshot(ctx, candidate, o.Terms)
	if err != nil {
		return tools.PatchResult{}, err
	}
	j := judged{snapshot: candidate, judgement: judgement, judgeTime: s.Now().Sub(started)}
	j.consequence = supervise.Act(j.judgement, o.Terms.Policy, true)
	result := resultOf(j)
	if !j.consequence.Promote {
		result.Message = "the patch changed nothing. " + judge.Summary(j.judgement)
		return s.refuse(o, p, result)
	}
	j.back = &restoration{tree: candidate.Tree}
	i, err := s.plan(ctx, o, j)
	if err != nil {
		return tools.PatchResult{}, err
	}
	result.OperationID, result.Status = p.ID, tools.Applied
	result.Checkpoint = naming.Checkpoint(o.Orders.Feature.Name, i.Sequence)
	result.Message = "the patch is in the workspace"
	if i.Operation, err = operationOf(o, p, result); err != nil {
		return tools.PatchResult{}, err
	}
	if err := s.recorder.record(ctx, *i); err != nil {
		return result, err
	}
	// The workspace may have refused what every rule allows.
	result, _, err = Recall(s.Journal.State().Tasks[o.Task], p)
	return result, err
}

// refuse remembers a refusal, so that it is repeated when the patch is sent again.
func (s *Service) refuse(o Occasion, p Patch, result tools.PatchResult) (tools.PatchResult, error) {
	result.OperationID, result.Status = p.ID, tools.Refused
	operation, err := operationOf(o, p, result)
	if err != nil {
		return result, err
	}
	if err := s.Journal.Note(journal.Record{Operation: operation}); err != nil {
		return result, err
	}
	return result, s.Probe.After("refusal journaled")
}

func operationOf(o Occasion, p Patch, result tools.PatchResult) (*journal.Operation, error) {
	answer, err := json.Marshal(result)
	return &journal.Operation{ID: p.ID, Task: o.Task, Patch: p.sum(), Answer: string(answer)}, err
}

// candidate is the workspace as it would be with the patch, or the reason for which there is none.
func (s *Service) candidate(ctx context.Context, patch string) (workspace.Snapshot, string, error) {
	base, now, err := s.Workspace.Engine().Trees()
	if err != nil {
		return workspace.Snapshot{}, "", err
	}
	started := s.Now()
	patched, err := s.Repository.ApplyPatch(ctx, now, patch)
	if refusal, refused := errors.AsType[*git.PatchError](err); refused {
		return workspace.Snapshot{}, "the patch changed nothing. " + refusal.Error(), nil
	}
	if err != nil {
		return workspace.Snapshot{}, "", err
	}
	reason, err := s.unseen(ctx, patched.Changes)
	if reason != "" || err != nil {
		return workspace.Snapshot{}, reason, err
	}
	snapshot := workspace.Snapshot{Tree: patched.Tree.ID, Previous: now.ID, At: started, Settled: true, Dirty: len(patched.Changes)}
	if snapshot.Changes, err = s.Repository.Changes(ctx, base, patched.Tree); err != nil {
		return snapshot, "", err
	}
	patched.Tree.Walk(func(_ string, e *objects.Entry) bool {
		snapshot.Workspace.Files++
		snapshot.Workspace.Bytes += e.Size
		return true
	})
	snapshot.CaptureTime = s.Now().Sub(started)
	return snapshot, "", nil
}

// unseen says which files of a patch no checkpoint would see.
func (s *Service) unseen(ctx context.Context, changes []judge.Change) (string, error) {
	var added []string
	for _, c := range changes {
		if c.Kind == judge.Added {
			added = append(added, c.Path)
		}
	}
	ignored, err := s.Workspace.Engine().Ignored(ctx, added)
	if err != nil || len(ignored) == 0 {
		return "", err
	}
	return fmt.Sprintf("the patch changed nothing. The repository's ignore rules leave out %s: choose other names", notice.Names(ignored)), nil
}

// resultOf says what was found out about a patch.
func resultOf(j judged) tools.PatchResult {
	var result tools.PatchResult
	for _, v := range j.judgement.Violations[:min(len(j.judgement.Violations), notice.MaxViolations)] {
		result.Violations = append(result.Violations, tools.Violation{Rule: v.Rule, Path: notice.Path(v.Path), Severity: strings.ToLower(string(v.Severity)),
			Message: v.Message, Suggestion: v.Suggestion})
	}
	if files := notice.Files(j.snapshot.Changes); len(files) > 0 {
		result.FilesChanged = files
	}
	return result
}
