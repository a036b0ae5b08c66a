// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

// calledOff is a context that ends after so many questions.
type calledOff struct {
	context.Context
	left int
}

func (c *calledOff) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestJudgeStops: a judgement that is called off is no judgement, at whatever moment, and what a memory keeps of it is
// right.
func TestJudgeStops(t *testing.T) {
	in := sound(Input{
		Changes:  []Change{addFile("a"), modifyFile("b"), modifyFile("c")},
		Contents: contentsOf(map[string]string{sampleID: strings.Repeat("a line\n", 40_000), otherID: "token = \"" + sampleToken + "\"\n"}),
		Policy:   policy.Effective{Checks: []policy.Check{{Name: "no", CEL: "false"}}},
	})
	want := judgeAll(in)
	for left := 0; ; left++ {
		in.Cache = &Cache{}
		got, err := Judge(&calledOff{Context: t.Context(), left: left}, in)
		if err == nil {
			if diff := cmp.Diff(want, got); diff != "" || left < 10 {
				t.Errorf("after %d questions (-want +got):\n%s", left, diff)
			}
			break
		}
		if !errors.Is(err, context.Canceled) || got.Verdict != "" || len(got.Violations) > 0 {
			t.Fatalf("after %d questions: %v, %+v", left, err, got)
		}
		if diff := cmp.Diff(want, judgeAll(in)); diff != "" {
			t.Fatalf("after %d questions, the memory changes the next judgement (-want +got):\n%s", left, diff)
		}
	}
}

// TestTooMuchWork: files that are too hard one by one, or together, are violations, and a memory changes nothing.
func TestTooMuchWork(t *testing.T) {
	const files = maxWork/secrets.Budget + 3
	in := Input{Contents: contentsOf(map[string]string{otherID: hardText})}
	memory := &Cache{facts: map[factsKey]facts{}}
	for i := range files {
		c := addFile(fmt.Sprintf("f%03d", i))
		c.New.ID = otherID
		in.Changes = append(in.Changes, c)
		if i > 0 && i < files-4 { // known, so that the test is soon done
			memory.facts[factsKey{c.Path, c.Old, c.New}] = facts{hard: tooHard, work: secrets.Budget}
		}
	}
	in.Cache = memory
	in = sound(in)
	count := func(j Judgement) map[string]int {
		messages := map[string]int{}
		for _, v := range j.Violations {
			messages[v.Rule+": "+v.Message]++
		}
		return messages
	}
	want := map[string]int{"not-judged: " + tooHard: files - 3, "not-judged: " + tooMuchWork: 3}
	for range 2 {
		j := judgeAll(in)
		if diff := cmp.Diff(want, count(j)); diff != "" || j.Verdict != protocol.Invalid {
			t.Errorf("%s (-want +got):\n%s", j.Verdict, diff)
		}
	}
}

// TestCountingIsBounded: texts with very many lines count with all of them, and are not taken apart.
func TestCountingIsBounded(t *testing.T) {
	old, now := []byte(strings.Repeat("a\n", 2*maxLines)), []byte(strings.Repeat("b\n", maxLines))
	if got, want := countLines(old, now), (LineCounts{Added: maxLines, Removed: 2 * maxLines}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if n := testing.AllocsPerRun(1, func() { countLines(old, now) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
