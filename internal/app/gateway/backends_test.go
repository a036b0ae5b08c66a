// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

const oneBackend = `
backends:
- name: main
  dialects: [anthropic]
  baseURL: https://api.example.com
  key: main
  models: [{name: large, contextWindow: 200000}]
`

// configure the gateways with a text, until the test ends.
func configure(t *testing.T, text string) {
	t.Helper()
	apply(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: protocol.BackendsConfigMap}, Data: map[string]string{protocol.BackendsKey: text}})
}

// keep keys of backends, until the test ends.
func keep(t *testing.T, keys map[string]string) {
	t.Helper()
	apply(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: kubetest.SystemNamespace, Name: protocol.KeysSecret,
		// As kubectl apply leaves it.
		Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: fmt.Sprint(keys)},
	}, StringData: keys})
}

func apply(t *testing.T, o client.Object) {
	t.Helper()
	copied := o.DeepCopyObject().(client.Object)
	if err := errors.Join(client.IgnoreNotFound(env.Client.Delete(t.Context(), copied)), env.Client.Create(t.Context(), o)); err != nil {
		t.Fatal(err)
	}
	removed(t, o)
}

// TestBackends: a broken configuration takes nothing away.
func TestBackends(t *testing.T) {
	var log bytes.Buffer
	var told []map[string]bool
	var said []coremodels.InForce
	b := newBackends(env.Client, kubetest.SystemNamespace, slog.New(slog.NewTextHandler(&log, nil)), func(table *modelserver.Table) {
		if table == nil {
			told = append(told, nil)
			return
		}
		told = append(told, table.Ready())
	}, func(in coremodels.InForce) { said = append(said, in) })
	write := func(text string) { configure(t, text) }
	broken := map[string]bool(nil)
	for _, step := range []struct {
		name string
		do   func()
		want map[string]bool
		same bool // nothing new is told
		log  string
	}{
		{"nothing", func() {}, map[string]bool{}, false, "Backends"},
		{"no change", func() {}, nil, true, ""},
		{"a backend", func() { write(oneBackend) }, map[string]bool{"main": false}, false, "Backends"},
		{"its key", func() {
			keep(t, map[string]string{"main": "secret-of-main\n"})
		}, map[string]bool{"main": true}, false, "Backends"},
		{"an unknown field", func() { write(oneBackend + "  colour: red\n") }, broken, false, "colour"},
		{"still broken", func() {}, nil, true, ""},
		{"a mistake", func() { write(strings.Replace(oneBackend, "https://", "ftp://", 1)) }, broken, false, "backends[0].baseURL"},
		{"a bad certificate", func() { write(oneBackend + "  ca: nonsense\n") }, broken, false, "backends[0].ca"},
		{"fixed", func() { write(strings.Replace(oneBackend, "name: main", "name: other", 1)) }, map[string]bool{"other": true}, false, "Backends"},
		{"a model whose window is not known", func() {
			write(strings.Replace(oneBackend, "models: [", "models: [{name: small}, ", 1))
		}, map[string]bool{"main": true}, false, "models=[main/small]"},
		{"a key that is too long", func() {
			keep(t, map[string]string{"main": "secret-of-main" + strings.Repeat("x", maxKey)})
		}, broken, false, "and the limit is"},
		{"the one before once more", func() { keep(t, map[string]string{"main": "secret-of-main\n"}) }, map[string]bool{"main": true}, false, "Backends"},
		{"too long again", func() {
			keep(t, map[string]string{"main": "secret-of-main" + strings.Repeat("x", maxKey)})
		}, broken, false, "and the limit is"},
		{"none again", func() { configure(t, "") }, broken, false, "and the limit is"},
		{"no key", func() { keep(t, nil) }, map[string]bool{}, false, "Backends"},
	} {
		log.Reset()
		told = nil
		before := b.table.Load()
		step.do()
		b.load(t.Context())
		if step.same {
			if len(told) != 0 || log.Len() != 0 || b.table.Load() != before {
				t.Errorf("%s: told %v, %s", step.name, told, log.String())
			}
			continue
		}
		if diff := cmp.Diff([]map[string]bool{step.want}, told); diff != "" || !strings.Contains(log.String(), step.log) {
			t.Errorf("%s: %s (-want +got):\n%s", step.name, log.String(), diff)
		}
		if changed := b.table.Load() != before; changed == (step.want == nil) {
			t.Errorf("%s: the table changed: %v", step.name, changed)
		}
		if strings.Contains(log.String()+fmt.Sprint(said), "secret-of-main") {
			t.Errorf("%s: the log has a key, or what is said has: %s, %+v", step.name, log.String(), said)
		}
		if last := said[len(said)-1]; (last.Problem != "") != (step.want == nil) || step.want == nil && !strings.Contains(last.Problem, step.log) {
			t.Errorf("%s: said %+v", step.name, last)
		}
	}
}

// TestBackendsAreFollowed: a gateway with the rights that it is installed with takes backends and keys over as they come, change and go,
// reads no other ConfigMap or Secret, and says no key.
func TestBackendsAreFollowed(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(provider.Close)
	g := start(t)
	if err := g.rotator.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	gomega.NewWithT(t).Eventually(g.ready, 60*time.Second, 20*time.Millisecond).Should(gomega.BeTrue())
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	until := func(status int, text string) {
		t.Helper()
		began := time.Now()
		gomega.NewWithT(t).Eventually(func() string {
			got, _, _, message := g.ask(t, login.Token, "")
			return fmt.Sprint(got, " ", message)
		}, 60*time.Second, 20*time.Millisecond).Should(gomega.And(gomega.HavePrefix(fmt.Sprint(status)), gomega.ContainSubstring(text)))
		t.Logf("%d %s after %s", status, text, time.Since(began).Round(time.Millisecond))
	}
	until(http.StatusServiceUnavailable, "no backend of the gateway speaks the dialect")
	plain := func(model string) string {
		return fmt.Sprintf("backends:\n- {name: main, dialects: [anthropic], baseURL: %q, models: [{name: %s}]}\n", provider.URL, model)
	}
	configure(t, plain("large"))
	until(http.StatusOK, `"model":"large"`)
	change := func(text string) {
		t.Helper()
		var config corev1.ConfigMap
		if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: kubetest.SystemNamespace, Name: protocol.BackendsConfigMap}, &config); err != nil {
			t.Fatal(err)
		}
		config.Data[protocol.BackendsKey] = text
		if err := env.Client.Update(t.Context(), &config); err != nil {
			t.Fatal(err)
		}
	}
	change(plain("small"))
	until(http.StatusOK, `"model":"small"`)
	change(oneBackend)
	until(http.StatusServiceUnavailable, "key")
	keep(t, map[string]string{"main": "secret-of-main"})
	gomega.NewWithT(t).Eventually(g.Log, 60*time.Second, 20*time.Millisecond).Should(gomega.ContainSubstring(`"ready":{"main":true}`))
	if strings.Contains(g.Log(), "secret-of-main") {
		t.Error("the log has a key")
	}
	if err := env.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: protocol.BackendsConfigMap}}); err != nil {
		t.Fatal(err)
	}
	until(http.StatusServiceUnavailable, "no backend of the gateway speaks the dialect")
}
