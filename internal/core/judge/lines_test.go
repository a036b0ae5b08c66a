// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// numstat is what git counts for pairs of texts, in their order.
func numstat(t *testing.T, pairs [][2]string, options ...string) []LineCounts {
	t.Helper()
	dir := t.TempDir()
	for side, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		for i, p := range pairs {
			if err := os.WriteFile(filepath.Join(dir, name, fmt.Sprintf("%06d", i)), []byte(p[side]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "git", append(append([]string{"diff", "--no-index", "--numstat"}, options...), "a", "b")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1 says that they differ
		t.Fatal(err)
	}
	counts := make([]LineCounts, len(pairs))
	for line := range strings.Lines(string(out)) {
		var added, removed int64
		var i int
		if strings.HasPrefix(line, "-\t-") {
			continue // binary
		}
		if _, err := fmt.Sscanf(line, "%d\t%d\t", &added, &removed); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		name := strings.TrimRight(strings.TrimSpace(line), "}")
		if _, err := fmt.Sscanf(name[strings.LastIndexByte(name, '/')+1:], "%06d", &i); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		counts[i] = LineCounts{Added: added, Removed: removed}
	}
	return counts
}

// drawText makes texts that share many lines, with and without a last line end.
func drawText(t *rapid.T, label string) string {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "c", "{", "}", "x y"}), 0, 40).Draw(t, label)
	text := strings.Join(lines, "\n")
	if rapid.Bool().Draw(t, label+" ends") {
		text += "\n"
	}
	return text
}

// TestLinesAreAsGitCountsThem compares with stock git, asked for the least difference.
func TestLinesAreAsGitCountsThem(t *testing.T) {
	pairs := [][2]string{
		{"", ""}, {"", "a"}, {"a\n", ""}, {"a", "a\n"}, {"a\nb\n", "a\nb"}, {"a\r\n", "a\n"}, {"\n\n\n", "\n"},
		{"a\nb\nc\n", "c\nb\na\n"}, {longText, "x\n" + longText + "y"},
	}
	generator := rapid.Custom(func(t *rapid.T) [2]string { return [2]string{drawText(t, "old"), drawText(t, "new")} })
	for seed := range 2000 {
		pairs = append(pairs, generator.Example(seed))
	}
	for i, want := range numstat(t, pairs, "--minimal") {
		if got := countLines([]byte(pairs[i][0]), []byte(pairs[i][1])); got != want {
			t.Errorf("%q, %q: %+v, git counts %+v", pairs[i][0], pairs[i][1], got, want)
		}
	}
}

// TestLinesOfEdits: for edits such as are made to sources, stock git with its defaults says the same.
func TestLinesOfEdits(t *testing.T) {
	var source []string
	for i := range 300 {
		source = append(source, fmt.Sprintf("line %d of %d", i, i%7), "}", "")
	}
	text := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	var pairs [][2]string
	for i := range 50 {
		edited := append([]string(nil), source[:i*10]...)
		edited = append(edited, "new", "lines", "here")
		edited = append(edited, source[i*10+i%5:]...)
		edited[len(edited)/2] = "changed"
		pairs = append(pairs, [2]string{text(source), text(edited)})
	}
	for i, want := range numstat(t, pairs) {
		if got := countLines([]byte(pairs[i][0]), []byte(pairs[i][1])); got != want {
			t.Errorf("edit %d: %+v, git counts %+v", i, got, want)
		}
	}
}

// TestLinesAreBounded: what would take too long to compare is counted as more than it is, not as less.
func TestLinesAreBounded(t *testing.T) {
	const lines = 20_000
	var old, now strings.Builder
	for i := range lines {
		fmt.Fprintln(&old, i)
		fmt.Fprintln(&now, (i*7919+13)%lines) // all the same lines, in another order
	}
	if got, want := countLines([]byte(old.String()), []byte(now.String())), (LineCounts{lines, lines}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
