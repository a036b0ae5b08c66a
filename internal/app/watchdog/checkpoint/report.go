// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/chain"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/vitals"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// Bounds of a record: it becomes an API object of a few KiB.
const (
	maxSamples    = 8
	maxViolations = 8
	maxReason     = 512
)

// Directory that all changes are in, as text that can be seen; empty if that is the workspace itself. Changes are sorted by path.
func Directory(changes []judge.Change) string {
	if len(changes) == 0 {
		return ""
	}
	first, last := changes[0].Path, changes[len(changes)-1].Path
	end := 0
	for i := 0; i < min(len(first), len(last)) && first[i] == last[i]; i++ {
		if first[i] == '/' {
			end = i
		}
	}
	if len(changes) == 1 {
		end = max(strings.LastIndexByte(first, '/'), 0)
	}
	if end == 0 {
		return ""
	}
	return judge.Escape(first[:end])
}

// reportOf is the record of a checkpoint, as far as it is known before it is acted on.
func (s *Service) reportOf(o Occasion, j judged, i journal.Intent) protocol.CheckpointReport {
	c := j.snapshot
	r := protocol.CheckpointReport{
		Sequence: i.Sequence, Previous: s.Journal.State().Chain.Sequence, Task: o.Task, Trigger: o.Trigger, CapturedAt: c.At.UTC(),
		Tree: i.Tree, Base: s.Journal.State().Base.Commit, PolicyHash: o.Terms.Policy.Hash, Audit: o.Terms.Policy.Enforcement == policy.Audit,
		Frozen: c.Frozen, FrozenFor: c.FrozenFor, Processes: c.Processes, Settled: c.Settled,
		Verdict: j.judgement.Verdict, Severity: j.judgement.Severity, ViolationCount: int64(len(j.judgement.Violations)),
		LinesAdded: j.judgement.Lines.Added, LinesDeleted: j.judgement.Lines.Removed,
		Action: j.consequence.Action, CaptureTime: c.CaptureTime, SyncTime: c.SyncTime, JudgeTime: j.judgeTime,
		Transient: transientOf(c.Transient), Vitals: s.vitals(),
	}
	if c.Frozen {
		r.Pause = o.freeze().Pause
	}
	r.Vitals.JudgedKnown, r.Vitals.JudgedFresh = s.Judge.Known()
	r.Vitals.Changed, r.Vitals.Read, r.Vitals.Files = j.changed, int64(c.Dirty), c.Workspace.Files
	if !c.Settled {
		r.UnsettledReason = plain.CutBytes(c.Reason, maxReason)
	}
	for _, change := range c.Changes {
		count(&r, change.Kind)
		if len(r.SamplePaths) < maxSamples {
			r.SamplePaths = append(r.SamplePaths, judge.Escape(change.Path))
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

// transientOf is what a record has of names that came and went; nil for none.
func transientOf(t workspace.Transient) *protocol.Transient {
	if len(t.Names) == 0 && t.More == 0 && !t.Incomplete {
		return nil
	}
	r := &protocol.Transient{More: t.More, Incomplete: t.Incomplete}
	room := protocol.MaxTransientBytes
	for _, name := range t.Names {
		if name = judge.Escape(name); len(r.Names) == protocol.MaxTransient || len(name) > room {
			r.More++
			continue
		}
		r.Names, room = append(r.Names, name), room-len(name)
	}
	return r
}

// rollbackOf says why the workspace goes back; nil where it goes to what a patch makes of it.
func rollbackOf(o Occasion, j judged, violates bool) *protocol.RollbackReport {
	switch {
	case violates:
		return &protocol.RollbackReport{Cause: protocol.RollbackByViolation}
	case j.consequence.Restore != supervise.RestoreChosen:
		return nil
	case o.Trigger == protocol.TriggerSteering:
		return &protocol.RollbackReport{Cause: protocol.RollbackBySupervision, To: j.back.to, ToBase: j.back.toBase, Reason: plain.CutBytes(o.Reason, maxReason)}
	}
	return &protocol.RollbackReport{Cause: protocol.RollbackByRequest, To: j.back.to, Reason: "request " + j.back.request}
}

func count(r *protocol.CheckpointReport, k judge.Kind) {
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
func deliveryMessage(o Occasion, i journal.Intent) string {
	subject := strings.Join(strings.Fields(o.Orders.Delivery.Subject), " ")
	if subject == "" {
		subject = "Work of " + o.Orders.Feature.Name
	}
	return subject + "\n\n" + trailers(o, i)
}

// chainMessage is the message of a commit in the private chain. It names the last line of the journal, so that a reader who
// knows the commit, from a Checkpoint say, can tell whether the journal up to there is the one that was written.
func chainMessage(o Occasion, i journal.Intent, head string) string {
	return fmt.Sprintf("Checkpoint %s: %s, %s\n\n%s%s%s\n", naming.Checkpoint(o.Orders.Feature.Name, i.Sequence), i.Report.Verdict, i.Report.Action,
		trailers(o, i), chain.JournalTrailer, head)
}

func trailers(o Occasion, i journal.Intent) string {
	t := fmt.Sprintf("Tidewaiter-Feature: %s/%s\n", o.Orders.Feature.Namespace, o.Orders.Feature.Name)
	if o.Task != "" {
		t += "Tidewaiter-Task: " + o.Task + "\n"
	}
	return t + "Tidewaiter-Checkpoint: " + naming.Checkpoint(o.Orders.Feature.Name, i.Sequence) + "\n"
}

// vitals are the figures of this moment; what cannot be measured is zero.
func (s *Service) vitals() protocol.Vitals {
	var v protocol.Vitals
	v.Memory, _ = vitals.Memory()
	v.Descriptors, _ = vitals.Descriptors()
	v.EventDelay = s.Workspace.Engine().Delay()
	v.Trusted.Used, v.Trusted.Size, _ = vitals.Volume(string(s.Dir))
	v.Workspace.Used, v.Workspace.Size, _ = vitals.Volume(s.Workspace.Root())
	v.Reports, v.Refused = s.Waiting(), s.Refused()
	return v
}
