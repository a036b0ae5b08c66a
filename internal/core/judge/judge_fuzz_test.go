// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

// fuzzInput makes an input of what a fuzzer can vary: two changes as they come, a finding, a pattern of each kind.
func fuzzInput(path, other, target string, oldMode, newMode uint32, kind, found, pattern, content string) Input {
	change := Change{
		Path: path, Kind: Kind(kind),
		Old: Entry{Mode: oldMode, ID: sampleID}, New: Entry{Mode: newMode, ID: otherID, Target: target, Size: int64(newMode)},
	}
	return sound(Input{
		Changes:  []Change{change, addFile(other), addLink(other+"/l", target)},
		Contents: contentsOf(map[string]string{sampleID: content, otherID: content + "\n" + target}),
		Found:    []Found{{Path: path, Kind: FoundKind(found), Size: 1}},
		Plan:     protocol.Plan{Allowed: []string{"in/**"}, Forbidden: []string{pattern}},
		Policy: policy.Effective{
			Paths:   policy.Paths{Protected: []string{"CODEOWNERS", pattern}, Severity: policy.Critical},
			Checks:  []policy.Check{{Name: "check", CEL: "file.path.matches('^in/.*') && file.linesAdded > file.linesRemoved", Message: "m", Severity: policy.Info}},
			Changes: policy.Changes{MaxFileSize: 0o100644, MaxLines: 3, Symlinks: policy.Allow, SpecialFiles: policy.Warn},
		},
	})
}

// FuzzJudge: whatever it is given, Judge does not panic, says the same again from memory and in any order, keeps its
// messages bounded and visible, and lets nothing pass that is plainly bad.
func FuzzJudge(f *testing.F) {
	for _, rule := range Rules() {
		for _, sample := range slices.Concat(rule.Reject, rule.Accept) {
			for _, c := range sample.Input.Changes {
				f.Add(c.Path, "in/a", c.New.Target, c.Old.Mode, c.New.Mode, string(c.Kind), string(FoundFIFO), "web/**", "token = x7Kq92mZpL4wVt8s")
			}
			for _, found := range sample.Input.Found {
				f.Add(found.Path, "in/a", "b", uint32(0), ModeFile, string(Added), string(found.Kind), "*.md", "a\x00b")
			}
		}
	}
	// Making these anew takes a hundred times as long as the rest.
	scanner, compiledChecks := secrets.New(), make(map[string]compiled)
	forgetful := func() *Cache { return &Cache{scanner: scanner, checks: compiledChecks} }
	f.Fuzz(func(t *testing.T, path, other, target string, oldMode, newMode uint32, kind, found, pattern, content string) {
		in := fuzzInput(path, other, target, oldMode, newMode, kind, found, pattern, content)
		in.Cache = forgetful()
		j := judgeAll(in)
		checkJudgement(t, j)
		if diff := cmp.Diff(j, judgeAll(in)); diff != "" {
			t.Errorf("the second judgement differs:\n%s", diff)
		}
		in.Cache = forgetful()
		shuffle := rand.New(rand.NewPCG(1, uint64(len(path))))
		shuffle.Shuffle(len(in.Changes), func(a, b int) { in.Changes[a], in.Changes[b] = in.Changes[b], in.Changes[a] })
		if diff := cmp.Diff(j, judgeAll(in)); diff != "" {
			t.Errorf("the order of changes matters:\n%s", diff)
		}
		if j.Verdict == protocol.Valid && plainlyBad(in) {
			t.Errorf("valid, although plainly bad: %+v", in.Changes)
		}
	})
}

// checkJudgement checks what holds of every judgement.
func checkJudgement(t *testing.T, j Judgement) {
	t.Helper()
	blocks := false
	for i, v := range j.Violations {
		blocks = blocks || v.Severity.Blocks()
		if i > 0 && compareViolations(j.Violations[i-1], v) > 0 {
			t.Errorf("violations %d and %d are out of order", i-1, i)
		}
		for _, text := range []string{v.Message, v.Suggestion} {
			if n := utf8.RuneCountInString(text); n == 0 || n > maxMessage || strings.ContainsFunc(text, plain.Invisible) {
				t.Errorf("rule %s: %d characters, or invisible ones: %q", v.Rule, n, text)
			}
		}
	}
	if blocks != (j.Verdict == protocol.Invalid) {
		t.Errorf("verdict %s, but blocking violations: %t", j.Verdict, blocks)
	}
	if summary := Summary(j); len(summary) > maxSummary || strings.ContainsFunc(summary, plain.Invisible) {
		t.Errorf("summary is not one bounded line: %q", summary)
	}
}

// plainlyBad is a second opinion, blunter than the rules: what it finds must be found.
func plainlyBad(in Input) bool {
	for _, c := range in.Changes {
		lower := strings.ToLower(c.Path)
		gone := c.New.Mode == 0
		switch {
		case c.Path == "", c.Path[0] == '/', slices.Contains(strings.Split(c.Path, "/"), ".."):
			return true
		case !gone && slices.Contains(strings.Split(lower, "/"), ".git"):
			return true
		case !strings.HasPrefix(c.Path, "in/"):
			return true // not allowed
		case slices.Contains(strings.Split(lower, "/"), "codeowners"):
			return true // protected
		case c.New.Mode == ModeSymlink && (strings.HasPrefix(c.New.Target, "/") ||
			strings.Count(c.New.Target, "../") > strings.Count(c.Path, "/")):
			return true
		case c.New.Mode == ModeGitlink, c.New.Mode != 0 && c.New.Mode&0o170000 != 0o100000 && c.New.Mode != ModeSymlink:
			return true
		case c.Old.Mode == 0 && !gone && !utf8.ValidString(c.Path):
			return true
		}
	}
	return in.Found[0].Kind == FoundGitDir || ValidatePattern(in.Plan.Forbidden[0]) != nil
}
