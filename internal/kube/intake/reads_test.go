// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

// working is a status that is another one for each number.
func working(n int64) protocol.Report {
	return reports.New(1, n, protocol.StatusReport{State: protocol.StateActive, Task: fmt.Sprint("task ", n)})
}

// TestAStatusCostsNoRead of the API server: the cache shows what it is folded into.
func TestAStatusCostsNoRead(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	until(t, "the cache knows the pod", func() bool { return r.post(t, login.Token, working(1)).code == http.StatusOK })
	before := r.live.features.Load()
	for n := int64(2); n < 6; n++ {
		until(t, "the cache shows the report before", func() bool {
			f := &v1alpha1.Feature{}
			return r.server.options.Client.Get(t.Context(), client.ObjectKeyFromObject(login.Feature), f) == nil && runOf(f).Sequence == n-1
		})
		var ack protocol.ReportAck
		r.post(t, login.Token, working(n)).decode(t, &ack)
		if ack.Sequence != n || read(t, login.Feature).Status.Run.Sequence != n {
			t.Errorf("report %d is acknowledged as %d", n, ack.Sequence)
		}
	}
	if got := r.live.features.Load() - before; got != 0 {
		t.Errorf("four statuses cost %d reads of the Feature", got)
	}
}

// TestAConnectionCostsNoRead where the cache shows that it is recorded, and where it shows that the run has ended before the connection broke off.
func TestAConnectionCostsNoRead(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	r := newReplica(t, "a", clock)
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	key := client.ObjectKeyFromObject(login.Feature)
	until(t, "the cache knows the pod", func() bool { return r.post(t, login.Token, working(1)).code == http.StatusOK })
	cached := func(what string, is func(run v1alpha1.RunStatus) bool) {
		t.Helper()
		until(t, what, func() bool {
			f := &v1alpha1.Feature{}
			return r.server.options.Client.Get(t.Context(), key, f) == nil && is(runOf(f))
		})
	}
	sessions := r.server.sessions
	leave := sessions.enter(key, 1, v1alpha1.RunStatus{})
	cached("the connection is recorded", func(run v1alpha1.RunStatus) bool { return run.Replica == "a" && *run.Connected })
	before := r.live.features.Load()
	if err := sessions.settle(t.Context(), key); err != nil { // the container of the agent connects after that which has prepared its files
		t.Fatal(err)
	}
	if got := r.live.features.Load() - before; got != 0 {
		t.Errorf("a connection that is recorded costs %d reads of the Feature", got)
	}
	r.post(t, login.Token, reports.New(1, 2, protocol.FinalReport{Outcome: protocol.OutcomeDelivered}))
	cached("the end is recorded", func(run v1alpha1.RunStatus) bool { return run.Final != nil })
	before = r.live.features.Load()
	leave()
	clock.Step(breakAfter + time.Second)
	until(t, "the connection is forgotten", func() bool {
		sessions.mu.Lock()
		defer sessions.mu.Unlock()
		return sessions.open[key] == nil
	})
	if got := r.live.features.Load() - before; got != 0 {
		t.Errorf("a connection that breaks off after the end of its run costs %d reads of the Feature", got)
	}
}

// TestALateCacheLosesNoStatus: what it shows is not what a report is folded into.
func TestALateCacheLosesNoStatus(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	prompt, late := newReplica(t, "a", clock), newReplica(t, "b", clock)
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	var ack protocol.ReportAck
	prompt.post(t, login.Token, working(1)).decode(t, &ack)
	late.stopWatching(t, login.Feature)
	prompt.post(t, login.Token, working(2), reports.New(1, 3, protocol.RequestReport{ID: "r", OK: true})).decode(t, &ack)
	late.post(t, login.Token, working(2), reports.New(1, 3, protocol.RequestReport{ID: "r", OK: true}), working(4)).decode(t, &ack)
	run := read(t, login.Feature).Status.Run
	if ack.Sequence != 4 || run.Sequence != 4 || run.Report.Task != "task 4" || len(run.Requests) != 1 {
		t.Errorf("acknowledged %d, and the run is %+v", ack.Sequence, run)
	}
	// What is known already is no news, whatever the cache shows.
	late.post(t, login.Token, working(4)).decode(t, &ack)
	wantObserved(t, []*replica{prompt, late}, "1/01", "1/02", "1/03", "1/04")
}

// TestFirstOrdersCostNoListOfPolicies where the cache shows the policy that the controller has noted, and one where it shows another.
func TestFirstOrdersCostNoListOfPolicies(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	effective, err := identity.Effective(t.Context(), env.Client, login.Feature, kubetest.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	note := func(hash string) {
		// Intake writes too: that the watchdog is connected.
		patch := fmt.Sprintf(`{"status":{"policy":{"hash":%q,"enforcement":%q}}}`, hash, effective.Enforcement)
		if err := env.Client.Status().Patch(t.Context(), login.Feature.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	for hash, want := range map[string]bool{effective.Hash: false, "another": true} {
		note(hash)
		before := r.live.policies.Load()
		if got := r.newest(t, login.Token, "", "").orders(t); got.Policy.Hash != effective.Hash {
			t.Errorf("the policy of the orders is %s, want %s", got.Policy.Hash, effective.Hash)
		}
		if listed := r.live.policies.Load() > before; listed != want {
			t.Errorf("the controller has noted %s: policies are listed: %t, want %t", hash, listed, want)
		}
	}
}
