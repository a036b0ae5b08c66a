// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

var update = flag.Bool("update", false, "write the lines into testdata/lines.jsonl")

// many are more violations and changes than an agent is told of.
func many(n int) (violations []judge.Violation, changes []judge.Change) {
	for i := range n {
		path := fmt.Sprintf("web/%03d.html", i)
		violations = append(violations, judge.Violation{Rule: "areas", Path: path, Severity: policy.Error, Message: "outside", Suggestion: "move it"})
		changes = append(changes, judge.Change{Path: path, Kind: judge.Added})
	}
	return violations, changes
}

// TestLines holds every line that an agent may be sent, byte for byte: agents parse them.
func TestLines(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.FixedZone("there", 3600))
	few, changes := many(2)
	few[1].Path = "web/\xff\n.html"
	fault := protocol.Fault{Reason: protocol.ReasonVolumeFull, Message: "no space left"}
	ask, after := notice.Pause("login-3", 10*time.Second)
	back := notice.Reverted{Request: "r1", Kind: protocol.RollbackFull, Before: "login-4", To: "login-2", From: "checkpoint login-2", At: at, Paths: []string{"a"}}
	smart, paths := back, back
	smart.Kind, smart.To, smart.From, smart.Kept = protocol.RollbackSmart, "", "the last valid state", 1
	paths.Kind, paths.Paths, paths.Kept = protocol.RollbackPaths, strings.Split("a b c d e f g", " "), 2
	var got strings.Builder
	for _, n := range []any{
		notice.Broken("login-3", at, judge.Judgement{Severity: policy.Error, Violations: few}, changes, false),
		notice.Broken("login-3", at, judge.Judgement{Severity: policy.Critical, Violations: few[:1]}, nil, true),
		notice.Ahead(few, at), notice.Failed(fault, 1, 3, at), notice.Failed(fault, 3, 3, at), ask, after,
		notice.RolledBack(back), notice.RolledBack(smart), notice.RolledBack(paths),
	} {
		line, err := notice.Line(n)
		if err != nil || strings.ContainsAny(line, "\n\r") {
			t.Errorf("%+v: %q, %v", n, line, err)
		}
		got.WriteString(line + "\n")
	}
	const file = "testdata/lines.jsonl"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("lines (-want +got), -update accepts them:\n%s", diff)
	}
}

// Whatever a checkpoint found, the lines stay small.
func TestLinesAreBounded(t *testing.T) {
	violations, changes := many(1000)
	n := notice.Broken("login-3", time.Time{}, judge.Judgement{Severity: policy.Error, Violations: violations}, changes, false)
	if len(n.Violations) != notice.MaxViolations || len(n.FilesChanged) != notice.MaxFiles {
		t.Errorf("%d violations and %d files", len(n.Violations), len(n.FilesChanged))
	}
	if w := notice.Ahead(violations, time.Time{}); len(w.Violations) != notice.MaxViolations {
		t.Errorf("warned of %d violations", len(w.Violations))
	}
	paths := make([]string, 1000)
	if r := notice.RolledBack(notice.Reverted{Paths: paths}); len(r.FilesReverted) != notice.MaxFiles || len(r.Message) > 200 {
		t.Errorf("%d files, message %q", len(r.FilesReverted), r.Message)
	}
}
