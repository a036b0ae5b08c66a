// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
)

// TestAGateOfAPolicyRunsInAPodOfItsOwn: the Job has the image that the policy names, and none of the volumes that the agent has written to. An agent
// follows if the gate fails, and an approver is asked once it has passed, and again after a look if the policy requires other gates by then.
func TestAGateOfAPolicyRunsInAPodOfItsOwn(t *testing.T) {
	r := newHarness(t)
	gates := func(names ...string) (list []v1alpha1.PolicyGate) {
		for _, name := range names {
			list = append(list, v1alpha1.PolicyGate{Gate: v1alpha1.Gate{Name: name, Command: []string{"check"}}, Image: "registry.example.com/check:3"})
		}
		return list
	}
	p := r.policy("gates", v1alpha1.SupervisorPolicySpec{Overrides: &v1alpha1.Rules{Gates: gates("licenses"), Delivery: &v1alpha1.DeliveryRules{Approval: v1alpha1.ApprovalRequired}}})
	r.feature("login", nil)
	r.settle("login")
	r.final("login", protocol.OutcomeProving, protocol.ReasonProving, "a gate must pass")
	r.settle("login")
	f := r.want("login", v1alpha1.PhaseRunning, v1alpha1.ReasonProving)
	spec := r.pods()[0].Spec
	if c := spec.Containers[0]; f.Status.Job.Run != v1alpha1.RunKindGate || len(r.pods()) != 1 || c.Name != "gate" || c.Image != "registry.example.com/check:3" {
		t.Fatalf("job %+v, container %s of image %s", f.Status.Job, c.Name, c.Image)
	}
	for _, v := range spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil && c.ClaimName != "twf-login-trusted" {
			t.Errorf("the pod of the gate has %s", c.ClaimName)
		}
	}
	if args := strings.Join(spec.InitContainers[1].Args, " "); !strings.Contains(args, "--gate=") {
		t.Errorf("the watchdog does not learn its gate: %s", args)
	}

	r.final("login", protocol.OutcomeUnfinished, protocol.ReasonCorrecting, "an agent has more to do")
	r.settle("login")
	if f = r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing); f.Status.Job.Run != v1alpha1.RunKindAgent || f.Status.Failures != 0 {
		t.Errorf("job %+v, failures %d", f.Status.Job, f.Status.Failures)
	}

	r.final("login", protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired, "") // of a version that knew no gates
	r.settle("login")
	if f = r.get("login"); f.Status.Job.Run != v1alpha1.RunKindSeal {
		t.Errorf("an approval is asked for without a look at the gates: %+v", f.Status.Job)
	}
	r.final("login", protocol.OutcomeProving, protocol.ReasonProving, "a gate must pass")
	r.settle("login")
	r.want("login", v1alpha1.PhaseRunning, v1alpha1.ReasonProving)
	p.Spec.Overrides.Gates = gates()
	r.must(r.user.Update(r.Context(), p), "change the policy")
	r.final("login", protocol.OutcomeReadyToMerge, protocol.ReasonApprovalRequired, "")
	r.settle("login")
	r.want("login", v1alpha1.PhaseReadyToMerge, v1alpha1.ReasonApprovalRequired)
}

// TestAGateOfATaskRunsInAPodOfItsOwn: in Deterministic mode a report names a gate of a task, and its Job has the image of the agent. An agent follows. A
// report that names a gate which the Feature does not have starts none.
func TestAGateOfATaskRunsInAPodOfItsOwn(t *testing.T) {
	r := newHarness(t)
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Execution = &v1alpha1.Execution{Mode: v1alpha1.ModeDeterministic}
		f.Spec.Gates = []v1alpha1.Gate{{Name: "unit", Command: []string{"make", "test"}}, {Name: "lint", Command: []string{"make", "lint"}}}
	})
	r.settle("login")
	f := r.get("login")
	orders := features.Orders(f, policy.Merge(policy.Sources{}), f.Spec.Prompt, nil)
	if !orders.GatePods || len(orders.Gates) != 2 {
		t.Fatalf("orders %+v", orders)
	}
	proving := func(gate string) {
		r.report("login", func(run *applyv1alpha1.RunStatusApplyConfiguration) {
			run.WithTasks(applyv1alpha1.TaskStatus().WithName("login").WithState(protocol.TaskGating)).
				WithFinal(applyv1alpha1.FinalReport().WithEpoch(r.get("login").Status.Attempt).WithOutcome(protocol.OutcomeProving).
					WithReason(protocol.ReasonProving).WithMessage("a gate must pass").WithGate(gate).WithTask("login"))
		})
		r.endPod("login")
		r.settle("login")
	}
	proving(gates.Sum(orders.Gates[1]))
	f = r.want("login", v1alpha1.PhaseRunning, v1alpha1.ReasonProving)
	spec := r.pods()[0].Spec
	if c := spec.Containers[0]; f.Status.Job.Run != v1alpha1.RunKindGate || c.Name != "gate" || c.Image != f.Spec.Agent.Image {
		t.Fatalf("job %+v, container %s of image %s", f.Status.Job, c.Name, c.Image)
	}
	if args := strings.Join(spec.InitContainers[1].Args, " "); !strings.Contains(args, "--gate="+gates.Sum(orders.Gates[1])) {
		t.Errorf("the watchdog learns of another gate: %s", args)
	}
	for _, v := range spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil && c.ClaimName != "twf-login-trusted" {
			t.Errorf("the pod of the gate has %s", c.ClaimName)
		}
	}
	proving(strings.Repeat("0", 64))
	if f = r.want("login", v1alpha1.PhaseRunning, v1alpha1.ReasonProving); f.Status.Job.Run != v1alpha1.RunKindSeal {
		t.Errorf("a gate that the Feature does not have: %+v", f.Status.Job)
	}
	r.final("login", protocol.OutcomeUnfinished, protocol.ReasonCorrecting, "an agent has more to do")
	r.settle("login")
	if f = r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing); f.Status.Job.Run != v1alpha1.RunKindAgent || f.Status.Job.Mode != v1alpha1.ModeDeterministic || f.Status.Failures != 0 {
		t.Errorf("job %+v, failures %d", f.Status.Job, f.Status.Failures)
	}
}
