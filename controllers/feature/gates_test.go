// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
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
