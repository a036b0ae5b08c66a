// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

func TestChoose(t *testing.T) {
	both := runtimes.Runtime{Name: "both", Interactive: true, Deterministic: true}
	worker := runtimes.Runtime{Name: "worker", Deterministic: true}
	free := runtimes.Runtime{Name: "free", Interactive: true}
	for name, tc := range map[string]struct {
		asked  string
		record runtimes.Runtime
		want   runtimes.Choice
	}{
		"interactive":                     {policy.ModeInteractive, both, runtimes.Choice{Mode: policy.ModeInteractive}},
		"deterministic":                   {policy.ModeDeterministic, both, runtimes.Choice{Mode: policy.ModeDeterministic}},
		"deterministic is what it can do": {policy.ModeDeterministic, worker, runtimes.Choice{Mode: policy.ModeDeterministic}},
		"falls back": {policy.ModeInteractive, worker, runtimes.Choice{
			Mode: policy.ModeDeterministic, Notice: "Runtime worker does not support Interactive mode, falling back to Deterministic.",
		}},
		"never falls back to the freer mode": {policy.ModeDeterministic, free, runtimes.Choice{
			Notice: "Runtime free does not support Deterministic mode: choose another runtime, or another spec.execution.mode.",
		}},
		"a mode that nobody knows": {"Fast", both, runtimes.Choice{
			Notice: "Runtime both does not support Fast mode: choose another runtime, or another spec.execution.mode.",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, runtimes.Choose(tc.asked, tc.record)); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRecords: every runtime has a name of its own, can do something, and is on the reference page.
func TestRecords(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/runtimes.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range runtimes.All() {
		found, ok := runtimes.Find(r.Name)
		if seen[r.Name] || !ok || found.Name != r.Name {
			t.Errorf("runtime %q: listed twice, or not found", r.Name)
		}
		seen[r.Name] = true
		if !r.Interactive && !r.Deterministic || r.Doc == "" || r.Channel == "" || r.Pause == "" {
			t.Errorf("runtime %q can do nothing, or does not say what", r.Name)
		}
		if r.Available != (r.Adapter != nil) {
			t.Errorf("runtime %q: available %v, and whether it has an adapter: %v", r.Name, r.Available, r.Adapter != nil)
		}
		if !strings.Contains(string(page), "`"+r.Name+"`") || !strings.Contains(string(page), r.Doc) {
			t.Errorf("the page lacks %s: run `make reference`", r.Name)
		}
		if _, err := os.Stat("../../../docs/reference/runtimes/" + r.Name + ".md"); r.Available != (err == nil) {
			t.Errorf("runtime %q: available %v, and its page: %v", r.Name, r.Available, err)
		}
	}
	if _, ok := runtimes.Find("abacus"); ok {
		t.Error("a runtime that does not exist was found")
	}
}

// TestTextSaysWhere an agent may write, behind what it is to do.
func TestTextSaysWhere(t *testing.T) {
	task := runtimes.Task{Prompt: "Add a page.", Instructions: "The form.", Facts: instructions.Facts{Bounds: "You may write within these bounds."}}
	if got := task.Text(); got != "Add a page.\n\nThe form.\n\nYou may write within these bounds." {
		t.Errorf("it is told %q", got)
	}
}

// TestAnInterruptedAgentIsToldWhatWentBack before it is told its task.
func TestAnInterruptedAgentIsToldWhatWentBack(t *testing.T) {
	task := runtimes.Task{Prompt: "Add a page.", Interrupted: true}
	if got := task.Text(); !strings.HasSuffix(got, "look at it before you continue. What the task is:\n\nAdd a page.") {
		t.Errorf("it is told %q", got)
	}
	task.Remains = "These files went back."
	if got := task.Text(); !strings.HasSuffix(got, "look at it before you continue. These files went back. What the task is:\n\nAdd a page.") {
		t.Errorf("it is told %q", got)
	}
}

// TestApart is what a command finds in its variables, without what it gets by lines.
func TestApart(t *testing.T) {
	task := runtimes.Task{Command: []string{"true"}, Prompt: "Add a page.", Instructions: "The form.", Facts: instructions.Facts{
		Repository: "https://git.example.com/shop.git", Revision: "main", Bounds: "You may write within these bounds.", Current: "page/form",
		Tasks: []instructions.Task{{Name: "page/form"}, {Name: "page/save"}}, Directives: []string{"- Directive a."},
	}}
	const context = "## PROJECT CONTEXT\n\n- Repository: https://git.example.com/shop.git, revision main.\n\n## CURRENT MILESTONE\n\n" +
		"Milestone page, 1 of 1. Your task is form. The tasks of the milestone:\n- form: your task\n- save: to do"
	if diff := cmp.Diff(context+"\n\nAdd a page.\n\nThe form.\n\nYou may write within these bounds.", task.Apart()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	command, _ := runtimes.Find("command")
	if env := command.Adapter.Launch(task).Env; !slices.Contains(env, "TIDEWAITER_TASK_CONTEXT="+context) {
		t.Errorf("environment %q", env)
	}
	task.Facts = instructions.Facts{Bounds: task.Facts.Bounds}
	if env := command.Adapter.Launch(task).Env; slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "TIDEWAITER_TASK_CONTEXT") }) {
		t.Errorf("environment without anything to say %q", env)
	}
}
