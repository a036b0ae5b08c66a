// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// contracts makes the project's policy that names the contract openapi.
func (p *place) contracts(change func(*v1alpha1.Rules)) {
	p.Helper()
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.project, Name: "contracts"}}
	policy.Spec.Defaults = &v1alpha1.Rules{Contracts: []v1alpha1.ContractRule{{Name: "openapi", Paths: []string{"api/openapi.yaml"}}}}
	if change != nil {
		change(policy.Spec.Defaults)
	}
	p.must(k8s.Create(p.ctx, policy), "make the policy")
}

// locks of the place's repository, as "contract holder".
func (p *place) locks() []string {
	p.Helper()
	var list coordinationv1.LeaseList
	p.must(k8s.List(p.ctx, &list, client.InNamespace(cluster.SystemNamespace), client.HasLabels{v1alpha1.LabelLock}), "list Leases")
	var all []string
	for _, l := range list.Items {
		if strings.HasSuffix(l.Annotations[v1alpha1.AnnotationRepository], "/"+p.repository) {
			_, holder, _ := strings.Cut(*l.Spec.HolderIdentity, "/")
			name, _, _ := strings.Cut(holder, "/")
			all = append(all, l.Annotations[v1alpha1.AnnotationContract]+" "+name)
		}
	}
	return all
}

// TestLocks: of two Features that change a contract one waits for the other, and the work of both is delivered; what
// changes it without naming it is held.
func TestLocks(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 6*time.Minute)
	p.contracts(nil)
	openapi := func(s *v1alpha1.FeatureSpec) {
		s.Plan = &v1alpha1.Plan{AllowedAreas: []string{"api/**"}, Contracts: []string{"openapi"}}
	}
	p.feature("first", "echo 'info: first' >> api/openapi.yaml; until [ -e \"$HOME/end\" ]; do sleep 0.2; done; echo done > api/first.txt", openapi)
	p.condition("first", v1alpha1.ConditionLocksHeld, v1alpha1.ReasonLocksHeld)
	p.feature("second", "echo 'info: second' >> api/openapi.yaml", openapi)
	f := p.phase("second", v1alpha1.PhasePending, v1alpha1.ReasonWaitingForLock)
	if m := cluster.Message(f, v1alpha1.ConditionLocksHeld); !strings.Contains(m, "openapi belongs to Feature first") {
		t.Errorf("the message is %q", m)
	}
	if got := p.locks(); !slices.Equal(got, []string{"openapi first"}) {
		t.Errorf("locks are %q", got)
	}
	p.feature("thief", "echo 'info: thief' >> api/openapi.yaml; until [ -e \"$HOME/end\" ]; do sleep 0.2; done", func(s *v1alpha1.FeatureSpec) {
		s.Plan = &v1alpha1.Plan{AllowedAreas: []string{"api/**"}}
	})
	p.inAgent("thief", "grep thief /workspace/api/openapi.yaml")
	p.signal("first", "end")
	first := p.phase("first", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	second := p.phase("second", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if second.Status.StartTime.Before(first.Status.CompletionTime) {
		t.Errorf("the second started at %s, before the first finished at %s", second.Status.StartTime, first.Status.CompletionTime)
	}
	for name, f := range map[string]*v1alpha1.Feature{"first": first, "second": second} {
		if got := p.history(f.Status.Branch); !strings.Contains(got, "info: "+name) {
			t.Errorf("the branch of %s lacks its change of the contract", name)
		}
	}
	p.signal("thief", "end")
	p.phase("thief", v1alpha1.PhaseBlocked, v1alpha1.ReasonCheckpointInvalid)
	invalid := slices.ContainsFunc(p.checkpoints("thief"), func(k v1alpha1.Checkpoint) bool {
		return k.Spec.Verdict == "Invalid" && slices.ContainsFunc(k.Spec.Violations, func(v v1alpha1.Violation) bool {
			return v.Rule == "contracts" && v.Path == "api/openapi.yaml"
		})
	})
	if !invalid {
		t.Errorf("no checkpoint says that the contract was changed without its lock: %+v", p.checkpoints("thief"))
	}
	p.must(cluster.Until(p.ctx, "the locks to be free", func(context.Context) (bool, error) { return len(p.locks()) == 0, nil }), "wait")
}

// TestAnAbandonedLockIsReclaimed: a lock whose Feature is gone, and that nobody renews, goes to one who waits for it: only
// once the lease was seen to expire, and the condition says from whom it was taken.
func TestAnAbandonedLockIsReclaimed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 4*time.Minute)
	p.contracts(nil)
	url := gitServer.URL(p.repository)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster.SystemNamespace, Name: locks.Name(url, "openapi"),
		Labels:      map[string]string{v1alpha1.LabelLock: v1alpha1.LockContract, v1alpha1.LabelLockHolder: "gone"},
		Annotations: map[string]string{v1alpha1.AnnotationRepository: locks.Repository(url), v1alpha1.AnnotationContract: "openapi"},
	}}
	lease.Spec.HolderIdentity = ptr.To(locks.Holder{Namespace: p.project, Name: "ghost", UID: "gone"}.String())
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](10)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
	p.must(client.IgnoreNotFound(k8s.Delete(p.ctx, lease.DeepCopy())), "remove what an earlier run left")
	p.must(k8s.Create(p.ctx, lease), "leave a lock behind")
	p.feature("heir", "echo 'info: heir' >> api/openapi.yaml; until [ -e \"$HOME/end\" ]; do sleep 0.2; done", func(s *v1alpha1.FeatureSpec) {
		s.Plan = &v1alpha1.Plan{AllowedAreas: []string{"api/**"}, Contracts: []string{"openapi"}}
	})
	f := p.phase("heir", v1alpha1.PhasePending, v1alpha1.ReasonWaitingForLock)
	if m := cluster.Message(f, v1alpha1.ConditionLocksHeld); !strings.Contains(m, "openapi belongs to Feature ghost") {
		t.Errorf("the message is %q", m)
	}
	m := p.condition("heir", v1alpha1.ConditionLocksHeld, v1alpha1.ReasonLockReclaimed)
	if !strings.Contains(m, "The lease of openapi had expired, and the Feature reclaimed it from Feature ghost.") {
		t.Errorf("the message is %q", m)
	}
	if got := p.locks(); !slices.Equal(got, []string{"openapi heir"}) {
		t.Errorf("locks are %q", got)
	}
	p.signal("heir", "end")
	f = p.phase("heir", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if !strings.Contains(p.history(f.Status.Branch), "info: heir") {
		t.Error("the branch lacks the change of the contract")
	}
	p.must(cluster.Until(p.ctx, "the lock to be free", func(context.Context) (bool, error) { return len(p.locks()) == 0, nil }), "wait")
}

// TestOverlap: a Feature whose areas overlap with those of one at work says so, or waits for it where the policy says so.
func TestOverlap(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 6*time.Minute)
	p.feature("first", "echo first > web/first.html; until [ -e \"$HOME/end\" ]; do sleep 0.2; done", allow("web/**"))
	p.phase("first", v1alpha1.PhaseRunning, v1alpha1.ReasonRunning)
	p.feature("told", "echo told > web/told.html", allow("web/*.html"))
	if m := p.condition("told", v1alpha1.ConditionAreasDisjoint, v1alpha1.ReasonAreasOverlap); !strings.Contains(m, "Feature first works on the same repository: web/** of its plan and web/*.html of this one") {
		t.Errorf("the message is %q", m)
	}
	p.contracts(func(r *v1alpha1.Rules) { r.Concurrency = &v1alpha1.ConcurrencyRules{OnOverlap: v1alpha1.OverlapWait} })
	p.feature("waits", "echo waits > web/waits.html", allow("web/waits.html"))
	p.feature("apart", "echo apart > docs.md", allow("/docs.md"))
	f := p.phase("waits", v1alpha1.PhasePending, v1alpha1.ReasonWaitingForArea)
	if m := cluster.Message(f, v1alpha1.ConditionSucceeded); !strings.Contains(m, "Feature first") {
		t.Errorf("the message is %q", m)
	}
	apart := p.phase("apart", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	p.signal("first", "end")
	first := p.phase("first", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	waited := p.phase("waits", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if waited.Status.StartTime.Before(first.Status.CompletionTime) {
		t.Errorf("it started at %s, before the first finished at %s", waited.Status.StartTime, first.Status.CompletionTime)
	}
	if !apart.Status.StartTime.Before(first.Status.CompletionTime) {
		t.Error("a Feature waited whose areas do not overlap")
	}
	p.phase("told", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
}
