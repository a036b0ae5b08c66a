// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	coregates "github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestDeliveryGates: a Feature adds to the gates of the policies. It can neither remove one nor change one by a gate of the same name, and hears of it.
func TestDeliveryGates(t *testing.T) {
	gate := func(name, program string) v1alpha1.Gate {
		return v1alpha1.Gate{Name: name, Command: []string{program}}
	}
	f := &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{
		Agent:    v1alpha1.Agent{Runtime: "command", Image: "agent:1"},
		Gates:    []v1alpha1.Gate{gate("unit", "mine"), gate("lint", "lint"), gate("licenses", "true")},
		Delivery: &v1alpha1.Delivery{Gates: []string{"lint", "licenses"}},
	}}
	f.Name = "login"
	e := policy.Effective{Gates: []policy.Gate{
		{Name: "licenses", Command: []string{"check"}, Image: "check:3", Timeout: time.Minute}, {Name: "unit", Command: []string{"make"}, Timeout: time.Minute},
	}}
	want := []policy.Gate{
		{Name: "licenses", Command: []string{"check"}, Image: "check:3", Timeout: time.Minute},
		{Name: "unit", Command: []string{"make"}, Image: "agent:1", Timeout: time.Minute},
		{Name: "lint", Command: []string{"lint"}, Image: "agent:1", Timeout: 10 * time.Minute},
	}
	if diff := cmp.Diff(want, DeliveryGates(f, e)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e.Gates[1].Image != "" {
		t.Error("the policy was changed")
	}
	if notice := ReplacedGates(f, e); !strings.Contains(notice, "licenses") || strings.Contains(notice, "unit") {
		t.Errorf("notice %q", notice)
	}
	if notice := ReplacedGates(f, policy.Effective{}); notice != "" {
		t.Errorf("notice %q without a policy", notice)
	}
	if diff := cmp.Diff([]string{"unit"}, Tasks(f)[0].Gates); diff != "" {
		t.Errorf("gates after the last task (-want +got):\n%s", diff)
	}
	f.Spec.Agent = v1alpha1.Agent{Runtime: "worker"}
	if got := DeliveryGates(f, policy.Effective{}); len(got) != 2 || got[0].Image != "" {
		t.Errorf("gates of an agent whose program is in the image of Tidewaiter: %+v", got)
	}
}

// TestGatesOfTasksInPods: in Deterministic mode the orders say that gates of tasks run in pods of their own, and the manager knows each gate of the orders
// by its sum, with the image of the agent. Volumes that go with the pod keep the gates in the agent's container, where no report can be written.
func TestGatesOfTasksInPods(t *testing.T) {
	report := &v1alpha1.GateReport{Format: v1alpha1.ReportJUnit, Path: "build/junit.xml"}
	feature := func(mode v1alpha1.ExecutionMode, runtime string, ephemeral bool) *v1alpha1.Feature {
		f := &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{
			Agent: v1alpha1.Agent{Runtime: runtime, Image: "agent:1"},
			Gates: []v1alpha1.Gate{{Name: "unit", Command: []string{"make"}, Report: report}, {Name: "lint", Command: []string{"lint"}}},
		}}
		f.Name = "login"
		f.Status.Job = &v1alpha1.JobStatus{Run: v1alpha1.RunKindAgent, Mode: mode}
		if ephemeral {
			f.Spec.Workspace = &v1alpha1.Workspace{Ephemeral: true}
		}
		return f
	}
	effective := policy.Merge(policy.Sources{})
	for name, c := range map[string]struct {
		feature *v1alpha1.Feature
		mode    string
		inPods  bool
		image   string
		notice  string
	}{
		"Interactive":              {feature(v1alpha1.ModeInteractive, "command", false), policy.ModeInteractive, false, "agent:1", ""},
		"Deterministic":            {feature(v1alpha1.ModeDeterministic, "command", false), policy.ModeDeterministic, true, "agent:1", ""},
		"the included worker":      {feature(v1alpha1.ModeDeterministic, "worker", false), policy.ModeDeterministic, true, "", ""},
		"volumes go with the pod":  {feature(v1alpha1.ModeDeterministic, "command", true), policy.ModeDeterministic, false, "agent:1", "Gates with a report fail there: unit."},
		"and the agent writes":     {feature(v1alpha1.ModeInteractive, "command", true), policy.ModeInteractive, false, "agent:1", ""},
		"an attempt without agent": {feature("", "command", false), policy.ModeDeterministic, false, "agent:1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			effective := effective
			effective.Execution.Mode = c.mode
			o, s := Orders(c.feature, effective, "Add a login page.", nil), Spec(c.feature, effective)
			if o.GatePods != c.inPods {
				t.Errorf("in pods: %t", o.GatePods)
			}
			var ordered []lifecycle.Gate
			for _, g := range o.GatesOf("login") {
				ordered = append(ordered, lifecycle.Gate{Sum: coregates.Sum(g), Image: c.image})
			}
			if diff := cmp.Diff(ordered, s.TaskGates); diff != "" || len(ordered) != 2 {
				t.Errorf("gates of the orders, and those that the manager knows (-orders +manager):\n%s", diff)
			}
			if c.notice == "" && s.GateNotice != "" || !strings.Contains(s.GateNotice, c.notice) {
				t.Errorf("notice %q", s.GateNotice)
			}
		})
	}
	f := feature(v1alpha1.ModeDeterministic, "command", false)
	sum := coregates.Sum(gates(f)[0])
	f.Spec.Agent.Image = "agent:2"
	if coregates.Sum(gates(f)[0]) == sum {
		t.Error("a result in one image counts for another one")
	}
	f.Status.Run = &v1alpha1.RunStatus{Tasks: []v1alpha1.TaskStatus{{Name: "page/form", State: protocol.TaskDone}, {Name: "page/save", State: protocol.TaskGating}},
		Final: &v1alpha1.FinalReport{Outcome: protocol.OutcomeProving, Gate: sum, Task: "page/save"}}
	if r := Run(f); r.Gating != "page/save" || r.Final.Task != "page/save" || r.Final.Gate != sum {
		t.Errorf("%+v, %+v", r, r.Final)
	}
}
