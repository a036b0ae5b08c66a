// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// gate makes a gate of a script.
func gate(name, script string) v1alpha1.Gate {
	return v1alpha1.Gate{Name: name, Command: []string{"/bin/sh", "-c", script}, Timeout: &metav1.Duration{Duration: time.Minute}}
}

// TestGatesProveByReports: a gate with variables of its own and a report of tests passes when enough of them ran, and people read what it printed after
// the pod is gone.
func TestGatesProveByReports(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 8*time.Minute)
	reported := func(name, script string, minTests int32) v1alpha1.Gate {
		g := gate(name, script)
		g.Env = []v1alpha1.EnvVar{{Name: "REPORT", Value: "build/junit.xml"}}
		g.Report = &v1alpha1.GateReport{Format: v1alpha1.ReportJUnit, Path: "build/junit.xml"}
		g.Require = &v1alpha1.GateRequirements{MinTests: &minTests}
		return g
	}
	const two = `mkdir -p build; echo "<testsuite><testcase name='adds'/><testcase name='removes'/></testsuite>" > "$REPORT"; echo "two tests ran"`
	for name, c := range map[string]struct {
		gate   v1alpha1.Gate
		phase  v1alpha1.Phase
		reason string
	}{
		"enough":  {reported("unit", two, 2), v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered},
		"too-few": {reported("unit", two, 3), v1alpha1.PhaseBlocked, v1alpha1.ReasonGateFailed},
		"none":    {reported("unit", "true", 1), v1alpha1.PhaseBlocked, v1alpha1.ReasonGateFailed},
	} {
		p.feature(name, `echo page >> web/page.html`, func(s *v1alpha1.FeatureSpec) { s.Gates = []v1alpha1.Gate{c.gate} })
		f := p.phase(name, c.phase, c.reason)
		if name == "too-few" {
			if got := cluster.Message(f, v1alpha1.ConditionSucceeded); !strings.Contains(got, "2 tests ran by its report build/junit.xml, where at least 3 must") {
				t.Errorf("message %q", got)
			}
		}
	}
	if got := p.view("features/enough/gates"); !strings.Contains(got, "Passed") {
		t.Errorf("the list of results is %q", got)
	}
	if got := p.view("features/too-few/gates", "task", "too-few", "gate", "unit"); !strings.Contains(got, "its output:\ntwo tests ran\n") {
		t.Errorf("the output of the gate is %q", got)
	}
}

// TestGatesBlockWhatTheyRefuse: nothing is pushed, and the condition says which gate, and what to do if its command is wrong.
func TestGatesBlockWhatTheyRefuse(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 8*time.Minute)
	for name, c := range map[string]struct{ script, reason, message string }{
		"refused": {"echo no; exit 4", v1alpha1.ReasonGateFailed, `gate "check" exited with code 4`},
		"wrong":   {"no-such-program", v1alpha1.ReasonGateNotStarted, `gate "check" could not be started`},
	} {
		p.feature(name, `echo page >> web/page.html`, func(s *v1alpha1.FeatureSpec) { s.Gates = []v1alpha1.Gate{gate("check", c.script)} })
		f := p.phase(name, v1alpha1.PhaseBlocked, c.reason)
		if got := cluster.Message(f, v1alpha1.ConditionSucceeded); !strings.Contains(got, c.message) {
			t.Errorf("%s: message %q", name, got)
		}
		if head, err := gitServer.Branch(p.ctx, p.repository, "tidewaiter/"+name); err != nil || head != "" {
			t.Errorf("%s: the server has the branch at %q, %v", name, head, err)
		}
	}
	// A gate that is corrected in the spec runs without the agent.
	p.change("wrong", func(s *v1alpha1.FeatureSpec) {
		s.Gates[0].Command = []string{"true"}
		s.Requests = append(s.Requests, v1alpha1.Request{ID: "again", Retry: &v1alpha1.RetryRequest{}})
	})
	f := p.phase("wrong", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if got := p.history(f.Status.Branch); !strings.Contains(got, " blob 5\npage\n") {
		t.Errorf("the agent was started again:\n%s", got)
	}
}

// TestGateRunKeepsAgentOut: what an agent plants in its HOME, PATH, TMPDIR and in ignored paths changes no gate before the delivery, and nobody gets into
// the pod of a gate.
func TestGateRunKeepsAgentOut(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 8*time.Minute)
	plants := `mkdir -p web build "$HOME/bin" "${TMPDIR:-/tmp}" && echo bad > web/page.html
for dir in "$HOME/bin" "${TMPDIR:-/tmp}" build; do printf '#!/bin/sh\nexit 0\n' > "$dir/grep"; chmod +x "$dir/grep"; done
printf 'PATH=%s:$PATH\n' "$HOME/bin" > "$HOME/.profile"`
	p.feature("planted", plants, func(s *v1alpha1.FeatureSpec) {
		s.Gates = []v1alpha1.Gate{gate("page", `[ -z "$(ls -A "$HOME")" ] && [ -z "$(ls -A "$TMPDIR")" ] && [ ! -e build ] && [ -z "$TIDEWAITER_TASK" ] || exit 5; ls -A /tmp | grep -v '^gate-' && exit 6; grep -q good web/page.html || { sleep 5; exit 3; }`)}
		s.Delivery = &v1alpha1.Delivery{Gates: []string{"page"}}
	})
	f := p.until("planted", "runs its gate", func(f *v1alpha1.Feature) bool {
		return f.Status.Job != nil && f.Status.Job.Run == v1alpha1.RunKindGate && f.Status.Job.PodName != ""
	})
	pod := &corev1.Pod{}
	p.must(k8s.Get(p.ctx, client.ObjectKey{Namespace: p.project, Name: f.Status.Job.PodName}, pod), "read the pod of the gate")
	for _, v := range pod.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil && !strings.HasSuffix(c.ClaimName, "-trusted") {
			t.Errorf("the pod of the gate mounts %s", c.ClaimName)
		}
	}
	f = p.until("planted", "ends", func(f *v1alpha1.Feature) bool {
		return f.Status.Phase == v1alpha1.PhaseBlocked || f.Status.Phase == v1alpha1.PhaseDelivered
	})
	if got := cluster.Message(f, v1alpha1.ConditionSucceeded); f.Status.Phase != v1alpha1.PhaseBlocked || !strings.Contains(got, `gate "page" exited with code 3`) {
		t.Errorf("%s: %q", f.Status.Phase, got)
	}
	if head, err := gitServer.Branch(p.ctx, p.repository, "tidewaiter/planted"); err != nil || head != "" {
		t.Errorf("the server has the branch at %q, %v", head, err)
	}
}

// TestPolicyGateCannotBeDropped: a Feature that has a gate of the same name, and one that names none, deliver nothing that the policy's gate refuses. When it
// passes, they do.
func TestPolicyGateCannotBeDropped(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 8*time.Minute)
	required := gate("page", `grep -q good web/page.html || exit 3`)
	p.must(k8s.Create(p.ctx, &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "gates"}, Spec: v1alpha1.SupervisorPolicySpec{
		Overrides: &v1alpha1.Rules{Gates: []v1alpha1.PolicyGate{{Gate: required}}, Supervision: &v1alpha1.SupervisionRules{MaxCorrections: new(int32(1))}},
	}}), "create the policy")
	p.feature("same-name", `mkdir -p web && echo bad >> web/page.html`, func(s *v1alpha1.FeatureSpec) {
		s.Gates, s.Delivery = []v1alpha1.Gate{gate("page", "true")}, &v1alpha1.Delivery{Gates: []string{"page"}}
	})
	p.feature("none", `mkdir -p web && case "$TIDEWAITER_INSTRUCTIONS" in *"exited with code 3"*) echo good > web/page.html;; *) echo bad > web/page.html;; esac`, nil)
	f := p.phase("same-name", v1alpha1.PhaseBlocked, v1alpha1.ReasonGateFailed)
	if got := cluster.Message(f, v1alpha1.ConditionAccepted); !strings.Contains(got, "The policy has gates of these names") {
		t.Errorf("Accepted says %q", got)
	}
	if head, err := gitServer.Branch(p.ctx, p.repository, "tidewaiter/same-name"); err != nil || head != "" {
		t.Errorf("the server has the branch at %q, %v", head, err)
	}
	f = p.phase("none", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if got := p.history(f.Status.Branch); !strings.Contains(got, " blob 5\ngood\n") {
		t.Errorf("the branch lacks the page:\n%s", got)
	}
}
