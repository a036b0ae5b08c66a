// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
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
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/leases"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// wants is a plan that names contracts.
func wants(contracts ...string) func(*v1alpha1.Feature) {
	return func(f *v1alpha1.Feature) { f.Spec.Plan = &v1alpha1.Plan{Contracts: contracts} }
}

// leases are the locks of the project's repository, by contract.
func (r *harness) leases() []coordinationv1.Lease {
	r.Helper()
	var list coordinationv1.LeaseList
	r.must(r.user.List(r.Context(), &list, client.InNamespace(kubetest.SystemNamespace), client.MatchingLabels{v1alpha1.LabelLock: v1alpha1.LockContract}), "list Leases")
	ours := slices.DeleteFunc(list.Items, func(l coordinationv1.Lease) bool {
		return l.Annotations[v1alpha1.AnnotationRepository] != locks.Repository(r.repository)
	})
	slices.SortFunc(ours, func(a, b coordinationv1.Lease) int {
		return strings.Compare(a.Annotations[v1alpha1.AnnotationContract], b.Annotations[v1alpha1.AnnotationContract])
	})
	return ours
}

// wantLocks checks who holds which locks, as "contract name".
func (r *harness) wantLocks(want ...string) {
	r.Helper()
	got := []string{}
	for _, l := range r.leases() {
		got = append(got, l.Annotations[v1alpha1.AnnotationContract]+" "+locks.ParseHolder(ptr.Deref(l.Spec.HolderIdentity, "")).Name)
	}
	if !slices.Equal(got, want) {
		r.Fatalf("locks are %q, want %q", got, want)
	}
}

func TestTwoFeaturesContendForALock(t *testing.T) {
	r := newHarness(t)
	r.feature("first", wants("openapi", "db"))
	r.settle("first")
	r.wantLocks("db first", "openapi first")
	if f := r.want("first", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing); !slices.Equal(f.Status.Locks, []string{"db", "openapi"}) {
		t.Errorf("status.locks is %v", f.Status.Locks)
	}
	r.wantCondition("first", v1alpha1.ConditionLocksHeld, metav1.ConditionTrue, v1alpha1.ReasonLocksHeld)

	r.feature("second", wants("openapi", "web"))
	r.settle("first", "second")
	f := r.want("second", v1alpha1.PhasePending, v1alpha1.ReasonWaitingForLock)
	if len(f.Status.Locks) > 0 || r.results["second"].RequeueAfter == 0 {
		t.Errorf("who waits holds %v and looks again after %s", f.Status.Locks, r.results["second"].RequeueAfter)
	}
	r.wantJobs("twf-first-1")
	if m := r.wantCondition("second", v1alpha1.ConditionLocksHeld, metav1.ConditionFalse, v1alpha1.ReasonWaitingForLock); m != "The lock of contract openapi belongs to Feature first." {
		t.Errorf("the message is %q", m)
	}
	r.feature("third", wants("web"))
	r.settle("first", "second", "third")
	r.wantCondition("third", v1alpha1.ConditionLocksHeld, metav1.ConditionFalse, v1alpha1.ReasonWaitingForLock)

	r.final("first", protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	r.settle("first", "second", "third")
	r.want("first", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	r.want("second", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.wantLocks("openapi second", "web second")
	if m := r.wantCondition("third", v1alpha1.ConditionLocksHeld, metav1.ConditionFalse, v1alpha1.ReasonWaitingForLock); !strings.Contains(m, "belongs to Feature second") {
		t.Errorf("the message is %q", m)
	}
	r.final("second", protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	r.settle("first", "second", "third")
	r.wantLocks("web third")
}

// TestTheLineHasAnOrder: priority decides, and then age.
func TestTheLineHasAnOrder(t *testing.T) {
	r := newHarness(t)
	all := []string{"holder", "old", "young", "urgent"}
	r.feature("holder", wants("db"))
	r.settle("holder")
	r.feature("old", wants("db"))
	r.feature("young", wants("db"))
	r.feature("urgent", func(f *v1alpha1.Feature) {
		wants("db")(f)
		f.Spec.Priority = 1
	})
	r.settle(all...)
	for i, next := range []string{"urgent", "old", "young"} {
		holder := append([]string{"holder"}, "urgent", "old")[i]
		r.final(holder, protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
		// The last in line looks first, again and again.
		for range 3 {
			for _, name := range []string{"young", "old", "urgent", holder} {
				r.must(r.reconcile(name), "reconcile %s", name)
			}
		}
		r.settle(all...)
		r.wantLocks("db " + next)
	}
}

func TestALockIsOneForAllProjects(t *testing.T) {
	r, other := newHarness(t), newHarness(t)
	other.repository = strings.Replace(strings.TrimSuffix(r.repository, ".git"), "git.example.com", "Git.Example.com:443", 1)
	r.feature("first", wants("db"))
	r.settle("first")
	other.feature("second", wants("db"))
	other.settle("second")
	m := other.wantCondition("second", v1alpha1.ConditionLocksHeld, metav1.ConditionFalse, v1alpha1.ReasonWaitingForLock)
	if m != "The lock of contract db belongs to a Feature of another project." {
		t.Errorf("the message is %q", m)
	}
	r.must(r.user.Delete(r.Context(), r.get("first")), "delete the holder")
	r.clock.SetTime(r.get("first").DeletionTimestamp.Add(time.Minute))
	r.settle("first")
	r.wantGone("first")
	r.wantLocks()
	other.settle("second")
	other.wantLocks("db second")
}

// TestLocksAreRenewedInTime, and no more often than a third of their time: an hour of a Feature that works, and of one that
// waits for a person.
func TestLocksAreRenewedInTime(t *testing.T) {
	r := newHarness(t)
	r.feature("login", wants("db"))
	r.settle("login")
	r.reportRunning("login")
	r.settle("login")
	counter := &writeCounter{Client: r.manager}
	r.writes = counter
	const hour = time.Hour
	for end := r.clock.Now().Add(hour); r.clock.Now().Before(end); r.pass(20 * time.Second) {
		r.must(r.reconcile("login"), "reconcile")
		if lease := r.leases()[0]; r.clock.Since(lease.Spec.RenewTime.Time) >= locks.TTL {
			t.Fatalf("the lease is %s old", r.clock.Since(lease.Spec.RenewTime.Time))
		}
	}
	if most := int(hour / locks.RenewAfter); counter.writes > most || counter.writes < most/2 || counter.conflicts > 0 {
		t.Errorf("%d writes in an hour, want at most %d; %d conflicts", counter.writes, most, counter.conflicts)
	}
	if after := r.results["login"].RequeueAfter; after == 0 || after > locks.RenewAfter {
		t.Errorf("looks again after %s", after)
	}
	r.final("login", protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid, "Rule areas forbids x.")
	r.settle("login")
	r.wantLocks()
	counter.writes = 0
	for range 60 {
		r.pass(time.Minute)
		r.must(r.reconcile("login"), "reconcile")
	}
	if counter.writes > 0 {
		t.Errorf("%d writes while nothing runs", counter.writes)
	}
}

// TestAnExpiredLeaseIsReclaimed: but not because nobody was there to renew it, only when its holder does not renew it
// while others look.
func TestAnExpiredLeaseIsReclaimed(t *testing.T) {
	r := newHarness(t)
	r.feature("first", wants("db"))
	r.settle("first")
	r.reportRunning("first")
	r.settle("first")
	r.feature("second", wants("db"))
	r.settle("second")
	r.pass(time.Hour)
	// The manager was away: one that starts has seen nothing.
	r.locks = &leases.Keeper{Namespace: kubetest.SystemNamespace, Live: r.manager}
	r.settle("second")
	r.wantLocks("db first")
	r.pass(locks.TTL - time.Second)
	r.settle("second")
	r.wantLocks("db first")
	r.settle("first")
	r.pass(locks.TTL - time.Second)
	r.settle("second")
	r.wantLocks("db first")
	// Now the first one is not looked after any more.
	r.pass(time.Second + locks.TTL)
	r.must(r.reconcile("second"), "reconcile")
	r.wantLocks("db second")
	m := r.wantCondition("second", v1alpha1.ConditionLocksHeld, metav1.ConditionTrue, v1alpha1.ReasonLockReclaimed)
	if want := "Held: db. The lease of db had expired, and the Feature reclaimed it from Feature first. No policy names paths of db: name them under contracts."; m != want {
		t.Errorf("the message is %q, want %q", m, want)
	}
	r.settle("first", "second")
	f := r.want("first", v1alpha1.PhaseBlocked, v1alpha1.ReasonLockLost)
	if len(f.Status.Locks) > 0 {
		t.Errorf("status.locks is %v", f.Status.Locks)
	}
	m = r.wantCondition("first", v1alpha1.ConditionLocksHeld, metav1.ConditionFalse, v1alpha1.ReasonLockLost)
	if !strings.HasPrefix(m, "The lease of contract db expired and was reclaimed by Feature second.") {
		t.Errorf("the message is %q", m)
	}
	r.pass(61 * time.Second)
	r.settle("first", "second")
	r.wantJobs("twf-second-1")
	r.change("first", func(s *v1alpha1.FeatureSpec) {
		s.Requests = []v1alpha1.Request{{ID: "again", Retry: &v1alpha1.RetryRequest{}}}
	})
	r.settle("first", "second")
	r.want("first", v1alpha1.PhasePending, v1alpha1.ReasonWaitingForLock)
	r.final("second", protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	r.settle("second", "first")
	r.want("first", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.wantJobs("twf-first-2", "twf-second-1")
}

func TestALockThatIsNotFreeCanBlock(t *testing.T) {
	r := newHarness(t)
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: r.project, Name: "locks"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{
			Concurrency: &v1alpha1.ConcurrencyRules{OnLockConflict: v1alpha1.LockContentionFail},
			Contracts:   []v1alpha1.ContractRule{{Name: "db", Paths: []string{"db/**"}}},
		},
	}}
	r.must(r.user.Create(r.Context(), policy), "make a policy")
	r.feature("first", wants("db"))
	r.feature("second", wants("db"))
	r.settle("first", "second")
	if m := r.wantCondition("first", v1alpha1.ConditionLocksHeld, metav1.ConditionTrue, v1alpha1.ReasonLocksHeld); m != "Held: db." {
		t.Errorf("the message is %q", m)
	}
	r.want("second", v1alpha1.PhaseBlocked, v1alpha1.ReasonLockNotFree)
	r.wantCondition("second", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonLockNotFree)
	r.final("first", protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	r.settle("first", "second")
	r.want("second", v1alpha1.PhaseBlocked, v1alpha1.ReasonLockNotFree)
	r.change("second", func(s *v1alpha1.FeatureSpec) {
		s.Requests = []v1alpha1.Request{{ID: "again", Retry: &v1alpha1.RetryRequest{}}}
	})
	r.settle("first", "second")
	r.want("second", v1alpha1.PhasePreparing, v1alpha1.ReasonPreparing)
	r.wantLocks("db second")
}

// TestAManagerThatWasPausedFreesNothing: what it decided on is not so any more.
func TestAManagerThatWasPausedFreesNothing(t *testing.T) {
	r := newHarness(t)
	r.feature("login", wants("db"))
	r.settle("login")
	f := r.get("login")
	old, err := r.locks.Look(r.Context(), r.manager, f, r.clock.Now())
	r.must(err, "look at the locks")
	r.pass(time.Second)
	_, err = r.locks.Take(r.Context(), f, r.clock.Now())
	r.must(err, "take the lock again")
	if err := r.locks.Free(r.Context(), old, []string{"db"}); err == nil {
		t.Error("a lock was freed that was taken after it was looked at")
	}
	r.wantLocks("db login")
}
