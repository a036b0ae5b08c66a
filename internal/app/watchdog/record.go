// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/chain"
	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Bounds of a record: it becomes an API object of a few KiB.
const (
	maxSamples    = 8
	maxViolations = 8
	maxReason     = 512
)

// reportOf is the record of a checkpoint, as far as it is known before it is acted on.
func (w *workshop) reportOf(o occasion, j judged, i journal.Intent) contract.CheckpointReport {
	s := j.snapshot
	r := contract.CheckpointReport{
		Sequence: i.Sequence, Previous: w.journal().Chain.Sequence, Task: o.task, Trigger: o.trigger, CapturedAt: s.At.UTC(),
		Tree: i.Tree, Base: w.journal().Base.Commit, PolicyHash: o.policy.Hash, Audit: o.policy.Enforcement == policy.Audit,
		Frozen: s.Frozen, FrozenFor: s.FrozenFor, Processes: s.Processes, Settled: s.Settled,
		Verdict: j.judgement.Verdict, Severity: j.judgement.Severity, ViolationCount: int64(len(j.judgement.Violations)),
		LinesAdded: j.judgement.Lines.Added, LinesDeleted: j.judgement.Lines.Removed,
		Action: j.consequence.Action, CaptureTime: s.CaptureTime, SyncTime: s.SyncTime, JudgeTime: j.judgeTime,
		Vitals: w.vitals(),
	}
	if o.freezer != nil && s.Frozen {
		r.Pause = o.freezer.pause
	}
	r.Vitals.JudgedKnown, r.Vitals.JudgedFresh = w.memory.Last()
	r.Vitals.Changed, r.Vitals.Read, r.Vitals.Files = j.changed, int64(s.Dirty), s.Workspace.Files
	if !s.Settled {
		r.UnsettledReason = clip(s.Reason, maxReason)
	}
	for _, c := range s.Changes {
		count(&r, c.Kind)
		if len(r.SamplePaths) < maxSamples {
			r.SamplePaths = append(r.SamplePaths, judge.Escape(c.Path))
		}
	}
	for _, v := range j.judgement.Violations[:min(len(j.judgement.Violations), maxViolations)] {
		if v.Path != "" {
			v.Path = judge.Escape(v.Path)
		}
		r.Violations = append(r.Violations, v)
	}
	return r
}

func count(r *contract.CheckpointReport, k judge.Kind) {
	switch k {
	case judge.Added:
		r.Added++
	case judge.Modified:
		r.Modified++
	case judge.Deleted:
		r.Deleted++
	case judge.TypeChanged:
		r.TypeChanged++
	}
}

// deliveryMessage is the message of a commit that people will read: the subject as ordered, and where it comes from.
func deliveryMessage(o occasion, i journal.Intent) string {
	subject := strings.Join(strings.Fields(o.orders.Delivery.Subject), " ")
	if subject == "" {
		subject = "Work of " + o.orders.Feature.Name
	}
	return subject + "\n\n" + trailers(o, i)
}

// chainMessage is the message of a commit in the private chain. It names the last line of the journal, so that whoever
// knows the commit, from a Checkpoint say, can tell whether the journal up to there is the one that was written.
func chainMessage(o occasion, i journal.Intent, head string) string {
	return fmt.Sprintf("Checkpoint %s: %s, %s\n\n%s%s%s\n", naming.Checkpoint(o.orders.Feature.Name, i.Sequence), i.Report.Verdict, i.Report.Action,
		trailers(o, i), chain.JournalTrailer, head)
}

func trailers(o occasion, i journal.Intent) string {
	t := fmt.Sprintf("Tidewaiter-Feature: %s/%s\n", o.orders.Feature.Namespace, o.orders.Feature.Name)
	if o.task != "" {
		t += "Tidewaiter-Task: " + o.task + "\n"
	}
	return t + "Tidewaiter-Checkpoint: " + naming.Checkpoint(o.orders.Feature.Name, i.Sequence) + "\n"
}

func clip(text string, limit int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}
