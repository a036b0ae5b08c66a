// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

func change(t *testing.T, f *v1alpha1.Feature, do func(*v1alpha1.Feature)) {
	t.Helper()
	now := read(t, f)
	before := now.DeepCopy()
	do(now)
	if err := env.Client.Patch(t.Context(), now, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func TestOrdersAreTold(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	got := r.get(t, login.Token, "")
	orders := got.orders(t)
	want := protocol.FeatureRef{Namespace: login.Feature.Namespace, Name: "login", UID: string(login.Feature.UID)}
	if orders.Feature != want || orders.Attempt != 1 || orders.Run != "agent" || orders.Prompt != "Add a login page." {
		t.Errorf("the orders are %+v", orders)
	}
	if len(orders.Policy.GitHosts) != 1 || orders.Policy.GitHosts[0].Name != "git.example.com" {
		t.Errorf("the policy in effect is not in the orders: %+v", orders.Policy)
	}
	again := r.get(t, login.Token, "")
	if got.header.Get("ETag") == "" || got.header.Get("ETag") != again.header.Get("ETag") || string(got.body) != string(again.body) {
		t.Errorf("the same orders have two forms: %s, %s", got.header.Get("ETag"), again.header.Get("ETag"))
	}
}

// TestDirectivesReachTheWatchdog: what a person adds or takes back wakes the poll at any replica, and how far it is comes back into the status.
func TestDirectivesReachTheWatchdog(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	a, b := newReplica(t, "a", clock), newReplica(t, "b", clock)
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	known := a.get(t, login.Token, "").header.Get("ETag")
	change(t, login.Feature, func(f *v1alpha1.Feature) {
		f.Spec.Directives = []v1alpha1.Directive{{ID: "use-dict", Priority: "Critical", Description: "Take the labels from the dictionary."}}
	})
	// The manager was restarted: another replica answers.
	var orders protocol.Orders
	until(t, "the directive is among the orders", func() bool {
		got := b.get(t, login.Token, "")
		orders = got.orders(t)
		return got.header.Get("ETag") != known && len(orders.Directives) == 1
	})
	want := protocol.Directive{ID: "use-dict", Source: "Person", Type: "Functional", Priority: "Critical", Description: "Take the labels from the dictionary."}
	if diff := cmp.Diff(want, orders.Directives[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	report := func(sequence int64, state string) protocol.Report {
		return reports.New(1, sequence, protocol.StatusReport{State: protocol.StateActive, Directives: []protocol.DirectiveStatus{{ID: "use-dict", Source: "Person", State: state, Age: 1, Message: "so"}}})
	}
	var ack protocol.ReportAck
	b.post(t, login.Token, report(1, protocol.DirectivePending), report(2, protocol.DirectiveActive)).decode(t, &ack)
	a.post(t, login.Token, report(3, protocol.DirectiveAddressed)).decode(t, &ack)
	if diff := cmp.Diff([]v1alpha1.DirectiveStatus{{ID: "use-dict", Source: "Person", State: "Addressed", Age: 1, Message: "so"}}, read(t, login.Feature).Status.Run.Directives); diff != "" {
		t.Errorf("status.run.directives (-want +got):\n%s", diff)
	}
}

// TestAPollWaits: for what it is about, for its time, and for nothing else.
func TestAPollWaits(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	r := newReplica(t, "a", clock)
	project, elsewhere := env.Project(t), env.Project(t)
	login := attempt.Start(t, env, attempt.Feature(t, env, project, "login"))
	attempt.Start(t, env, attempt.Feature(t, env, project, "other"))
	policy := func(namespace, name string) *v1alpha1.SupervisorPolicy {
		return &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + project}, Spec: v1alpha1.SupervisorPolicySpec{
			Selector: &v1alpha1.LabelSelector{}, Defaults: &v1alpha1.Rules{Paths: &v1alpha1.PathRules{Protected: []string{name + "/**"}}},
		}}
	}
	regulated(t)
	first := r.get(t, login.Token, "")
	etag := first.header.Get("ETag")

	t.Run("nothing happens", func(t *testing.T) {
		poll := r.poll(t, login.Token, etag)
		until(t, "the poll has a limit", clock.HasWaiters)
		change(t, &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "other"}}, func(f *v1alpha1.Feature) { f.Spec.Suspend = true })
		change(t, login.Feature, func(f *v1alpha1.Feature) { f.Labels = map[string]string{"color": "blue"} })
		if err := env.Client.Create(t.Context(), policy(elsewhere, "elsewhere")); err != nil {
			t.Fatal(err)
		}
		clock.Step(29 * time.Second)
		select {
		case got := <-poll:
			t.Fatalf("answered %d: %s", got.code, got.body)
		case <-time.After(200 * time.Millisecond): // what should not happen can only be waited for
		}
		clock.Step(time.Second)
		if got := <-poll; got.code != http.StatusNotModified || got.header.Get("ETag") != etag || len(got.body) > 0 {
			t.Errorf("answered %d: %s", got.code, got.body)
		}
	})
	for name, act := range map[string]func(){
		"a change of the spec": func() {
			change(t, login.Feature, func(f *v1alpha1.Feature) { f.Spec.Prompt = "Add another page." })
		},
		"a label of the namespace": func() { label(t, project, "example.com/regulated", "true") },
		"a policy of the project": func() {
			if err := env.Client.Create(t.Context(), policy(project, "project")); err != nil {
				t.Fatal(err)
			}
		},
		"a policy of the system": func() {
			p := policy(kubetest.SystemNamespace, "system")
			if err := env.Client.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), p) })
		},
		"what another Feature has delivered": func() {
			f := read(t, login.Feature)
			f.Status.Deliveries = []v1alpha1.ForeignDelivery{{Feature: "other", Branch: "tidewaiter/other", Commit: strings.Repeat("a", 40), Touches: "area web/**", Paths: []string{"web/a.html"}, PathCount: 1, DeliveryTime: &metav1.Time{Time: time.Now()}}}
			if err := env.Client.Status().Update(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		},
		"a request": func() {
			change(t, login.Feature, func(f *v1alpha1.Feature) {
				f.Spec.Requests = []v1alpha1.Request{{ID: "now", Checkpoint: &v1alpha1.CheckpointRequest{}}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			known := r.get(t, login.Token, "").header.Get("ETag")
			poll := r.poll(t, login.Token, known)
			act()
			got := <-poll
			got.orders(t)
			if got.header.Get("ETag") == known {
				t.Error("the same orders again")
			}
		})
	}
	t.Run("a new attempt ends the old one's poll", func(t *testing.T) {
		poll := r.poll(t, login.Token, r.get(t, login.Token, "").header.Get("ETag"))
		attempt.Start(t, env, read(t, login.Feature))
		if got := <-poll; got.code != http.StatusForbidden {
			t.Errorf("answered %d: %s", got.code, got.body)
		}
	})
}

func TestAPollOfADeletedFeatureEnds(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	change(t, login.Feature, func(f *v1alpha1.Feature) { f.Finalizers = []string{v1alpha1.FinalizerFeature} })
	known := r.get(t, login.Token, "").header.Get("ETag")
	poll := r.poll(t, login.Token, known)
	if err := env.Client.Delete(t.Context(), login.Feature); err != nil {
		t.Fatal(err)
	}
	stop := <-poll
	if orders := stop.orders(t); !orders.Stop || orders.StopReason != protocol.ReasonDeleted {
		t.Errorf("a Feature that is being deleted is not stopped: %+v", orders)
	}
	poll = r.poll(t, login.Token, stop.header.Get("ETag"))
	change(t, login.Feature, func(f *v1alpha1.Feature) { f.Finalizers = nil })
	if got := <-poll; got.code != http.StatusForbidden {
		t.Errorf("answered %d: %s", got.code, got.body)
	}
}

func TestPromptFromAConfigMap(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	r := newReplica(t, "a", clock)
	project := env.Project(t)
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "login"}, Spec: v1alpha1.FeatureSpec{
		PromptFrom: &v1alpha1.PromptSource{ConfigMapKeyRef: v1alpha1.ConfigMapKeyRef{Name: "prompts", Key: "login"}},
		Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"}, Agent: v1alpha1.Agent{Runtime: "command", Image: "a", Command: []string{"a"}},
	}}
	if err := env.Client.Create(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	login := attempt.Start(t, env, f)
	if got := r.get(t, login.Token, ""); got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("without the ConfigMap: %d %s", got.code, got.body)
	}
	prompts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "prompts"}, Data: map[string]string{"login": "First."}}
	if err := env.Client.Create(t.Context(), prompts); err != nil {
		t.Fatal(err)
	}
	first := r.get(t, login.Token, "")
	if got := first.orders(t).Prompt; got != "First." {
		t.Errorf("the prompt is %q", got)
	}
	prompts.Data["login"] = "Second."
	if err := env.Client.Update(t.Context(), prompts); err != nil {
		t.Fatal(err)
	}
	clock.Step(promptTTL)
	if got := r.get(t, login.Token, first.header.Get("ETag")).orders(t).Prompt; got != "Second." {
		t.Errorf("the prompt is still %q with the next poll", got)
	}
	if err := env.Client.Delete(t.Context(), prompts); err != nil {
		t.Fatal(err)
	}
}

func TestWhoIsNotHeard(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	project := env.Project(t)
	login := attempt.Start(t, env, attempt.Feature(t, env, project, "login"))
	unpinned := attempt.Launch(t, env, attempt.Feature(t, env, project, "unpinned"))
	old := attempt.Start(t, env, attempt.Feature(t, env, project, "old"))
	attempt.Start(t, env, old.Feature)
	for name, test := range map[string]struct {
		token string
		want  int
	}{
		"nobody":                 {"", http.StatusUnauthorized},
		"no token":               {"x", http.StatusUnauthorized},
		"another audience":       {attempt.Token(t, env, login.Pod), http.StatusUnauthorized},
		"an earlier attempt":     {old.Token, http.StatusForbidden},
		"a pod not yet known":    {unpinned.Token, http.StatusTooEarly},
		"the pod of the Feature": {login.Token, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			for _, got := range []answer{r.get(t, test.token, ""), r.post(t, test.token, reports.New(1, 1, reports.Taken(1, protocol.Valid)))} {
				if got.code != test.want {
					t.Errorf("answered %d: %s, want %d", got.code, got.body, test.want)
				}
			}
		})
	}
	for _, path := range []string{"/", "/v1/orders/x", "/metrics", "/debug/pprof/"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.do(t, login.Token, request); got.code != http.StatusNotFound {
			t.Errorf("%s is answered %d", path, got.code)
		}
	}
	if n := len(checkpoints(t, unpinned.Feature)) + len(checkpoints(t, old.Feature)); n != 0 {
		t.Errorf("%d Checkpoints of pods that are not heard", n)
	}
}

// TestPollsAreBounded: one Feature cannot take the places of the others.
func TestPollsAreBounded(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	project := env.Project(t)
	greedy, modest := attempt.Start(t, env, attempt.Feature(t, env, project, "greedy")), attempt.Start(t, env, attempt.Feature(t, env, project, "modest"))
	known := r.get(t, greedy.Token, "").header.Get("ETag")
	var polls []<-chan answer
	for range maxPollsEach {
		polls = append(polls, r.poll(t, greedy.Token, known))
	}
	if got := r.get(t, greedy.Token, known); got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("answered %d", got.code)
	}
	if got := r.get(t, modest.Token, ""); got.code != http.StatusOK {
		t.Errorf("another Feature is answered %d", got.code)
	}
	r.stop()
	for _, poll := range polls {
		<-poll
	}
}

func TestAReplicaEndsInOrder(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	poll := r.poll(t, login.Token, r.get(t, login.Token, "").header.Get("ETag"))
	if err := r.server.Check(nil); err != nil {
		t.Errorf("not ready: %v", err)
	}
	r.stop()
	if got := <-poll; got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("the open poll is answered %d", got.code)
	}
	if err := <-r.stopped; err != nil {
		t.Error(err)
	}
	r.stopped <- nil
	if r.server.Check(nil) == nil {
		t.Error("still ready")
	}
}

// TestNumbersAreNeverUsedTwice: a replica died after it had created Checkpoints and before it had counted them, and the
// pod's volume went as well. The next watchdog starts after them.
func TestNumbersAreNeverUsedTwice(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	first := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	if got := r.post(t, first.Token, reports.New(1, 1, reports.Taken(1, protocol.Valid))); got.code != http.StatusOK {
		t.Fatalf("answered %d: %s", got.code, got.body)
	}
	for n := int64(2); n <= 3; n++ {
		if err := env.Client.Create(t.Context(), runstatus.Checkpoint(first.Feature, reports.New(1, n, reports.Taken(n, protocol.Invalid)))); err != nil {
			t.Fatal(err)
		}
	}
	second := attempt.Start(t, env, read(t, first.Feature))
	if got := r.get(t, second.Token, "").header.Get(protocol.NextCheckpointHeader); got != "4" {
		t.Errorf("the next number is %s, want 4", got)
	}
	status := run(t, first.Feature)
	if status.CheckpointSequence != 3 || status.Checkpoints != (v1alpha1.CheckpointCounts{Total: 3, Valid: 1, Invalid: 2}) || status.LastCheckpoint.Name != "login-3" || status.LastCheckpoint.Message == "" {
		t.Errorf("the run is %+v", status)
	}
	if got := r.post(t, second.Token, reports.New(2, 1, reports.Taken(4, protocol.Valid))); got.code != http.StatusOK {
		t.Errorf("answered %d: %s", got.code, got.body)
	}
}
