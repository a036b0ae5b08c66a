// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// fixing does good and evil, waits until it is told, writes down what it finds then, and fixes what is left to fix.
const fixing = `
echo good > web/good.html; mkdir docs; echo evil > docs/evil.md; rm README.md
until [[ ${line:-} == *checkpoint_violation* ]]; do read -r line; done; echo "$line" > "$HOME/told"
ls docs README.md web/good.html > "$HOME/found" 2>&1 || true
rm -rf docs; git checkout -q README.md; echo good > web/good.html
until [ -e "$HOME/end" ]; do sleep 0.2; done`

// critical makes the project's policy rate what is outside of its areas as worse than an error.
func (p *place) critical() {
	p.Helper()
	p.guard(v1alpha1.PathRules{Severity: v1alpha1.SeverityCritical})
}

// guard paths by the project's policy.
func (p *place) guard(paths v1alpha1.PathRules) {
	p.Helper()
	policy := &v1alpha1.SupervisorPolicy{}
	p.must(k8s.Get(p.ctx, client.ObjectKey{Namespace: p.project, Name: cluster.GitPolicy}, policy), "read the policy")
	before := policy.DeepCopy()
	policy.Spec.Defaults.Paths = &paths
	p.must(k8s.Patch(p.ctx, policy, client.MergeFrom(before)), "guard paths")
}

// TestStrategies takes one look at a workspace with good and evil in it under each strategy: Direct and Shadow where the manager chooses, and those that keep
// what is good. The agent is told, fixes what is left to fix, and is delivered: nothing evil is ever in the branch's history. The test of this name in
// internal/app/watchdog has every strategy with every way to revert.
func TestStrategies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change   func(*v1alpha1.Execution)
		critical bool
		rules    []v1alpha1.PathRule
		action   v1alpha1.Action
		told     string
		found    []string
		gone     []string
	}{
		"auto": { // Direct, as no rule is about what the plan allows
			change: func(e *v1alpha1.Execution) { e.Strategy = v1alpha1.StrategyAuto },
			rules:  []v1alpha1.PathRule{{Paths: []string{"api/**"}, Roles: []string{"other"}, Access: "Write"}},
			action: v1alpha1.ActionHeld, told: "none",
			found: []string{"evil.md", "web/good.html"}, gone: []string{"\nREADME.md"},
		},
		"auto-guarded": {
			change: func(e *v1alpha1.Execution) { e.Strategy = v1alpha1.StrategyAuto },
			rules:  []v1alpha1.PathRule{{Paths: []string{"web/api/**"}, Roles: []string{"other"}, Access: "Write"}},
			action: v1alpha1.ActionReverted, told: "reverted",
			found: []string{"README.md"}, gone: []string{"evil.md", "\nweb/good.html"},
		},
		"incremental": {
			change: func(e *v1alpha1.Execution) {
				e.Strategy, e.Promotion = v1alpha1.StrategyShadow, v1alpha1.PromotionIncremental
			},
			action: v1alpha1.ActionPartlyPromoted, told: "reverted",
			found: []string{"README.md", "web/good.html"}, gone: []string{"evil.md"},
		},
		"revert-paths": {
			change:   func(e *v1alpha1.Execution) { e.RevertOnViolation = v1alpha1.RevertViolatingPaths },
			critical: true, action: v1alpha1.ActionReverted, told: "reverted",
			found: []string{"README.md", "web/good.html"}, gone: []string{"evil.md"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, 4*time.Minute)
			if tc.critical {
				p.critical()
			}
			if tc.rules != nil {
				p.guard(v1alpha1.PathRules{Rules: tc.rules})
			}
			p.feature("worker", fixing, func(s *v1alpha1.FeatureSpec) {
				seldomCheckpoints(s)
				tc.change(s.Execution)
			})
			p.inAgent("worker", "test -e /workspace/docs/evil.md && ! test -e /workspace/README.md")
			p.request("worker", checkpointNow("look"))
			first := p.checkpoints("worker")[0]
			if first.Spec.Action != tc.action || (first.Spec.DeliveryCommit != "") != (tc.action == v1alpha1.ActionPartlyPromoted) {
				t.Errorf("action %s, delivery commit %q, want %s", first.Spec.Action, first.Spec.DeliveryCommit, tc.action)
			}
			if want := p.tree(map[string]string{"web/good.html": "good\n", "docs/evil.md": "evil\n", "README.md": ""}); first.Spec.Tree != want {
				t.Errorf("the checkpoint has tree %s, want %s", first.Spec.Tree, want)
			}
			if told := p.inAgent("worker", "test -s /home/agent/found && cat /home/agent/told"); !strings.Contains(told, `"action_taken":"`+tc.told+`"`) {
				t.Errorf("the agent was told %s, want action_taken %s", told, tc.told)
			}
			found := "\n" + p.inAgent("worker", "cat /home/agent/found")
			for _, want := range tc.found {
				if !strings.Contains(found, want) {
					t.Errorf("the agent found %q, which lacks %q", found, want)
				}
			}
			for _, not := range tc.gone {
				if strings.Contains(found, not) {
					t.Errorf("the agent found %q, where %q should be gone", found, not)
				}
			}
			p.signal("worker", "end")
			f := p.phase("worker", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
			p.wantDelivered(f, map[string]string{"web/good.html": "good\n"})
			if strings.Contains(p.history(f.Status.Branch), "evil") {
				t.Error("something evil is reachable from the pushed branch")
			}
			back := f.Status.Rollbacks
			switch went := tc.told == "reverted"; {
			case went != (back != nil):
				t.Errorf("rollbacks %+v, although the agent was told %s", back, tc.told)
			case went && (back.Violation != back.Total || back.Last.Cause != v1alpha1.RollbackByViolation || !strings.HasPrefix(back.Last.Before, "worker-") || !strings.Contains(back.Last.Reason, "README.md")):
				t.Errorf("rollbacks %+v", back)
			}
			auto := strings.HasPrefix(name, "auto")
			if j := f.Status.Job; j == nil || (j.StrategyReason != "") != auto || auto && (j.Strategy == string(v1alpha1.StrategyShadow)) != (tc.told == "reverted") {
				t.Errorf("the attempt ran by %+v", j)
			}
		})
	}
}

// The agent breaks a rule, is told by a line on its standard input, fixes what it names, and is delivered.
func TestViolationThenCorrected(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	p.feature("learner", `
echo page > web/page.html; mkdir -p .github/workflows; echo 'on: push # smuggled' > .github/workflows/ci.yml
read -r line
case "$line" in *'"type":"checkpoint_violation"'*) ;; *) exit 9;; esac
file=$(echo "$line" | sed 's/.*"violations":\[{"file":"\([^"]*\)".*/\1/')
[ "$file" = .github/workflows/ci.yml ]
rm "$file"; echo fixed > web/page.html`, allow("web/**"))
	f := p.phase("learner", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	p.wantDelivered(f, map[string]string{"web/page.html": "fixed\n"})
	if strings.Contains(p.history(f.Status.Branch), "smuggled") {
		t.Error("what was fixed is reachable from the pushed branch")
	}
	held := 0
	for _, c := range p.checkpoints("learner") {
		if c.Spec.Verdict == v1alpha1.VerdictInvalid && c.Spec.Action == v1alpha1.ActionHeld {
			held++
		}
	}
	if held == 0 || f.Status.Attempt != 1 {
		t.Errorf("%d held checkpoints, attempt %d", held, f.Status.Attempt)
	}
}

// Where checkpoints are far apart, the agent is warned of what it has just written. What it fixes in time was never a
// violation; what it leaves is one at the next checkpoint, of which it is told as well.
func TestWarnedThenCorrected(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	p.feature("learner", `
rm README.md; read -r line; echo "$line" > "$HOME/warned"; git checkout -q README.md
echo evil > web/legacy/evil.html; read -r line; echo "$line" > "$HOME/ignored"
read -r line; echo "$line" > "$HOME/told"
rm web/legacy/evil.html; echo good > web/good.html
until [ -e "$HOME/end" ]; do sleep 0.2; done`, func(s *v1alpha1.FeatureSpec) {
		seldomCheckpoints(s)
		s.Plan.ForbiddenAreas = []string{"web/legacy/**"}
	})
	line := func(file string, parts ...string) {
		t.Helper()
		told := p.inAgent("learner", "test -s /home/agent/"+file+" && cat /home/agent/"+file)
		for _, want := range parts {
			if !strings.Contains(told, want) {
				t.Errorf("the agent read %s, which lacks %s", told, want)
			}
		}
	}
	line("warned", `"type":"violation_warning"`, `"file":"README.md"`, `"constraint":"allowed-areas"`, `"action_taken":"none"`)
	line("ignored", `"type":"violation_warning"`, `"file":"web/legacy/evil.html"`, `"constraint":"forbidden-areas"`)
	if n := len(p.checkpoints("learner")); n != 0 {
		t.Errorf("there were %d checkpoints before anything was judged", n)
	}
	p.request("learner", checkpointNow("look"))
	line("told", `"type":"checkpoint_violation"`, `"checkpoint_id":"learner-1"`, `"file":"web/legacy/evil.html"`)
	p.inAgent("learner", "test -e /workspace/web/good.html")
	p.signal("learner", "end")
	f := p.phase("learner", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	p.wantDelivered(f, map[string]string{"web/good.html": "good\n"})
	var verdicts []v1alpha1.Verdict
	for _, c := range p.checkpoints("learner") {
		verdicts = append(verdicts, c.Spec.Verdict)
	}
	if want := []v1alpha1.Verdict{v1alpha1.VerdictInvalid, v1alpha1.VerdictValid}; !slices.Equal(verdicts, want) {
		t.Errorf("verdicts are %v, want %v", verdicts, want)
	}
}

// An agent that takes part in pauses is asked before it is frozen; what it finishes first is in the checkpoint, which keeps
// what it answered.
func TestAskedToPause(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 3*time.Minute)
	p.feature("courteous", `
await() { line=; until [[ $line == *"$1"* ]]; do read -r line; done; echo "$line" >> "$HOME/told"; }
echo '{"type":"capabilities","pause_resume":true}' >&"$TIDEWAITER_REPLY_FD"
echo good > web/good.html; mkdir docs; echo evil > docs/evil.md
await pause_request; echo last > docs/last.md
echo '{"type":"pause_ack","status":"paused","pending_operations":["run the tests"]}' >&"$TIDEWAITER_REPLY_FD"
await '"type":"resume"'; await checkpoint_violation; echo good > web/good.html`, func(s *v1alpha1.FeatureSpec) {
		seldomCheckpoints(s)
		s.Execution.Strategy = v1alpha1.StrategyShadow
	})
	p.inAgent("courteous", "test -e /workspace/docs/evil.md")
	p.request("courteous", checkpointNow("look"))
	first := p.checkpoints("courteous")[0].Spec
	if pause := first.Capture.Pause; pause == nil || !pause.Acknowledged || !slices.Equal(pause.PendingOperations, []string{"run the tests"}) {
		t.Errorf("capture %+v, pause %+v", first.Capture, pause)
	}
	if want := p.tree(map[string]string{"web/good.html": "good\n", "docs/evil.md": "evil\n", "docs/last.md": "last\n"}); first.Tree != want {
		t.Errorf("the checkpoint has tree %s, want %s", first.Tree, want)
	}
	f := p.phase("courteous", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	p.wantDelivered(f, map[string]string{"web/good.html": "good\n"})
}
