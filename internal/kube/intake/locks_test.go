// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	corelocks "github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/kube/leases"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestOrdersNameOnlyLocksThatAreHeld: the status names a lock, and its Lease says at this time that it is so.
func TestOrdersNameOnlyLocksThatAreHeld(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now().Truncate(time.Second))
	r := newReplica(t, "a", clock)
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	f := read(t, login.Feature)
	f.Status.Locks = []string{"db", "expired", "nobodys", "openapi", "others"}
	if err := env.Client.Status().Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	other := leases.Holder(f)
	other.UID = "another-time"
	lease := func(contract string, holder corelocks.Holder, age time.Duration) {
		l := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: corelocks.Name(f.Spec.Repository.URL, contract)},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To(holder.String()), LeaseDurationSeconds: ptr.To(int32(corelocks.TTL / time.Second)),
				RenewTime: &metav1.MicroTime{Time: clock.Now().Add(-age)},
			},
		}
		if err := env.Client.Create(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), l) })
	}
	lease("db", leases.Holder(f), 0)
	lease("openapi", leases.Holder(f), 100*time.Second)
	lease("expired", leases.Holder(f), corelocks.TTL)
	lease("others", other, 0)
	lease("unnoted", leases.Holder(f), 0)
	first := r.get(t, login.Token, "")
	if got := first.orders(t).Locks; !slices.Equal(got, []string{"db", "openapi"}) {
		t.Errorf("locks are %v", got)
	}
	clock.Step(200 * time.Second)
	if got := r.get(t, login.Token, first.header.Get("ETag")).orders(t).Locks; !slices.Equal(got, []string{"db"}) {
		t.Errorf("after 200 seconds without renewal locks are %v", got)
	}
}
