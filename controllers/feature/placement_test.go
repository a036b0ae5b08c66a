// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
)

// placement is what the template of a Job says of where its pod runs, as the API server has it.
type placement struct {
	Nodes       map[string]string
	Tolerations []corev1.Toleration
	Class       string
	Spread      []corev1.TopologySpreadConstraint
	Secrets     []corev1.LocalObjectReference
	CPU         string
}

func placementOf(j batchv1.Job) placement {
	s := j.Spec.Template.Spec
	p := placement{Nodes: s.NodeSelector, Tolerations: s.Tolerations, Class: s.PriorityClassName, Spread: s.TopologySpreadConstraints, Secrets: s.ImagePullSecrets}
	for _, c := range s.Containers {
		if c.Name == "agent" {
			p.CPU = c.Resources.Limits.Cpu().String() + "/" + c.Resources.Requests.Cpu().String()
		}
	}
	return p
}

// TestAPolicyPlacesPods: what a policy and the Feature say comes to the pod, a default gives way to the Feature, and an override does not.
func TestAPolicyPlacesPods(t *testing.T) {
	r := newHarness(t)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: r.project}, Value: 7}
	r.must(r.user.Create(r.Context(), class), "create a PriorityClass")
	t.Cleanup(func() { r.must(r.user.Delete(context.Background(), class), "delete the PriorityClass") })
	r.policy("places", v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Agents: &v1alpha1.AgentRules{
			Scheduling: &v1alpha1.Scheduling{
				NodeSelector: map[string]v1alpha1.LabelValue{"disk": "any"}, PriorityClassName: ptr.To(class.Name),
				TopologySpreadConstraints: []v1alpha1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: v1alpha1.ScheduleAnyway, MaxSkew: 2}},
			},
			Resources:        v1alpha1.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}},
			ImagePullSecrets: []v1alpha1.SecretRef{{Name: "mirror"}},
		}},
		Overrides: &v1alpha1.Rules{Agents: &v1alpha1.AgentRules{
			Scheduling: &v1alpha1.Scheduling{NodeSelector: map[string]v1alpha1.LabelValue{"pool": "agents"}, Tolerations: []v1alpha1.Toleration{{Key: "agents", Operator: v1alpha1.TolerateExists}}},
			Resources:  v1alpha1.Resources{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
		}},
	})
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Agent.ImagePullSecrets = []v1alpha1.SecretRef{{Name: "mine"}}
		f.Spec.Agent.Scheduling = &v1alpha1.Scheduling{
			NodeSelector: map[string]v1alpha1.LabelValue{"pool": "everything", "disk": "ssd"}, Tolerations: []v1alpha1.Toleration{{Key: "control-plane", Operator: v1alpha1.TolerateExists}},
		}
	})
	r.settle("login")
	want := placement{
		Nodes: map[string]string{"pool": "agents", "disk": "ssd"}, Tolerations: []corev1.Toleration{{Key: "agents", Operator: corev1.TolerationOpExists}}, Class: class.Name,
		Spread: []corev1.TopologySpreadConstraint{{
			MaxSkew: 2, TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelRun: "agent"}},
		}},
		Secrets: []corev1.LocalObjectReference{{Name: "mine"}, {Name: "mirror"}}, CPU: "2/2",
	}
	if diff := cmp.Diff(want, placementOf(r.jobs()[0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if selected := r.pods()[0].Labels[v1alpha1.LabelRun]; selected != "agent" {
		t.Errorf("the constraint counts pods of run agent, and the pod's is %q", selected)
	}
}

// TestAPodThatNoNodeTakesIsMoved: the condition names the labels, and a changed Feature is placed anew with its next attempt.
func TestAPodThatNoNodeTakesIsMoved(t *testing.T) {
	r := newHarness(t)
	r.feature("login", func(f *v1alpha1.Feature) {
		f.Spec.Agent.Scheduling = &v1alpha1.Scheduling{NodeSelector: map[string]v1alpha1.LabelValue{"pool": "nowhere"}}
	})
	r.settle("login")
	pod := r.pods()[0]
	r.status(&pod, func(s *corev1.PodStatus) {
		s.Phase, s.ContainerStatuses = corev1.PodPending, nil
		s.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
		}}
	})
	r.settle("login")
	r.want("login", v1alpha1.PhasePreparing, v1alpha1.ReasonUnschedulable)
	message := r.wantCondition("login", v1alpha1.ConditionWorkspaceReady, metav1.ConditionFalse, v1alpha1.ReasonUnschedulable)
	for _, want := range []string{"pool=nowhere", "spec.agent.scheduling.nodeSelector"} {
		if !strings.Contains(message, want) {
			t.Errorf("%s is not named: %s", want, message)
		}
	}
	r.change("login", func(s *v1alpha1.FeatureSpec) {
		s.Agent.Scheduling.NodeSelector = map[string]v1alpha1.LabelValue{"pool": "agents"}
	})
	r.settle("login")
	r.wantJobs("twf-login-1") // what runs stays as it was made
	r.change("login", func(s *v1alpha1.FeatureSpec) { s.Suspend = true })
	r.settle("login")
	r.change("login", func(s *v1alpha1.FeatureSpec) { s.Suspend = false })
	r.settle("login")
	jobs := r.jobs()
	last := jobs[len(jobs)-1]
	if diff := cmp.Diff(map[string]string{"pool": "agents"}, last.Spec.Template.Spec.NodeSelector); diff != "" || last.Name == "twf-login-1" {
		t.Errorf("%s (-want +got):\n%s", last.Name, diff)
	}
}

// TestUserNamespacesAreFoundOut: by the nodes that may run the pod, and their runtime; people may know better.
func TestUserNamespacesAreFoundOut(t *testing.T) {
	r := newHarness(t)
	r.policy("room", v1alpha1.SupervisorPolicySpec{Defaults: &v1alpha1.Rules{Capacity: &v1alpha1.CapacityRules{MaxRunning: ptr.To[int32](9)}}})
	for name, able := range map[string]bool{"able": true, "mixed": false} {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{GenerateName: r.project + "-", Labels: map[string]string{"pool": r.project, "kind": name}},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: r.project, Effect: corev1.TaintEffectNoSchedule}}}, // other tests run no pods there
		}
		r.must(r.user.Create(r.Context(), node), "create a node")
		t.Cleanup(func() { r.must(r.user.Delete(context.Background(), node), "delete the node") })
		node.Status.RuntimeHandlers = []corev1.NodeRuntimeHandler{{Features: &corev1.NodeRuntimeHandlerFeatures{UserNamespaces: &able}}, {Name: "sandbox", Features: &corev1.NodeRuntimeHandlerFeatures{UserNamespaces: ptr.To(false)}}}
		r.must(r.user.Status().Update(r.Context(), node), "report what the node can do")
	}
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: r.project}, Handler: "sandbox"}
	r.must(r.user.Create(r.Context(), class), "create a RuntimeClass")
	t.Cleanup(func() { r.must(r.user.Delete(context.Background(), class), "delete the RuntimeClass") })
	for name, tc := range map[string]struct {
		kind, class string
		setting     nodes.Setting
		want        bool
	}{
		"all":       {kind: "able", setting: nodes.Auto, want: true},
		"some":      {setting: nodes.Auto},
		"none":      {kind: "mixed", setting: nodes.Auto},
		"sandboxed": {kind: "able", class: class.Name, setting: nodes.Auto},
		"always":    {kind: "mixed", setting: nodes.Always, want: true},
		"never":     {kind: "able", setting: nodes.Never},
	} {
		r.userNamespaces = tc.setting
		r.feature(name, func(f *v1alpha1.Feature) {
			f.Spec.Agent.RuntimeClassName = tc.class
			f.Spec.Agent.Scheduling = &v1alpha1.Scheduling{
				NodeSelector: map[string]v1alpha1.LabelValue{"pool": v1alpha1.LabelValue(r.project)}, Tolerations: []v1alpha1.Toleration{{Key: r.project, Operator: v1alpha1.TolerateExists}},
			}
			if tc.kind != "" {
				f.Spec.Agent.Scheduling.NodeSelector["kind"] = v1alpha1.LabelValue(tc.kind)
			}
		})
		r.must(r.reconcile(name), "reconcile")
		var job batchv1.Job
		r.must(r.user.Get(r.Context(), client.ObjectKey{Namespace: r.project, Name: "twf-" + name + "-1"}, &job), "read the Job")
		if got := !ptr.Deref(job.Spec.Template.Spec.HostUsers, true); got != tc.want {
			t.Errorf("%s: a user namespace of its own: %t, want %t", name, got, tc.want)
		}
	}
}
