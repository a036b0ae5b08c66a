// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/modelbackends"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestAnnouncer: with the rights that a gateway is installed with, it says what is in force, removes what gateways left that are long gone and
// nothing else, and takes its own back at the end. It may write no other Lease and make none.
func TestAnnouncer(t *testing.T) {
	live := env.As(t, "system:serviceaccount:"+kubetest.SystemNamespace+":"+protocol.GatewayAccount)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: protocol.GatewayLease}}
	other := func(ago time.Duration) string {
		text, err := json.Marshal(coremodels.InForce{Renewed: time.Now().Add(-ago)})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"note":"ours",%q:%q,%q:%q}}}`, protocol.InForcePrefix+"gone", other(2*coremodels.InForceForgotten), protocol.InForcePrefix+"late", other(time.Minute))
	if err := env.Client.Patch(t.Context(), lease, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Client.Patch(context.WithoutCancel(t.Context()), lease, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))); err != nil {
			t.Error(err)
		}
	})
	a := newAnnouncer(live, kubetest.SystemNamespace, "mine", slog.New(slog.DiscardHandler))
	a.reached = func(list []coremodels.Backend) (all []coremodels.Reach) {
		for _, b := range list {
			all = append(all, coremodels.Reach{Backend: b.Name, Avoided: time.Unix(1000, 0)})
		}
		return all
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Start(ctx) }()
	until := func(what string, holds func(coremodels.Fleet) bool) {
		t.Helper()
		gomega.NewWithT(t).Eventually(func() bool {
			return env.Client.Get(t.Context(), client.ObjectKeyFromObject(lease), lease) == nil && holds(modelbackends.InForce(lease))
		}, time.Minute, 10*time.Millisecond).Should(gomega.BeTrue(), what)
	}
	a.say(coremodels.InForce{Digest: "first", Problem: strings.Repeat("ä", maxProblem)})
	until("it says what is in force, and removes what is old", func(f coremodels.Fleet) bool {
		_, gone := f["gone"]
		_, late := f["late"]
		return f["mine"].Digest == "first" && len(f["mine"].Problem) <= maxProblem+len("…") && !gone && late && lease.Annotations["note"] == "ours"
	})
	a.say(coremodels.InForce{Digest: "third", Backends: []coremodels.Backend{{Name: "main"}}})
	until("it says that a backend is out", func(f coremodels.Fleet) bool {
		out := f.Outages()
		return f["mine"].Digest == "third" && len(out) == 1 && out[0].Backend == "main" && out[0].Since.Equal(time.Unix(1000, 0))
	})
	var full []coremodels.Backend
	for i := range 600 {
		full = append(full, coremodels.Backend{Name: fmt.Sprint("backend-", i)})
	}
	a.say(coremodels.InForce{Digest: "full", Backends: full})
	until("what is in force leaves no place for how backends fare", func(f coremodels.Fleet) bool {
		mine := f["mine"]
		return mine.Digest == "full" && mine.Problem == "" && len(mine.Backends) == len(full) && len(mine.Reached) == 0
	})
	many := coremodels.Backend{Name: "main"}
	for i := range 2000 {
		many.Models = append(many.Models, coremodels.Model{Name: fmt.Sprint("a-model-with-a-long-name-", i)})
	}
	a.say(coremodels.InForce{Digest: "second", Backends: []coremodels.Backend{many}})
	until("it says that it has too much to say", func(f coremodels.Fleet) bool {
		return f["mine"].Digest == "second" && len(f["mine"].Backends) == 0 && strings.Contains(f["mine"].Problem, "list fewer models")
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	until("it takes back what it has said", func(f coremodels.Fleet) bool {
		_, mine := f["mine"]
		return !mine
	})
	stranger := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: "somebody-else"}}
	if err := live.Create(t.Context(), stranger.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("a gateway makes a Lease: %v", err)
	}
	if err := live.Patch(t.Context(), stranger, client.RawPatch(types.MergePatchType, []byte(`{}`))); !apierrors.IsForbidden(err) {
		t.Errorf("a gateway patches another Lease: %v", err)
	}
}
