// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestOrdersDoNotGoBack: the Service sends a watchdog to a replica whose caches are behind what another one has told it.
func TestOrdersDoNotGoBack(t *testing.T) {
	for name, act := range map[string]func(t *testing.T, f *v1alpha1.Feature){
		"the Feature": func(t *testing.T, f *v1alpha1.Feature) {
			change(t, f, func(f *v1alpha1.Feature) { f.Spec.Prompt = "Add another page." })
		},
		"a policy": func(t *testing.T, f *v1alpha1.Feature) {
			p := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "strict"}, Spec: v1alpha1.SupervisorPolicySpec{
				Defaults: &v1alpha1.Rules{Paths: &v1alpha1.PathRules{Protected: []string{"guarded/**"}}},
			}}
			if err := env.Client.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		},
		"a label of the namespace": func(t *testing.T, f *v1alpha1.Feature) { label(t, f.Namespace, "example.com/regulated", "true") },
	} {
		t.Run(name, func(t *testing.T) {
			regulated(t)
			clock := clocktesting.NewFakeClock(time.Now())
			prompt, late := newReplica(t, "a", clock), newReplica(t, "b", clock)
			login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
			first := prompt.newest(t, login.Token, "", "")
			first.orders(t)
			late.stopWatching(t, login.Feature)
			if name == "a label of the namespace" {
				late.late.Load().version = "99999999999" // each kind has a cache of its own: that of policies is not behind
			}
			act(t, login.Feature)
			var second answer
			until(t, "the change is told", func() bool {
				second = prompt.newest(t, login.Token, first.header.Get("ETag"), first.header.Get(protocol.RevisionHeader))
				return second.code == http.StatusOK
			})
			tag, seen := second.header.Get("ETag"), second.header.Get(protocol.RevisionHeader)
			if got := late.newest(t, login.Token, tag, seen); got.code != http.StatusNotModified {
				t.Errorf("the replica that is behind answers %d: %s", got.code, got.body)
			}
			// A watchdog that starts is told the newest as well.
			if got := late.newest(t, login.Token, "", ""); got.code != http.StatusOK || got.header.Get("ETag") != tag {
				t.Errorf("the first orders of a replica that is behind are %d %s", got.code, got.body)
			}
			// One that has seen what nobody can see is asked to come again.
			if got := late.newest(t, login.Token, `"other"`, "99999999999999999999//"); got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
				t.Errorf("answered %d: %s", got.code, got.body)
			}
		})
	}
}

func TestARevisionIsRead(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	for _, seen := range []string{"x", "1/2", "1/2/3/4/5", strings.Repeat("1", 200)} {
		if got := r.newest(t, login.Token, "", seen); got.code != http.StatusBadRequest {
			t.Errorf("revision %q is answered %d", seen, got.code)
		}
	}
}

// TestACheckpointSendsNoOrders: the next number comes beside them.
func TestACheckpointSendsNoOrders(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	first := r.newest(t, login.Token, "", "")
	if o := first.orders(t); o.NextCheckpoint != 0 || first.header.Get(protocol.NextCheckpointHeader) != "1" {
		t.Errorf("the next checkpoint is %d in the orders and %q beside them", o.NextCheckpoint, first.header.Get(protocol.NextCheckpointHeader))
	}
	if got := r.post(t, login.Token, reports.New(1, 1, reports.Taken(1, protocol.Valid))); got.code != http.StatusOK {
		t.Fatalf("answered %d: %s", got.code, got.body)
	}
	var again answer
	until(t, "the cache has the checkpoint", func() bool {
		again = r.newest(t, login.Token, first.header.Get("ETag"), first.header.Get(protocol.RevisionHeader))
		return again.code != http.StatusNotModified || again.header.Get(protocol.NextCheckpointHeader) == "2"
	})
	if again.code != http.StatusNotModified {
		t.Errorf("a checkpoint sends the orders again: %d %s", again.code, again.body)
	}
	if got := r.newest(t, login.Token, "", ""); got.header.Get(protocol.NextCheckpointHeader) != "2" {
		t.Errorf("the next checkpoint is %q", got.header.Get(protocol.NextCheckpointHeader))
	}
}

// TestAWatchdogOfAnotherVersionIsRefused: it would misread its orders, or wait for fields that nobody sends.
func TestAWatchdogOfAnotherVersionIsRefused(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	for _, query := range []string{"", "?version=", "?version=1", "?version=3", "?version=x" + strings.Repeat("x", 1<<10)} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+protocol.OrdersPath+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := r.do(t, login.Token, request)
		if got.code != http.StatusBadRequest || !strings.Contains(string(got.body), "this manager gives version 2") || len(got.body) > 300 {
			t.Errorf("a watchdog that asks %.20q is answered %d: %s", query, got.code, got.body)
		}
	}
}

// TestAPromptIsToldOnce: however many tasks there are.
func TestAPromptIsToldOnce(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	project := env.Project(t)
	prompts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "prompts"}, Data: map[string]string{"login": strings.Repeat("x", 100<<10)}}
	if err := env.Client.Create(t.Context(), prompts); err != nil {
		t.Fatal(err)
	}
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "login"}, Spec: v1alpha1.FeatureSpec{
		PromptFrom: &v1alpha1.PromptSource{ConfigMapKeyRef: v1alpha1.ConfigMapKeyRef{Name: "prompts", Key: "login"}},
		Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"}, Agent: v1alpha1.Agent{Runtime: "command", Image: "a", Command: []string{"a"}},
		Plan: &v1alpha1.Plan{Milestones: []v1alpha1.Milestone{{Name: "a"}, {Name: "b"}}},
	}}
	for i := range f.Spec.Plan.Milestones {
		for n := range 60 {
			f.Spec.Plan.Milestones[i].Tasks = append(f.Spec.Plan.Milestones[i].Tasks, v1alpha1.Task{Name: "t" + strings.Repeat("x", n)})
		}
	}
	if err := env.Client.Create(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	login := attempt.Start(t, env, f)
	got := r.newest(t, login.Token, "", "")
	if o := got.orders(t); len(o.Prompt) != 100<<10 || len(o.Tasks) != 120 || len(got.body) > 120<<10 {
		t.Errorf("%d bytes of orders for %d tasks", len(got.body), len(o.Tasks))
	}
}

// TestPollsShareAnEncoding: what is told to many is encoded once, and what is remembered is bounded in bytes.
func TestPollsShareAnEncoding(t *testing.T) {
	b, err := newBodies()
	if err != nil {
		t.Fatal(err)
	}
	var encoded atomic.Int32
	begun, goOn := make(chan struct{}, 64), make(chan struct{})
	b.encode = func(now sight) ([]byte, error) {
		encoded.Add(1)
		begun <- struct{}{}
		<-goOn
		if now.tag == "bad" {
			return nil, errors.New("too large")
		}
		return make([]byte, protocol.MaxOrdersBytes), nil
	}
	var polls sync.WaitGroup
	for range 32 {
		polls.Go(func() {
			if body, err := b.of(t.Context(), sight{tag: "same"}); err != nil || len(body) != protocol.MaxOrdersBytes {
				t.Errorf("%d bytes, %v", len(body), err)
			}
		})
	}
	<-begun
	close(goOn)
	polls.Wait()
	if _, err := b.of(t.Context(), sight{tag: "same"}); err != nil || encoded.Load() != 1 {
		t.Errorf("encoded %d times, %v", encoded.Load(), err)
	}
	if _, err := b.of(t.Context(), sight{tag: "bad"}); err == nil {
		t.Error("an error is swallowed")
	}
	for n := range 20 {
		if _, err := b.of(t.Context(), sight{tag: strings.Repeat("x", n+1)}); err != nil {
			t.Fatal(err)
		}
	}
	if b.size > maxBodies || b.memory.Len() != maxBodies/protocol.MaxOrdersBytes {
		t.Errorf("%d bytes of %d bodies are remembered", b.size, b.memory.Len())
	}
}

// regulated makes a global policy for the projects whose namespaces have the label example.com/regulated.
func regulated(t *testing.T) {
	t.Helper()
	p := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, GenerateName: "regulated-"}, Spec: v1alpha1.SupervisorPolicySpec{
		NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"example.com/regulated": "true"}},
		Overrides:         &v1alpha1.Rules{Paths: &v1alpha1.PathRules{Protected: []string{"regulated/**"}}},
	}}
	if err := env.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), p) })
}

// label a namespace.
func label(t *testing.T, namespace, key, value string) {
	t.Helper()
	o := identity.Namespace()
	o.Name = namespace
	body := `{"metadata":{"labels":{"` + key + `":"` + value + `"}}}`
	if err := env.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		t.Fatal(err)
	}
}
