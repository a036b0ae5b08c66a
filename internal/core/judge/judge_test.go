// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/checks"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// sound sets what a sample leaves out: limits out of reach, and a tree that holds what the changes say.
func sound(in Input) Input {
	c := &in.Policy.Changes
	for _, limit := range []*int64{&c.MaxFileSize, &c.MaxWorkspaceSize, &c.MaxWorkspaceFiles} {
		if *limit == 0 {
			*limit = math.MaxInt64
		}
	}
	if in.Names == nil {
		var paths []string
		for _, change := range in.Changes {
			if change.New.Mode != 0 {
				paths = append(paths, change.Path)
			}
		}
		in.Names = treeOf(paths...)
	}
	if in.Contents == nil {
		in.Contents = contentsOf(nil)
	}
	if in.Compile == nil {
		in.Compile = checks.Compile
	}
	return in
}

// judgeAll judges to the end.
func judgeAll(in Input) Judgement {
	j, err := Judge(context.Background(), in)
	if err != nil {
		panic(err) // such a context does not end
	}
	return j
}

// broken are the rules that an input breaks, each once.
func broken(in Input) []string {
	var ids []string
	for _, v := range judgeAll(in).Violations {
		if slices.ContainsFunc(in.Policy.Checks, func(c policy.Check) bool { return c.Name == v.Rule }) {
			v.Rule = "checks"
		}
		ids = append(ids, v.Rule)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

var (
	kebab = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	camel = regexp.MustCompile(`^([A-Z][a-z]+)+$`)
)

// TestRules runs every rule's own proof.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			if !kebab.MatchString(rule.ID) || !camel.MatchString(rule.Reason) {
				t.Errorf("id %q must be kebab-case and reason %q CamelCase", rule.ID, rule.Reason)
			}
			if seen[rule.ID] || seen[rule.Reason] {
				t.Errorf("id %q or reason %q is taken", rule.ID, rule.Reason)
			}
			seen[rule.ID], seen[rule.Reason] = true, true
			if rule.Doc == "" || rule.Severity == "" || rule.Suggestion == "" {
				t.Error("doc, severity and suggestion must be written")
			}
			if (rule.check == nil) == (rule.placement == nil) {
				t.Error("either check or placement must be written")
			}
			if len(rule.Reject) == 0 || len(rule.Accept) == 0 {
				t.Error("there must be at least one sample to reject and one to accept")
			}
			for _, sample := range rule.Reject {
				if got := broken(sound(sample.Input)); !slices.Contains(got, rule.ID) {
					t.Errorf("%s: want rejected, broken rules are %v", sample.Name, got)
				}
			}
			for _, sample := range rule.Accept {
				if got := broken(sound(sample.Input)); slices.Contains(got, rule.ID) {
					t.Errorf("%s: want accepted, broken rules are %v", sample.Name, got)
				}
			}
		})
	}
}

// TestEveryRuleIsRegistered: there is a file for each rule, and a line for each file.
func TestEveryRuleIsRegistered(t *testing.T) {
	files, err := filepath.Glob("rule_*.go")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(Rules()); got != len(files) || got == 0 {
		t.Errorf("%d rules are registered, there are %d files rule_*.go", got, len(files))
	}
}

// TestRejectingSamplesBlock: with a policy that sets nothing, every rule blocks.
func TestRejectingSamplesBlock(t *testing.T) {
	for _, rule := range Rules() {
		for _, sample := range rule.Reject {
			j := judgeAll(sound(sample.Input))
			if j.Verdict != protocol.Invalid {
				t.Errorf("%s, %s: verdict %s, want Invalid", rule.ID, sample.Name, j.Verdict)
			}
		}
	}
}

func TestReason(t *testing.T) {
	for _, rule := range Rules() {
		if got := Reason(rule.ID); got != rule.Reason {
			t.Errorf("Reason(%q) = %q, want %q", rule.ID, got, rule.Reason)
		}
	}
	if got := Reason("no-such-rule"); got != "" {
		t.Errorf("Reason of an unknown rule = %q, want none", got)
	}
}

// TestPrecedence: of the rules about where an agent may write, a path breaks the first that applies.
func TestPrecedence(t *testing.T) {
	plan := protocol.Plan{
		Allowed:   []string{"in/**"},
		Forbidden: []string{"in/forbidden/**", "all"},
		Files: &protocol.FilePlan{Create: []string{
			"in/planned", "in/forbidden/planned", "in/protected/planned", "in/closed/planned", "in/contract/planned", "out/planned",
		}},
	}
	paths := policy.Paths{
		Protected: []string{"in/protected/**", "all", "most"},
		Rules:     []policy.PathRule{{Paths: []string{"in/closed/**", "all", "most", "some"}, Access: policy.ReadOnly}},
	}
	contracts := []policy.Contract{{Name: "c", Paths: []string{"in/contract/**", "all", "most", "some", "out/contract"}}}
	tests := map[string]struct {
		path string
		want []string
	}{
		"allowed and planned":            {"in/planned", nil},
		"allowed but not planned":        {"in/other", []string{"planned-files"}},
		"planned but not allowed":        {"out/planned", []string{"allowed-areas"}},
		"neither":                        {"out/other", []string{"allowed-areas"}},
		"protected, allowed and planned": {"in/protected/planned", []string{"protected-paths"}},
		"forbidden, allowed and planned": {"in/forbidden/planned", []string{"forbidden-areas"}},
		"read-only, allowed and planned": {"in/closed/planned", []string{"path-rules"}},
		"not locked, allowed, planned":   {"in/contract/planned", []string{"contracts"}},
		"not locked and not allowed":     {"out/contract", []string{"contracts"}},
		"read-only and not locked":       {"some", []string{"path-rules"}},
		"protected, too":                 {"most", []string{"protected-paths"}},
		"forbidden, too":                 {"all", []string{"forbidden-areas"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := broken(sound(Input{
				Changes: []Change{addFile(tt.path)},
				Plan:    plan,
				Policy:  policy.Effective{Paths: paths, Contracts: contracts},
			}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("broken rules (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSeverity: the verdict follows the worst severity, and what is not known weighs as Error.
func TestSeverity(t *testing.T) {
	tests := map[string]struct {
		paths        policy.Severity
		links        policy.Permission
		wantVerdict  protocol.Verdict
		wantSeverity policy.Severity
	}{
		"a warning does not block":              {policy.Info, policy.Warn, protocol.Valid, policy.Warning},
		"information does not block":            {policy.Info, policy.Allow, protocol.Valid, policy.Info},
		"an error blocks":                       {policy.Error, policy.Allow, protocol.Invalid, policy.Error},
		"the worst counts":                      {policy.Critical, policy.Deny, protocol.Invalid, policy.Critical},
		"a severity that is not set blocks":     {"", policy.Allow, protocol.Invalid, policy.Error},
		"a severity that is not known blocks":   {"Mild", policy.Allow, protocol.Invalid, policy.Error},
		"a permission that is not set denies":   {policy.Info, "", protocol.Invalid, policy.Error},
		"a permission that is not known denies": {policy.Info, "allow", protocol.Invalid, policy.Error},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := judgeAll(sound(Input{
				Changes: []Change{addFile("AGENTS.md"), addLink("a", "b")},
				Policy: policy.Effective{
					Paths:   policy.Paths{Protected: []string{"AGENTS.md"}, Severity: tt.paths},
					Changes: policy.Changes{Symlinks: tt.links},
				},
			}))
			if j.Verdict != tt.wantVerdict || j.Severity != tt.wantSeverity {
				t.Errorf("got %s at %s, want %s at %s", j.Verdict, j.Severity, tt.wantVerdict, tt.wantSeverity)
			}
		})
	}
}

func TestNothingChangedIsValid(t *testing.T) {
	if diff := cmp.Diff(Judgement{Verdict: protocol.Valid}, judgeAll(Input{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEveryPathIsJudged: one bad path among very many is found wherever it is.
func TestEveryPathIsJudged(t *testing.T) {
	const files = 5000
	for _, bad := range []int{0, files / 2, files - 1} {
		in := Input{Plan: protocol.Plan{Allowed: []string{"in/**"}}}
		for i := range files {
			path := fmt.Sprintf("in/%d/%d/%d", i%7, i%26, i)
			if i == bad {
				path = fmt.Sprintf("out/%d", i)
			}
			in.Changes = append(in.Changes, addFile(path))
		}
		j := judgeAll(sound(in))
		if want := fmt.Sprintf("out/%d", bad); len(j.Violations) != 1 || j.Violations[0].Path != want {
			t.Errorf("want one violation by %s, got %d: %v", want, len(j.Violations), j.Violations[:min(3, len(j.Violations))])
		}
	}
}

func TestViolationsAreSortedWorstFirst(t *testing.T) {
	j := judgeAll(sound(Input{
		Changes: []Change{addLink("a", "b"), addFile("z/.git/x"), addFile("y\x01")},
		Policy:  policy.Effective{Changes: policy.Changes{Symlinks: policy.Warn}},
	}))
	var got []string
	for _, v := range j.Violations {
		got = append(got, string(v.Severity)+" "+Escape(v.Path)+" "+v.Rule)
	}
	want := []string{`Error "y\x01" names`, "Error z/.git/x git-directory", "Warning a symlinks"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSummary(t *testing.T) {
	tests := map[string]struct {
		in   Judgement
		want string
	}{
		"nothing": {Judgement{Verdict: protocol.Valid}, "No rule is broken."},
		"one path": {
			Judgement{Violations: []protocol.Violation{{Rule: "names", Path: "a\x1b", Message: "it is bad", Suggestion: "rename it"}}},
			`Rule names is broken by "a\x1b": it is bad. To fix it: rename it.`,
		},
		"the whole tree, and another": {
			Judgement{Violations: []protocol.Violation{{Rule: "workspace-size", Message: "it is large"}, {}}},
			"Rule workspace-size: it is large. There is 1 more violation.",
		},
		"several": {
			Judgement{Violations: []protocol.Violation{{Rule: "names", Path: "a", Message: "m"}, {}, {}}},
			"Rule names is broken by a: m. There are 2 more violations.",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Summary(tt.in); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSummaryIsBounded(t *testing.T) {
	got := Summary(Judgement{Violations: []protocol.Violation{{Rule: "names", Path: "a", Message: strings.Repeat("ü", 5000)}}})
	if len(got) > maxSummary || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("got %d bytes ending in %q", len(got), got[len(got)-8:])
	}
}
