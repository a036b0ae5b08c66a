// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestAProviderThatStallsEverybody is told once for all Features, however many managers see it and whatever gateways begin anew, and none of the Features
// blames its agent or tells it again. Its end is told once, too.
func TestAProviderThatStallsEverybody(t *testing.T) {
	r := newHarness(t)
	backend := "main-" + r.project // Events of other tests have other names
	names := []string{"one", "two", "three"}
	for _, name := range names {
		r.feature(name, nil)
	}
	r.settle(names...)
	for _, name := range names {
		r.reportRunning(name)
	}
	r.settle(names...)
	r.events()
	outages := func() *Outages {
		return &Outages{Client: r.manager, Live: r.manager, Clock: r.clock, Logger: testr.New(t), SystemNamespace: kubetest.SystemNamespace}
	}
	leader := outages()
	look := func(o *Outages) {
		t.Helper()
		r.must(o.Sync(t.Context()), "look for outages")
	}
	told := func() (all []string) {
		t.Helper()
		var list eventsv1.EventList
		r.must(r.user.List(t.Context(), &list, client.InNamespace(kubetest.SystemNamespace)), "list Events")
		for _, e := range list.Items {
			if e.Regarding.Kind == "ConfigMap" && e.Regarding.Name == protocol.BackendsConfigMap && strings.Contains(e.Note, backend) {
				all = append(all, e.Type+" "+e.Reason)
			}
		}
		return all
	}
	want := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, told()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	reach := func(gateway string, reached ...models.Reach) {
		in := r.gateways[gateway]
		in.Backends, in.Reached = []models.Backend{{Name: backend}}, reached
		r.gateways[gateway] = in
		r.announce()
	}
	report := func(anomalies ...*applyv1alpha1.AnomalyApplyConfiguration) {
		t.Helper()
		for _, name := range names {
			r.report(name, func(run *applyv1alpha1.RunStatusApplyConfiguration) {
				run.WithConnected(true).WithAnomalies(anomalies...).WithReport(applyv1alpha1.RunReport().WithWorkspaceReady(true).WithAgentRunning(true).WithTask(name).WithHead(head))
			})
		}
		r.settle(names...)
	}
	since := r.clock.Now().Add(-3 * time.Minute)
	reach("gateway-a", models.Reach{Backend: backend, Answered: since.Add(-time.Minute)})
	look(leader)
	want("it answers")

	reach("gateway-a", models.Reach{Backend: backend, Answered: since.Add(-time.Minute), Avoided: since})
	look(leader)
	look(leader)
	look(outages()) // a second leader
	report(applyv1alpha1.Anomaly().WithType(v1alpha1.ConditionAgentStalled).WithMessage("12 model calls in a row were in vain").WithCause(protocol.CauseProvider))
	want("it is out", "Warning ProviderUnavailable")
	for _, name := range names {
		r.wantCondition(name, v1alpha1.ConditionAgentStalled, metav1.ConditionTrue, v1alpha1.ReasonProviderUnavailable)
	}
	reach("gateway-a") // it begins anew
	look(leader)
	reach("gateway-a", models.Reach{Backend: backend, Avoided: since.Add(time.Minute)})
	look(leader)
	want("it is still out", "Warning ProviderUnavailable")

	reach("gateway-a", models.Reach{Backend: backend, Answered: since.Add(2 * time.Minute)})
	look(leader)
	look(leader)
	report()
	if got := strings.Join(told(), ", "); len(told()) != 2 || !strings.Contains(got, "Normal ProviderAvailable") {
		t.Errorf("it answers again: %s", got)
	}
	for _, name := range names {
		r.wantCondition(name, v1alpha1.ConditionAgentStalled, metav1.ConditionFalse, v1alpha1.ReasonNoAnomaly)
	}
	for _, e := range r.events() {
		if strings.Contains(e, v1alpha1.ReasonProviderUnavailable) || strings.Contains(e, v1alpha1.ReasonNoAnomaly) {
			t.Errorf("a Feature tells %s", e)
		}
	}
}
