// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

func login() *v1alpha1.Feature {
	return &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login", UID: "uid-1"}}
}

func TestCheckpoint(t *testing.T) {
	id := func(n int) string { return fmt.Sprintf("%040x", n) }
	got := Checkpoint(login(), protocol.Report{Epoch: 2, Sequence: 9, Checkpoint: &protocol.CheckpointReport{
		Sequence: 7, Previous: 6, Task: "login/form", Trigger: protocol.TriggerTask, CapturedAt: reports.Noon.Add(123 * time.Millisecond).In(time.FixedZone("", 3600)),
		Commit: id(1), Tree: id(2), Base: id(3), DeliveryCommit: id(4), PolicyHash: "abc", Audit: true,
		Frozen: true, FrozenFor: 1500 * time.Microsecond, Processes: 12,
		Pause:   &protocol.Pause{Acknowledged: true, Latency: 20 * time.Millisecond, Pending: []string{"go\ntest", "a", "b", "c", "too many"}},
		Settled: true, Added: 1, Modified: 2, Deleted: 3, TypeChanged: 4, LinesAdded: 5, LinesDeleted: 6,
		Transient:   &protocol.Transient{Names: []string{"run.sh", "a\x1bb"}, More: 3, Incomplete: true},
		SamplePaths: []string{"web/a", "web/b\nc", `"web/already\tescaped"`}, Verdict: protocol.Invalid, Severity: policy.Critical, ViolationCount: 2,
		Violations: []protocol.Violation{
			{Rule: "symlinks", Path: "web/\u202Eevil", Severity: policy.Critical, Message: "points to /etc/passwd", Suggestion: "remove it"},
			{Rule: "made-by-a-later-version", Severity: policy.Warning, Message: "hm"},
		},
		Action: protocol.ActionPromoted, CaptureTime: time.Millisecond, SyncTime: 2 * time.Millisecond, JudgeTime: 3 * time.Millisecond, ActTime: 4 * time.Millisecond,
	}})
	want := &v1alpha1.Checkpoint{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "login-7",
			Labels: map[string]string{"tidewaiter.dev/feature": "login", "tidewaiter.dev/verdict": "Invalid"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "tidewaiter.dev/v1alpha1", Kind: "Feature", Name: "login", UID: "uid-1", Controller: ptr.To(true),
			}},
		},
		Spec: v1alpha1.CheckpointSpec{
			FeatureName: "login", FeatureUID: "uid-1", Sequence: 7, Previous: "login-6", Attempt: 2, Task: "login/form", Trigger: "Task",
			CaptureTime: metav1.NewTime(reports.Noon), Commit: id(1), Tree: id(2), Base: id(3), DeliveryCommit: id(4), PolicyHash: "abc", Audit: true,
			Capture: v1alpha1.CaptureInfo{Frozen: true, FrozenMicros: 1500, Processes: 12, Settled: true,
				Pause: &v1alpha1.PauseInfo{Acknowledged: true, Micros: 20000, PendingOperations: []string{"go test", "a", "b", "c"}}},
			Files:       v1alpha1.FileCounts{Total: 10, Added: 1, Modified: 2, Deleted: 3, TypeChanged: 4},
			Lines:       v1alpha1.LineCounts{Added: 5, Deleted: 6},
			Transient:   &v1alpha1.TransientNames{Names: []string{"run.sh", `"a\x1bb"`}, More: 3, Incomplete: true},
			SamplePaths: []string{"web/a", `"web/b\nc"`, `"web/already\tescaped"`}, Verdict: "Invalid", Severity: "Critical", Reason: "SymlinkNotAllowed",
			Violations: []v1alpha1.Violation{
				{Rule: "symlinks", Path: `"web/\u202eevil"`, Severity: "Critical", Message: "points to /etc/passwd", Suggestion: "remove it"},
				{Rule: "made-by-a-later-version", Severity: "Warning", Message: "hm"},
			},
			ViolationCount: 2, Action: "Promoted",
			Durations: v1alpha1.CheckpointDurations{CaptureMicros: 1000, SyncMicros: 2000, JudgeMicros: 3000, ActMicros: 4000},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReason(t *testing.T) {
	violated := []protocol.Violation{{Rule: "planned-files"}}
	tests := map[string]struct {
		report protocol.CheckpointReport
		want   string
	}{
		"valid":              {protocol.CheckpointReport{Settled: true, Verdict: protocol.Valid, Violations: violated}, ""},
		"invalid":            {protocol.CheckpointReport{Settled: true, Verdict: protocol.Invalid, Violations: violated}, "NotPlanned"},
		"a rule of tomorrow": {protocol.CheckpointReport{Settled: true, Verdict: protocol.Invalid, Violations: []protocol.Violation{{Rule: "no-big--sql2!"}}}, "NoBigSql2"},
		"no letters at all":  {protocol.CheckpointReport{Settled: true, Verdict: protocol.Invalid, Violations: []protocol.Violation{{Rule: "42-\x00"}}}, ""},
		"skipped":            {protocol.CheckpointReport{Settled: true, Verdict: protocol.Skipped}, "NothingChanged"},
		"unsettled":          {protocol.CheckpointReport{Verdict: protocol.Invalid, Violations: violated}, "CheckpointFailed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reason(test.report); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestCheckpointIsSmallAndSafe: whatever is reported, the object is small, within the API's bounds, fit for a terminal,
// keeps its worst violation, and is the same each time.
func TestCheckpointIsSmallAndSafe(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringN(0, 4000, -1), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.Just(strings.Repeat("<é\u202e>", 900)), rapid.Just(strings.Repeat("web/some/quite/long/path/", 40)))
	rapid.Check(t, func(t *rapid.T) {
		c := reports.Taken(1<<40, protocol.Invalid)
		c.Violations = nil
		c.Task, c.PolicyHash, c.UnsettledReason = text.Draw(t, "task"), text.Draw(t, "hash"), text.Draw(t, "unsettled")
		c.Settled = rapid.Bool().Draw(t, "settled")
		c.Rollback = &protocol.RollbackReport{Cause: protocol.RollbackBySupervision, To: 1 << 40, Reason: text.Draw(t, "rollback")}
		c.SamplePaths = rapid.SliceOfN(text, 0, 20).Draw(t, "samples")
		c.Transient = &protocol.Transient{Names: rapid.SliceOfN(text, 0, 40).Draw(t, "transient"), More: rapid.Int64Range(-1, 1<<40).Draw(t, "more")}
		for range rapid.IntRange(0, 20).Draw(t, "violations") {
			c.Violations = append(c.Violations, protocol.Violation{
				Rule: text.Draw(t, "rule"), Path: text.Draw(t, "path"), Severity: policy.Error, Message: text.Draw(t, "message"), Suggestion: text.Draw(t, "suggestion"),
			})
		}
		f := login()
		f.Name = strings.Repeat("n", 52)
		r := protocol.Report{Epoch: 1 << 40, Sequence: 1, Checkpoint: &c}
		got := Checkpoint(f, r)
		if diff := cmp.Diff(got, Checkpoint(f, r)); diff != "" {
			t.Fatalf("not the same twice:\n%s", diff)
		}
		encoded, err := json.Marshal(got.Spec)
		most := maxSpec
		if len(c.Violations) > 0 {
			most = maxSpecViolated
		}
		if err != nil || len(encoded) > most {
			t.Fatalf("%d bytes, %v", len(encoded), err)
		}
		if n := got.Spec.Transient; len(n.Names) > 32 || n.More+int64(len(n.Names)) != max(0, c.Transient.More)+int64(len(c.Transient.Names)) {
			t.Fatalf("%d names that came and went and %d more, of %d and %d", len(n.Names), n.More, len(c.Transient.Names), c.Transient.More)
		}
		if len(c.Violations) > 0 && len(got.Spec.Violations) == 0 {
			t.Fatal("no violation is left")
		}
		if strings.ContainsFunc(string(encoded), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("not fit for a terminal: %q", encoded)
		}
		for _, v := range got.Spec.Violations {
			if utf8.RuneCountInString(v.Rule) > 64 || utf8.RuneCountInString(v.Path) > 256 || utf8.RuneCountInString(v.Message) > 256 {
				t.Fatalf("beyond the API's bounds: %+v", v)
			}
		}
		if message := summaryMessage(c); utf8.RuneCountInString(message) > maxMessage {
			t.Fatalf("a message of %d characters", utf8.RuneCountInString(message))
		}
	})
}

// TestNamesThatWentGiveWay: they are the first to be counted instead of listed, and nothing else is cut for them.
func TestNamesThatWentGiveWay(t *testing.T) {
	c := reports.Taken(7, protocol.Valid)
	c.SamplePaths = []string{strings.Repeat("a/long/path/", 15)}
	c.Transient = &protocol.Transient{More: 2}
	for i := range 32 {
		c.Transient.Names = append(c.Transient.Names, strings.Repeat("t", 100)+fmt.Sprint(i))
	}
	got := Checkpoint(login(), protocol.Report{Epoch: 1, Sequence: 1, Checkpoint: &c}).Spec
	if n := got.Transient; len(n.Names) < 5 || len(n.Names) > 20 || n.More != int64(34-len(n.Names)) || n.Names[0] != c.Transient.Names[0] {
		t.Errorf("%d names are left, and %d more: %q", len(n.Names), n.More, n.Names)
	}
	if diff := cmp.Diff(c.SamplePaths, got.SamplePaths); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

// TestEightViolationsStayReadable: with everything else as long as it can be, eight violations are all there, nothing that
// is said of one is cut below 160 characters, and a rule suggests the same only once.
func TestEightViolationsStayReadable(t *testing.T) {
	c := reports.Taken(7, protocol.Invalid)
	c.Violations = nil
	c.Task, c.UnsettledReason = strings.Repeat("t", 128), strings.Repeat("it was modified outside of it; ", 20)
	for i := range 8 {
		c.SamplePaths = append(c.SamplePaths, strings.Repeat("a/long/path/", 20)+fmt.Sprint(i))
		c.Violations = append(c.Violations, protocol.Violation{
			Rule: fmt.Sprintf("a-rule-of-some-length-%d", i/2), Path: strings.Repeat("web/some/quite/long/path/", 8) + fmt.Sprint(i), Severity: policy.Error,
			Message: strings.Repeat("m", 250), Suggestion: strings.Repeat(fmt.Sprint(i/2), 250),
		})
	}
	c.ViolationCount = 8
	f := login()
	f.Name = strings.Repeat("n", 52)
	got := Checkpoint(f, protocol.Report{Epoch: 1, Sequence: 1, Checkpoint: &c})
	if len(got.Spec.Violations) != 8 {
		t.Fatalf("%d violations are left", len(got.Spec.Violations))
	}
	for i, v := range got.Spec.Violations {
		if n := len(v.Message); n < 160 {
			t.Errorf("message %d is cut to %d characters: %q", i, n, v.Message)
		}
		if n := len(v.Suggestion); n < 160 && i%2 == 0 || n > 0 && i%2 == 1 {
			t.Errorf("suggestion %d has %d characters: %q", i, n, v.Suggestion)
		}
	}
	if object, err := json.Marshal(got); err != nil || len(object) > 8192-1000 { // managedFields come to it
		t.Errorf("%d bytes, %v", len(object), err)
	}
}
