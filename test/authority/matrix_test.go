// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

const commit = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// checkpoint is a record that the CRD accepts.
func checkpoint(f *v1alpha1.Feature) v1alpha1.CheckpointSpec {
	return v1alpha1.CheckpointSpec{
		FeatureName: f.Name, FeatureUID: string(f.UID), Sequence: 1, Attempt: 1, Trigger: "Interval", CaptureTime: metav1.Now(),
		Commit: commit, Tree: commit, Base: commit, Verdict: v1alpha1.VerdictValid, Action: v1alpha1.ActionPromoted,
	}
}

func feature(w *world, name string) *v1alpha1.Feature {
	return &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: w.project, Name: name}, Spec: *w.run.Feature.Spec.DeepCopy()}
}

// TestEveryGrantIsKnown: a verb or resource that a role grants and that nobody has looked at fails. Look at what it lets
// people do to Features, their pods, claims, tokens, labels and owner references; add an attack and the admission policy
// that stops it, or a row with the reason why it is harmless.
func TestEveryGrantIsKnown(t *testing.T) {
	granted, list := grants(t), known()
	for g, roles := range granted {
		if list[g] == "" {
			t.Errorf("role %s grants %q, which the table does not know", strings.Join(roles, ", "), g)
		}
	}
	for g := range list {
		// The built-in roles of Kubernetes 1.34 grant nothing of this group.
		if granted[g] == nil && g.resource != "events.k8s.io/events" {
			t.Errorf("the table knows %q, which no role grants: remove it", g)
		}
	}
}

// TestNoRoleChangesNamespaces: global policies select projects by the labels of their namespaces.
func TestNoRoleChangesNamespaces(t *testing.T) {
	w := newWorld(t)
	read := &corev1.Namespace{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: w.project}, read); err != nil {
		t.Fatal(err)
	}
	for name, who := range map[string]client.Client{"edit": w.editor, "developer": w.developer, "admin": w.admin} {
		if err := patch(t, who, read, `{"metadata":{"labels":{"example.com/regulated":null}}}`); !apierrors.IsForbidden(err) {
			t.Errorf("%s may change the namespace: %v", name, err)
		}
	}
}

// TestRolesCannotSpeakForTidewaiter tries every attack, and looks at what it could have changed.
func TestRolesCannotSpeakForTidewaiter(t *testing.T) {
	w := newWorld(t)
	before := w.state(t)
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			if err := a.do(t, w); !refused(err, a.policy) {
				t.Errorf("want refused by %s, got %v", a.policy, err)
			}
		})
	}
	if diff := cmp.Diff(before, w.state(t)); diff != "" {
		t.Errorf("something was changed (-before +after):\n%s", diff)
	}
}

// refused reports whether an admission policy refused, and said what to do.
func refused(err error, policy string) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'") && strings.Contains(err.Error(), ":")
}

// TestEveryPolicyIsNeeded removes each admission policy in turn: the attacks must find the hole. Where one gets through it is done for
// real, so that what follows needs another world.
func TestEveryPolicyIsNeeded(t *testing.T) {
	var policies admissionv1.ValidatingAdmissionPolicyBindingList
	if err := env.Client.List(t.Context(), &policies, client.MatchingLabels{"app.kubernetes.io/name": "tidewaiter"}); err != nil {
		t.Fatal(err)
	}
	if len(policies.Items) < 10 {
		t.Fatalf("only %d admission policies are installed", len(policies.Items))
	}
	for _, binding := range policies.Items {
		t.Run(binding.Name, func(t *testing.T) {
			w := newWorld(t)
			again := &admissionv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: binding.Name, Labels: binding.Labels}, Spec: *binding.Spec.DeepCopy(),
			}
			if err := env.Client.Delete(t.Context(), binding.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			if !await(t, func() bool { return open(t, w, binding.Spec.PolicyName) != "" }) {
				t.Errorf("without %s every attack is still refused: an attack that it stops is missing", binding.Name)
			}
			if err := env.Client.Create(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			// The API server reads all of a policy at once.
			if !await(t, func() bool { w = newWorld(t); return open(t, w, binding.Spec.PolicyName) == "" }) {
				t.Errorf("%s does not come back: %s", binding.Name, open(t, w, binding.Spec.PolicyName))
			}
		})
	}
}

// open names the first attack that a policy does not refuse.
func open(t *testing.T, w *world, policy string) string {
	t.Helper()
	for _, a := range attacks() {
		if a.policy == policy && !refused(a.do(t, w), a.policy) {
			return a.name
		}
	}
	return ""
}

// await asks again until it is so; the API server reads policies from a watch.
func await(t *testing.T, so func() bool) bool {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return so(), nil })
	return err == nil
}
