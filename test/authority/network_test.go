// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"net/netip"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/controllers"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// system is what the manager's other parts say.
type system struct{}

func (system) Bundle() []byte  { return []byte("PEM") }
func (system) OnChange(func()) {}
func (system) Addresses(context.Context) (intake, gateway netip.Addr, err error) {
	return netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("10.96.0.11"), nil
}

// startManager runs the controllers with the rights that are shipped, until the test ends.
func startManager(t *testing.T) {
	t.Helper()
	byObject, err := controllers.CacheByObject(kubetest.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	env.StartManager(t, byObject, func(mgr ctrl.Manager) error {
		return controllers.Setup(mgr, controllers.Options{
			SystemNamespace: kubetest.SystemNamespace, Image: "example.com/tidewaiter:1", CABundle: system{}, Endpoints: system{}, Clock: clock.RealClock{},
		})
	})
}

// TestNoAgentRunsWithAnOpenNetwork: a person who may write network policies can open the network of pods, which admission
// cannot tell from what a project needs. No agent runs with it: none starts, and one that is there is ended.
func TestNoAgentRunsWithAnOpenNetwork(t *testing.T) {
	startManager(t)
	for name, roles := range map[string][]string{
		"editor": {"system:aggregate-to-edit", "system:aggregate-to-view", "tidewaiter-editor"},
		"admin":  {"system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view", "tidewaiter-admin"},
	} {
		t.Run(name, func(t *testing.T) {
			project := env.Project(t)
			person := env.Person(t, project, name, roles...)
			opens := func() *networkingv1.NetworkPolicy {
				return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "open"}, Spec: networkingv1.NetworkPolicySpec{
					Egress: []networkingv1.NetworkPolicyEgressRule{{}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
				}}
			}
			create := func(o client.Object) {
				t.Helper()
				if err := person.Create(t.Context(), o); err != nil {
					t.Fatalf("make %T: %v", o, err)
				}
			}
			f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "login"}, Spec: v1alpha1.FeatureSpec{
				Prompt: "Do it.", Repository: v1alpha1.Repository{URL: "https://git.example.com/" + project},
				Agent: v1alpha1.Agent{Runtime: "command", Image: "example.com/agent:1", Command: []string{"work"}},
			}}
			create(opens())
			create(f)
			arrives(t, f, v1alpha1.ReasonNetworkOpened, 0)
			if err := person.Delete(t.Context(), opens()); err != nil {
				t.Fatal(err)
			}
			arrives(t, f, v1alpha1.ReasonPreparing, 1)
			create(opens())
			arrives(t, f, v1alpha1.ReasonNetworkOpened, 0)
		})
	}
}

// arrives waits until a Feature is somewhere with so many Jobs. It takes an event: by itself it would be looked at again
// later.
func arrives(t *testing.T, f *v1alpha1.Feature, reason string, jobs int) {
	t.Helper()
	const soon = 15 * time.Second
	var is string
	var list batchv1.JobList
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, soon, true, func(ctx context.Context) (bool, error) {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(f), f); err != nil {
			return false, err
		}
		if k := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded); k != nil {
			is = k.Reason
		}
		err := env.Client.List(ctx, &list, client.InNamespace(f.Namespace))
		return is == reason && len(list.Items) == jobs, err
	})
	if err != nil {
		t.Fatalf("the Feature is %s with %d Jobs, want %s with %d", is, len(list.Items), reason, jobs)
	}
}
