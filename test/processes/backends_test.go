// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestABackendThatComesLate: a Feature waits until the gateway has a backend for it in force, starts within 2 s after that was applied, and
// spends no retry. What a gateway refuses is said in its condition. A gateway that is gone starts none.
func TestABackendThatComesLate(t *testing.T) {
	start(t, "manager", "--image=tidewaiter:test", "--intake-bind-address="+addresses.Free(), "--metrics-bind-address=0")
	g := start(t, "gateway", "--proxy-bind-address="+addresses.Free(), "--metrics-bind-address=0", "--ledger-bind-address="+addresses.Free(), "--ledger=sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	project := env.Project(t)
	feature := func(name, runtime string) *v1alpha1.Feature {
		f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}, Spec: v1alpha1.FeatureSpec{
			Repository: v1alpha1.Repository{URL: "https://git.example.com/" + name + ".git"}, Prompt: "Work.",
			Agent: v1alpha1.Agent{Runtime: runtime, Image: "example.com/agent:1"},
		}}
		if err := env.Client.Create(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	until := func(f *v1alpha1.Feature, what string, holds func(accepted metav1.Condition) bool) {
		t.Helper()
		gomega.NewWithT(t).Eventually(func() string {
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(f), f); err != nil {
				return err.Error()
			}
			c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionAccepted)
			if c != nil && holds(*c) {
				return what
			}
			return fmt.Sprintf("%+v", f.Status)
		}, 60*time.Second, 10*time.Millisecond).Should(gomega.Equal(what))
	}
	waits := func(c metav1.Condition) bool { return c.Reason == v1alpha1.ReasonModelNotAvailable }
	config := func(dialect, more string) string {
		return fmt.Sprintf("backends:\n- {name: main, dialects: [%s], baseURL: \"https://api.example.com\", models: [{name: large}]%s}\n", dialect, more)
	}
	// Each Feature waits with the configuration that the one before started with: the manager knows it.
	runtimes := []struct{ name, dialect string }{{"claude-code", "anthropic"}, {"codex", "openai-responses"}}
	configure(t, config("openai-chat", ""))
	var took []time.Duration
	for round := range 5 {
		runtime := runtimes[round%2]
		f := feature(fmt.Sprint("late-", round), runtime.name)
		until(f, "it waits", waits)
		began := time.Now()
		configure(t, config(runtime.dialect, ""))
		until(f, "it starts", func(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue && f.Status.Attempt == 1 })
		took = append(took, time.Since(began).Round(time.Millisecond))
		if f.Status.Failures != 0 || f.Status.Unserved != nil {
			t.Errorf("failures %d, unserved %+v", f.Status.Failures, f.Status.Unserved)
		}
	}
	t.Logf("from the backend's ConfigMap to attempt 1: %v", took)
	if slices.Min(took) > 2*time.Second { // one is enough: the machine may be busy
		t.Errorf("a Feature starts %v after its backend was applied, want 2 s at the most", took)
	}
	project = env.Project(t) // as many agents run in the other one as may by default
	f := feature("refused", "codex")
	until(f, "it waits", waits)
	configure(t, config("openai-responses", ", kind: mystery"))
	until(f, "it says what is wrong", func(c metav1.Condition) bool {
		return waits(c) && containsAll(c.Message, "the last good one stays in force", `backends[0].kind: "mystery"`)
	})
	configure(t, config("openai-responses", ", key: main"))
	until(f, "it says which key is missing", func(c metav1.Condition) bool { return waits(c) && containsAll(c.Message, `the entry "main"`) })
	keep(t, map[string]string{"main": "secret-of-main"})
	until(f, "it starts with its key", func(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue && f.Status.Attempt == 1 })
	if text := announced(t); !containsAll(text, "large") || containsAll(text, "secret-of-main") || containsAll(text, "api.example.com") {
		t.Errorf("said: %s", text)
	}
	g.End(t)
	if text := announced(t); containsAll(text, protocol.InForcePrefix) {
		t.Errorf("said by a gateway that is gone: %s", text)
	}
	f = feature("nobody", "codex")
	until(f, "it is not started", func(metav1.Condition) bool {
		c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded)
		return c != nil && c.Reason == v1alpha1.ReasonSystemNotReady && f.Status.Attempt == 0
	})
}

// announced is what gateways have said on their Lease.
func announced(t *testing.T) string {
	t.Helper()
	var lease coordinationv1.Lease
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: kubetest.SystemNamespace, Name: protocol.GatewayLease}, &lease); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(lease.Annotations)
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// configure the gateways with a text, until the test ends.
func configure(t *testing.T, text string) {
	t.Helper()
	apply(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: protocol.BackendsConfigMap}, Data: map[string]string{protocol.BackendsKey: text}})
}

// keep keys of backends, until the test ends.
func keep(t *testing.T, keys map[string]string) {
	t.Helper()
	apply(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: protocol.KeysSecret}, StringData: keys})
}

func apply(t *testing.T, o client.Object) {
	t.Helper()
	copied := o.DeepCopyObject().(client.Object)
	err := env.Client.Create(t.Context(), copied)
	switch {
	case err == nil:
		t.Cleanup(func() {
			if err := env.Client.Delete(context.WithoutCancel(t.Context()), copied); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
	case apierrors.IsAlreadyExists(err):
		err = env.Client.Update(t.Context(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
}
