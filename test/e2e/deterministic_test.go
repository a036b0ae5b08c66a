// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// patches are shell functions of an agent that works through its tools: patch ID FILE sends a patch, new PATH LINE writes
// one that makes a file.
const patches = `
cd "$HOME"
new() { printf 'diff --git a/%s b/%s\nnew file mode 100644\n--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+%s\n' "$1" "$1" "$1" "$2"; }
patch() { mcpagent repo_apply_patch operation_id="$1" patch=@"$2"; }
`

func deterministic(areas ...string) func(*v1alpha1.FeatureSpec) {
	return func(s *v1alpha1.FeatureSpec) {
		allow(areas...)(s)
		s.Execution = &v1alpha1.Execution{Mode: v1alpha1.ModeDeterministic}
	}
}

// triggers of a Feature's checkpoints, in order.
func (p *place) triggers(name string) []string {
	p.Helper()
	var all []string
	for _, c := range p.checkpoints(name) {
		all = append(all, string(c.Spec.Trigger)+" "+string(c.Spec.Verdict)+" "+string(c.Spec.Action))
	}
	return all
}

// TestDeterministic: an agent that cannot write sends patches. What breaks a rule is refused and named, nothing of it is
// applied; the corrected patch is delivered; operations are done once. The gate of the task writes its report in a pod of its own.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	p.feature("login", patches+`
if { echo direct > /workspace/web/direct.html; } 2> error; then echo "the workspace can be written"; exit 41; fi
grep -q 'Read-only file system' error
[ ! -e /trusted ]
mcpagent feature_get_context | grep -q '"allowed_areas":\["web/\*\*"\]'
mcpagent repo_read_file path=web/index.html | grep -q shop
mcpagent repo_search query=openapi | grep -q '"path":"api/openapi.yaml"'
{ new web/login.html '<form>'; new api/login.yaml 'login: true'; } > bad
patch one bad > answer
grep -q '"status":"refused"' answer; grep -q '"rule":"allowed-areas"' answer; grep -q '"path":"api/login.yaml"' answer; grep -q '"suggestion":"' answer
[ ! -e /workspace/web/login.html ]
new web/login.html '<form>' > good
patch two good > first
grep -q '"status":"applied"' first
[ "$(cat /workspace/web/login.html)" = '<form>' ]
patch two good > again; [ "$(cat first)" = "$(cat again)" ]
patch one bad > again; [ "$(cat answer)" = "$(cat again)" ]
if patch two bad 2> error; then exit 42; fi
grep -q 'belongs to another patch' error
printf 'diff --git a/web/index.html b/web/index.html\n--- a/web/index.html\n+++ b/web/index.html\n@@ -1 +1 @@\n-<h1>shop</h1>\n+<h1>shop with login</h1>\n' > change
patch three change | grep -q '"status":"applied"'
mcpagent task_complete summary='There is a login page.'`, func(s *v1alpha1.FeatureSpec) {
		deterministic("web/**")(s)
		unit := gate("unit", `grep -q '<form>' web/login.html && mkdir -p build && echo "<testsuite><testcase name='adds'/></testsuite>" > build/junit.xml`)
		unit.Report = &v1alpha1.GateReport{Format: v1alpha1.ReportJUnit, Path: "build/junit.xml"}
		unit.Require = &v1alpha1.GateRequirements{MinTests: new(int32(1))}
		s.Gates = []v1alpha1.Gate{unit}
	})
	f := p.until("login", "has an attempt", func(f *v1alpha1.Feature) bool { return f.Status.Job != nil })
	if j := f.Status.Job; j.Run != v1alpha1.RunKindAgent || j.Mode != v1alpha1.ModeDeterministic {
		t.Errorf("the attempt is a run %s in mode %s", j.Run, j.Mode)
	}
	f = p.phase("login", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	got := p.history(f.Status.Branch)
	for _, want := range []string{"<form>", "shop with login"} {
		if !strings.Contains(got, want) {
			t.Errorf("the branch lacks %q", want)
		}
	}
	if strings.Contains(got, "login: true") || strings.Contains(got, "direct") {
		t.Error("the branch holds what was refused")
	}
	if want := []string{"Patch Valid Promoted", "Patch Valid Promoted", "Final Skipped None"}; !slices.Equal(p.triggers("login"), want) {
		t.Errorf("checkpoints %q, want %q", p.triggers("login"), want)
	}
	if f.Status.Attempt != 2 || f.Status.Job.Run != v1alpha1.RunKindGate || f.Status.Lost != 0 || f.Status.Failures != 0 {
		t.Errorf("attempt %d is a run %s, lost %d, failures %d", f.Status.Attempt, f.Status.Job.Run, f.Status.Lost, f.Status.Failures)
	}
	if list := f.Status.Run.Tasks; len(list) != 1 || list[0].State != "Done" || len(list[0].Gates) != 1 || list[0].Gates[0].State != "Passed" {
		t.Errorf("status.run.tasks is %+v", list)
	}
}

// TestQuestion: the Feature waits for a person while its agent does, and goes on with the answer.
func TestQuestion(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	p.feature("colour", patches+`
until mcpagent ask_user question_id=q1 question='Which colour shall it have?' > answer && grep -q '"status":"answered"' answer; do sleep 1; done
colour=$(sed 's/.*"answer":"\([a-z]*\)".*/\1/' answer)
new web/colour.txt "$colour" > change
patch one change | grep -q '"status":"applied"'
mcpagent task_complete summary="It is $colour."`, deterministic("web/**"))
	f := p.phase("colour", v1alpha1.PhaseAwaitingInput, v1alpha1.ReasonAwaitingInput)
	if m := cluster.Message(f, v1alpha1.ConditionSucceeded); !strings.Contains(m, "Which colour") || !strings.Contains(m, "spec.answers: [{question: q1") {
		t.Errorf("the message does not say what is asked and how to answer: %s", m)
	}
	if q := f.Status.Run.Question; q == nil || q.ID != "q1" {
		t.Errorf("status.run.question is %+v", q)
	}
	p.change("colour", func(s *v1alpha1.FeatureSpec) { s.Answers = []v1alpha1.Answer{{Question: "q1", Text: "teal"}} })
	f = p.phase("colour", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if !strings.Contains(p.history(f.Status.Branch), "teal") {
		t.Error("the answer did not reach the work")
	}
	if f.Status.Attempt != 1 {
		t.Errorf("attempt %d", f.Status.Attempt)
	}
}

// TestModeSwitch: a task ends in the mode that it began in, and the next has another pod, there and back; nothing counts as
// a retry.
func TestModeSwitch(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	p.feature("three", patches+`
switched() { until [ -e "$HOME/${TIDEWAITER_TASK##*/}" ]; do sleep 0.2; done; } # the mode is changed meanwhile
case "$TIDEWAITER_TASK" in
login/form)
  [ -z "${TIDEWAITER_MCP_URL:-}" ]
  echo form > /workspace/web/form.html
  switched ;;
login/save)
  [ "$(cat /workspace/web/form.html)" = form ]
  if { echo direct > /workspace/web/direct.html; } 2> error; then exit 41; fi
  new web/save.html save > change
  patch one change | grep -q '"status":"applied"'
  switched
  mcpagent task_complete summary=saved ;;
login/done)
  [ -z "${TIDEWAITER_MCP_URL:-}" ]
  [ "$(cat /workspace/web/save.html)" = save ]
  echo done > /workspace/web/done.html ;;
esac`, func(s *v1alpha1.FeatureSpec) {
		s.Execution.Mode = v1alpha1.ModeInteractive
		s.Plan = &v1alpha1.Plan{AllowedAreas: []string{"web/**"}, Milestones: []v1alpha1.Milestone{{
			Name: "login", Tasks: []v1alpha1.Task{
				{Name: "form", Instructions: "Make the form."}, {Name: "save", Instructions: "Save it."}, {Name: "done", Instructions: "Say so."},
			},
		}}}
	})
	p.switchDuring("three", "login/form", v1alpha1.ModeDeterministic)
	p.switchDuring("three", "login/save", v1alpha1.ModeInteractive)
	f := p.phase("three", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if f.Status.Attempt != 3 || f.Status.Failures != 0 || f.Status.Lost != 0 || f.Status.Job.Mode != v1alpha1.ModeInteractive {
		t.Errorf("attempt %d, failures %d, lost %d, mode %s", f.Status.Attempt, f.Status.Failures, f.Status.Lost, f.Status.Job.Mode)
	}
	got := p.history(f.Status.Branch)
	for _, want := range []string{"form", "save", "done"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not on the branch", want)
		}
	}
	if strings.Contains(got, "direct") {
		t.Errorf("the branch holds %s", got)
	}
}

// switchDuring asks for another mode while a task is worked on, whose agent waits for it. The mode comes to the watchdog with the request, whose
// result says that it is there.
func (p *place) switchDuring(feature, task string, mode v1alpha1.ExecutionMode) {
	p.Helper()
	p.until(feature, "the agent at "+task, func(f *v1alpha1.Feature) bool {
		return f.Status.Run != nil && f.Status.Run.Report != nil && f.Status.Run.Report.AgentRunning && f.Status.Run.Report.Task == task
	})
	_, name, _ := strings.Cut(task, "/")
	p.change(feature, func(s *v1alpha1.FeatureSpec) {
		s.Execution.Mode = mode
		s.Requests = append(s.Requests, checkpointNow(name))
	})
	p.result(feature, name)
	p.signal(feature, name)
}
