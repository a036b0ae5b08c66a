// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// maxSpec bounds the JSON of a Checkpoint's spec in bytes: with metadata and the API server's own notes in it
	// (managedFields), the object stays below 4 KiB. With violations it may have 4 KiB more, so that they stay readable.
	maxSpec, maxSpecViolated = 2300, 2300 + 4096
	// maxSamples and maxViolations are what the API takes.
	maxSamples, maxViolations = 8, 8
	// maxText bounds paths, messages and suggestions in characters, as the API does. When a record has to be made smaller,
	// minSaid is what is left of messages and suggestions at least, minPath of the paths of violations, minText of other
	// texts, minRule of names, minHash of the hash of a policy (SHA-256 in hexadecimal).
	maxText, minSaid, minPath, minText, minRule, minHash = 256, 160, 64, 16, 32, 64
	// maxUnsettled bounds the reason of an unsettled capture, as the API does.
	maxUnsettled = 512
	// reasonNothingChanged is the reason of a skipped checkpoint.
	reasonNothingChanged = protocol.ReasonNothingChanged
)

// Checkpoint is the object that records a report. It is a function only of its arguments: a report that comes twice, to any replica, makes
// the same object.
func Checkpoint(f *v1alpha1.Feature, r protocol.Report) *v1alpha1.Checkpoint {
	return &v1alpha1.Checkpoint{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Namespace,
			Name:      naming.Checkpoint(f.Name, r.Checkpoint.Sequence),
			Labels: map[string]string{
				v1alpha1.LabelFeature: f.Name,
				v1alpha1.LabelVerdict: string(r.Checkpoint.Verdict),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Feature", Name: f.Name, UID: f.UID, Controller: ptr.To(true),
			}},
		},
		Spec: checkpointSpec(f.Name, string(f.UID), r),
	}
}

// checkpointSpec is the record of a report, made as small as it has to be.
func checkpointSpec(feature, uid string, r protocol.Report) v1alpha1.CheckpointSpec {
	c := r.Checkpoint
	spec := v1alpha1.CheckpointSpec{
		FeatureName: feature, FeatureUID: uid, Sequence: c.Sequence, Attempt: r.Epoch,
		Task: Clean(c.Task, maxName), Trigger: v1alpha1.Trigger(c.Trigger), CaptureTime: *apiTime(c.CapturedAt),
		Commit: c.Commit, Tree: c.Tree, Base: c.Base, DeliveryCommit: c.DeliveryCommit, PolicyHash: Clean(c.PolicyHash, maxName), Audit: c.Audit,
		Capture: v1alpha1.CaptureInfo{
			Frozen: c.Frozen, FrozenMicros: micros(c.FrozenFor), Processes: int32(c.Processes), Settled: c.Settled,
			UnsettledReason: Clean(c.UnsettledReason, maxUnsettled),
		},
		Files:   v1alpha1.FileCounts{Total: c.Added + c.Modified + c.Deleted + c.TypeChanged, Added: c.Added, Modified: c.Modified, Deleted: c.Deleted, TypeChanged: c.TypeChanged},
		Lines:   v1alpha1.LineCounts{Added: c.LinesAdded, Deleted: c.LinesDeleted},
		Verdict: v1alpha1.Verdict(c.Verdict), Severity: v1alpha1.Severity(c.Severity), Reason: reason(*c),
		ViolationCount: c.ViolationCount, Action: v1alpha1.Action(c.Action),
		Durations: v1alpha1.CheckpointDurations{
			CaptureMicros: micros(c.CaptureTime), SyncMicros: micros(c.SyncTime), JudgeMicros: micros(c.JudgeTime), ActMicros: micros(c.ActTime),
		},
	}
	if c.Pause != nil {
		spec.Capture.Pause = &v1alpha1.PauseInfo{Acknowledged: c.Pause.Acknowledged, Micros: micros(c.Pause.Latency)}
		for _, p := range c.Pause.Pending[:min(len(c.Pause.Pending), protocol.MaxPendingOperations)] {
			spec.Capture.Pause.PendingOperations = append(spec.Capture.Pause.PendingOperations, Clean(p, protocol.MaxPendingOperation))
		}
	}
	if b := c.Rollback; b != nil {
		spec.Rollback = &v1alpha1.RollbackRecord{Cause: v1alpha1.RollbackCause(b.Cause), ToBase: b.ToBase, Reason: Clean(b.Reason, maxText)}
		if b.To > 0 {
			spec.Rollback.To = naming.Checkpoint(feature, b.To)
		}
	}
	if n := c.Transient; n != nil {
		listed := n.Names[:min(len(n.Names), protocol.MaxTransient)]
		spec.Transient = &v1alpha1.TransientNames{More: max(0, n.More) + int64(len(n.Names)-len(listed)), Incomplete: n.Incomplete}
		for _, name := range listed {
			spec.Transient.Names = append(spec.Transient.Names, shown(name))
		}
	}
	if c.Previous > 0 {
		spec.Previous = naming.Checkpoint(feature, c.Previous)
	}
	for _, path := range c.SamplePaths[:min(len(c.SamplePaths), maxSamples)] {
		spec.SamplePaths = append(spec.SamplePaths, shown(path))
	}
	for _, v := range c.Violations[:min(len(c.Violations), maxViolations)] {
		spec.Violations = append(spec.Violations, v1alpha1.Violation{
			Rule: Clean(v.Rule, 64), Path: shown(v.Path), Severity: v1alpha1.Severity(v.Severity),
			Message: Clean(v.Message, maxText), Suggestion: Clean(v.Suggestion, maxText),
		})
	}
	suggestOnce(spec.Violations)
	shrink(&spec)
	return spec
}

// suggestOnce leaves a suggestion with the first violation that has it; those of the same rule after it mean the same.
func suggestOnce(violations []v1alpha1.Violation) {
	said := map[string]bool{}
	for i := range violations {
		v := &violations[i]
		if key := v.Rule + "\x00" + v.Suggestion; said[key] {
			v.Suggestion = ""
		} else {
			said[key] = true
		}
	}
}

// shrink counts the last names that came and went instead of listing them, then shortens texts, then leaves out the last samples and violations, until the
// record is small enough. The worst
// violation, which comes first, keeps its text the longest, and what is said of any is never cut to what nobody can read.
func shrink(spec *v1alpha1.CheckpointSpec) {
	most := maxSpec
	if len(spec.Violations) > 0 {
		most = maxSpecViolated
	}
	for n := spec.Transient; n != nil && len(n.Names) > 0 && size(spec) > most; n.More++ {
		n.Names = n.Names[:len(n.Names)-1]
	}
	for limit := maxText; size(spec) > most && limit >= minText; limit = limit * 3 / 4 {
		shorten(spec, limit)
	}
	for size(spec) > most && (len(spec.SamplePaths) > 0 || len(spec.Violations) > 1) {
		if len(spec.SamplePaths) > 1 || len(spec.Violations) <= 1 {
			spec.SamplePaths = spec.SamplePaths[:len(spec.SamplePaths)-1]
		} else {
			spec.Violations = spec.Violations[:len(spec.Violations)-1]
		}
	}
}

// shorten bounds every text in characters: rules, by which people search, as little as can be.
func shorten(spec *v1alpha1.CheckpointSpec, limit int) {
	spec.Task, spec.PolicyHash = Clean(spec.Task, max(limit, minRule)), Clean(spec.PolicyHash, max(limit, minHash))
	spec.Capture.UnsettledReason = Clean(spec.Capture.UnsettledReason, 2*limit)
	if b := spec.Rollback; b != nil {
		b.Reason = Clean(b.Reason, limit)
	}
	if p := spec.Capture.Pause; p != nil {
		for i := range p.PendingOperations {
			p.PendingOperations[i] = Clean(p.PendingOperations[i], limit)
		}
	}
	for i := range spec.SamplePaths {
		spec.SamplePaths[i] = Clean(spec.SamplePaths[i], limit)
	}
	for i := range spec.Violations {
		v, own := &spec.Violations[i], limit
		if i == 0 {
			own = min(2*limit, maxText)
		}
		said := max(own, minSaid)
		v.Rule, v.Path = Clean(v.Rule, max(limit, minRule)), Clean(v.Path, max(own, minPath))
		v.Message, v.Suggestion = Clean(v.Message, said), Clean(v.Suggestion, said)
	}
}

func size(spec *v1alpha1.CheckpointSpec) int {
	encoded, err := json.Marshal(spec)
	if err != nil {
		// Plain strings and numbers: it cannot happen, and a record too large is refused by nobody.
		return 0
	}
	return len(encoded)
}

// reason is one word for the printed table and the Feature's condition.
func reason(c protocol.CheckpointReport) string {
	switch {
	case !c.Settled:
		return protocol.ReasonCheckpointFailed
	case len(c.Violations) > 0 && c.Verdict == protocol.Invalid:
		if word := judge.Reason(c.Violations[0].Rule); word != "" {
			return word
		}
		return camelCase(c.Violations[0].Rule)
	case c.Verdict == protocol.Skipped:
		return reasonNothingChanged
	}
	return ""
}

// summaryMessage says in a sentence or two what the newest checkpoint means; it becomes the message of a condition.
func summaryMessage(c protocol.CheckpointReport) string {
	switch {
	case !c.Settled:
		return Clean(c.UnsettledReason, maxMessage)
	case c.Verdict != protocol.Invalid || len(c.Violations) == 0:
		return ""
	}
	worst := c.Violations[0]
	worst.Path = shown(worst.Path)
	message := judge.SummaryOf(worst)
	switch more := c.ViolationCount - 1; {
	case more == 1:
		message += " There is 1 more violation."
	case more > 1:
		message += fmt.Sprintf(" There are %d more violations.", more)
	}
	return Clean(message, maxMessage)
}

// FailureMessage is the message of an Event about a failed checkpoint.
func FailureMessage(f protocol.CheckpointFailure) string {
	return Clean(fmt.Sprintf("A checkpoint (trigger %s) failed with %s: %s. The agent's work is still in the workspace, and the next checkpoint captures it.",
		cmp.Or(f.Trigger, "unknown"), f.Reason, strings.TrimSuffix(f.Message, ".")), maxMessage)
}

// specMessage is the same for a Checkpoint whose report is not at hand.
func specMessage(spec v1alpha1.CheckpointSpec) string {
	report := protocol.CheckpointReport{
		Settled: spec.Capture.Settled, UnsettledReason: spec.Capture.UnsettledReason, Verdict: protocol.Verdict(spec.Verdict), ViolationCount: spec.ViolationCount,
	}
	if len(spec.Violations) > 0 {
		worst := spec.Violations[0]
		report.Violations = []protocol.Violation{{Rule: worst.Rule, Path: worst.Path, Message: worst.Message, Suggestion: worst.Suggestion}}
	}
	return summaryMessage(report)
}

// shown is a path of a report as people see it. The watchdog has escaped it, since JSON cannot hold every name: it stays as
// it is. What is not escaped does not come from a watchdog of ours, and is escaped here.
func shown(path string) string {
	if path == "" {
		return ""
	}
	return judge.EscapeOnce(path)
}

// camelCase turns the id of a rule that this version does not know into a reason.
func camelCase(id string) string {
	var out []rune
	upper := true
	for _, r := range id {
		switch {
		case unicode.Is(unicode.Latin, r) || unicode.IsDigit(r) && len(out) > 0:
			if upper {
				r = unicode.ToUpper(r)
			}
			out, upper = append(out, r), false
		default:
			upper = true
		}
	}
	return Clean(string(out), 64)
}

func visible(r rune) bool { return r != unicode.ReplacementChar && unicode.IsPrint(r) }

func micros(d time.Duration) int64 { return max(0, d.Microseconds()) }
