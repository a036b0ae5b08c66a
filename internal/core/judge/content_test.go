// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// TestMemory: with a memory a judgement says what it says without, and asks for no content twice, unless it could not be
// read.
func TestMemory(t *testing.T) {
	var asked []string
	missing := map[string]bool{"lost": true}
	blobs := contentsOf(map[string]string{"one": "a\nb\n", "two": "a\n\x00", "three": "c\n"})
	in := sound(Input{
		Policy: policy.Effective{Changes: policy.Changes{Binaries: policy.Warn, MaxLines: 1}},
		Contents: func(ids []string, limit int64, visit func(int, []byte, bool)) {
			asked = append(asked, ids...)
			blobs(ids, limit, func(i int, content []byte, _ bool) { visit(i, content, !missing[ids[i]]) })
		},
	})
	file := func(path, before, now string) Change {
		c := modifyFile(path)
		c.Old.ID, c.New.ID = before, now
		return c
	}
	var memory Cache
	steps := []struct {
		changes     []Change
		want        []string
		known, read int64
	}{
		{[]Change{file("a", "one", "two"), file("b", "one", "lost")}, []string{"one", "two", "one", "lost"}, 0, 2},
		{[]Change{file("a", "one", "two"), file("b", "one", "lost")}, []string{"one", "lost"}, 1, 1},
		{[]Change{file("a", "one", "three"), file("b", "one", "two")}, []string{"one", "three", "one", "two"}, 0, 2},
		{[]Change{file("a", "one", "three")}, nil, 1, 0},
		{[]Change{file("a", "one", "two")}, []string{"one", "two"}, 0, 1}, // what is not in the changes any more is forgotten
	}
	for i, step := range steps {
		in.Changes, in.Cache = step.changes, nil
		want := judgeAll(in)
		asked, in.Cache = nil, &memory
		if diff := cmp.Diff(want, judgeAll(in)); diff != "" {
			t.Errorf("step %d: memory changes the judgement (-without +with):\n%s", i, diff)
		}
		if diff := cmp.Diff(step.want, asked); diff != "" {
			t.Errorf("step %d: asked for (-want +got):\n%s", i, diff)
		}
		if known, read := memory.Last(); known != step.known || read != step.read {
			t.Errorf("step %d: %d known and %d looked at, want %d and %d", i, known, read, step.known, step.read)
		}
	}
}

// TestMemoryBeside: a memory beside another one changes no judgement, knows nothing and makes nothing forgotten; the scanner
// and the compiled checks are the same.
func TestMemoryBeside(t *testing.T) {
	compiled := 0
	in := sound(Input{
		Changes: []Change{addFile("a"), addFile("b")},
		Policy:  policy.Effective{Checks: []policy.Check{{Name: "none", CEL: "false"}}},
	})
	compile := in.Compile
	in.Compile = func(expression string) (Program, error) {
		compiled++
		return compile(expression)
	}
	want := judgeAll(in)
	var memory Cache
	in.Cache = &memory
	judgeAll(in)
	other := memory.Beside()
	beside := in
	beside.Cache, beside.Changes = other, in.Changes[:1]
	judgeAll(beside)
	if known, read := other.Last(); known != 0 || read != 1 {
		t.Errorf("beside: %d known and %d looked at, want none and 1", known, read)
	}
	if diff := cmp.Diff(want, judgeAll(in)); diff != "" {
		t.Errorf("(-without +with):\n%s", diff)
	}
	if known, read := memory.Last(); known != 2 || read != 0 {
		t.Errorf("%d known and %d looked at, want 2 and none", known, read)
	}
	if other.scanner != memory.scanner || compiled != 2 {
		t.Errorf("compiled %d times, want once without a memory and once with", compiled)
	}
}

// TestCheckViolations: a violation bears the check's name, message and severity, and a path.
func TestCheckViolations(t *testing.T) {
	j := judgeAll(sound(Input{
		Changes: []Change{addFile("db/a.sql"), addFile("web/a.js")},
		Policy: policy.Effective{Checks: []policy.Check{
			{Name: "no-sql", CEL: "file.path.endsWith('.sql')", Message: "ask the \x1b[2J DBAs", Severity: policy.Warning},
			{Name: "broken", CEL: "file.nothing", Message: "m", Severity: policy.Critical},
			{Name: "mild", CEL: "1/file.size == 1", Message: "m", Severity: policy.Info},
		}},
	}))
	var got []string
	for _, v := range j.Violations {
		got = append(got, string(v.Severity)+" "+v.Rule+" "+v.Path+": "+v.Message)
	}
	want := []string{
		"Critical broken : the check broken cannot be used: 1:1: undeclared reference to 'file' (in container ''); a file has path, mode, size, linesAdded, linesRemoved, kind and role",
		"Error mild db/a.sql: the check cannot be evaluated: evaluate: division by zero",
		"Error mild web/a.js: the check cannot be evaluated: evaluate: division by zero",
		`Warning no-sql db/a.sql: ask the \x1b[2J DBAs`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
