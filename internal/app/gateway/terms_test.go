// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/compose"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// echo answers with what it was asked, in the form of an answer without a word.
func echo(w http.ResponseWriter, r *http.Request) {
	answer := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer["type"], answer["content"], answer["stop_reason"] = "message", []any{}, "max_tokens"
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// backend with two models.
func backend(t *testing.T, answer http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	configure(t, fmt.Sprintf("backends:\n- name: main\n  dialects: [anthropic]\n  baseURL: %s\n  models: [{name: large}, {name: small}]\n", server.URL))
}

// ask for a model in a task; what the backend was asked comes back.
func (g *gateway) ask(t *testing.T, token, task string) (status int, model string, parts compose.Parts, message string) {
	t.Helper()
	status, text := g.asks(t, token, task, `{"model":"any","system":"Code.","messages":[]}`)
	var sent struct{ Model, System string }
	if err := json.Unmarshal([]byte(text), &sent); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	parts, composed := compose.Extract(sent.System)
	if !composed {
		parts.Rest = sent.System
	}
	return status, sent.Model, parts, text
}

// asks for an answer to a request of the Messages API, with a role for a call of the watchdog itself.
func (g *gateway) asks(t *testing.T, token, task, body string, role ...string) (status int, text string) {
	t.Helper()
	status, text, _ = g.asksFor(t, token, task, body, role...)
	return status, text
}

// asksFor is asks with the ID of the call if the answer says it.
func (g *gateway) asksFor(t *testing.T, token, task, body string, role ...string) (status int, text, call string) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(g.rotator.Bundle())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: protocol.GatewayService + "." + kubetest.SystemNamespace + ".svc", MinVersion: tls.VersionTLS13}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+g.address+"/anthropic/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if task != "" {
		request.Header.Set(dialect.TaskHeader, task)
		request.Header.Set(dialect.TurnHeader, "12")
	}
	for _, r := range role {
		request.Header.Set(dialect.RoleHeader, r)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(read), answer.Header.Get(protocol.CallHeader)
}

// removed when the test ends: what it makes in the system namespace is there for all tests.
func removed(t *testing.T, object client.Object) {
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(env.Client.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
			t.Error(err)
		}
	})
}

// put makes a template with a content that is in force.
func put(t *testing.T, namespace, name string, in v1alpha1.TemplateSpec) *v1alpha1.Template {
	t.Helper()
	tmpl := &v1alpha1.Template{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: in}
	if err := env.Client.Create(t.Context(), tmpl); err != nil {
		t.Fatal(err)
	}
	removed(t, tmpl)
	tmpl.Status.InForce = &v1alpha1.TemplateContent{Direction: in.Direction, Order: in.Order, Text: ptr.Deref(in.Text, ""), AnswerChecks: in.AnswerChecks}
	if err := env.Client.Status().Update(t.Context(), tmpl); err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func input(order int32, text string) v1alpha1.TemplateSpec {
	return v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionInput, Order: order, Text: ptr.To(text)}
}

// TestSUP4TemplatesArePinned: a task keeps the templates and models that it began with, and the next task has those of then.
func TestSUP4TemplatesArePinned(t *testing.T) {
	backend(t, echo)
	options := []string{"--ledger=sqlite://" + filepath.Join(t.TempDir(), "ledger.db")}
	g := start(t, options...)
	if err := g.rotator.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	until := func(what string, done func() bool) {
		t.Helper()
		gomega.NewWithT(t).Eventually(done, 60*time.Second, 20*time.Millisecond).Should(gomega.BeTrue(), what)
	}
	until("it is ready", g.ready)
	project := env.Project(t)
	login := attempt.Start(t, env, attempt.Feature(t, env, project, "login"))
	until("the pod is known", func() bool { status, _, _, _ := g.ask(t, login.Token, ""); return status == http.StatusOK })
	want := func(task, model string, parts compose.Parts) {
		t.Helper()
		if status, gotModel, got, text := g.ask(t, login.Token, task); status != http.StatusOK || gotModel != model || got != parts {
			t.Errorf("task %q: %d, model %q, %+v; want model %q, %+v: %s", task, status, gotModel, got, model, parts, text)
		}
	}
	rest := compose.Parts{Rest: "Code."}
	want("plain", "large", rest)

	put(t, kubetest.SystemNamespace, "z-first", input(-1, "Be kind."))
	put(t, kubetest.SystemNamespace, "a-second", input(3, "Be brief."))
	put(t, project, "house", input(0, "Use tabs."))
	put(t, project, "answers", v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionOutput, Text: ptr.To("<{{OUTPUT}}>")})
	put(t, env.Project(t), "foreign", input(0, "Not here."))
	broken := put(t, project, "b-broken", input(0, "Never good."))
	broken.Status.InForce = nil
	if err := env.Client.Status().Update(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "models"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Models: []v1alpha1.ModelRef{{Role: "primary", Backend: "main", Model: "small"}}},
	}}
	if err := env.Client.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	composed := compose.Parts{Global: "Be kind.\n\nBe brief.", Project: "Use tabs.", Rest: "Code."}
	until("the cache has them", func() bool {
		_, model, parts, _ := g.ask(t, login.Token, "")
		return model == "small" && parts == composed
	})
	want("plain", "large", rest)
	want("next", "small", composed)
	if err := env.Client.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	until("the cache has it", func() bool { _, model, _, _ := g.ask(t, login.Token, ""); return model == "large" })
	want("next", "small", composed)
	want("last", "large", composed)

	// A gateway that starts anew goes on with what the ledger has.
	g.End(t)
	g = start(t, options...)
	if err := g.rotator.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	until("it is ready again", g.ready)
	until("the pod is known again", func() bool { status, _, _, _ := g.ask(t, login.Token, ""); return status == http.StatusOK })
	want("plain", "large", rest)
	want("next", "small", composed)
	g.wantTurns(t, login.Feature)

	// A project alone cannot switch it off; with a global policy that does, it can.
	off := func(namespace string) *v1alpha1.SupervisorPolicy {
		t.Helper()
		p := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "off"}, Spec: v1alpha1.SupervisorPolicySpec{
			Priority: 1, Defaults: &v1alpha1.Rules{Supervision: &v1alpha1.SupervisionRules{Enabled: ptr.To(false)}, Models: []v1alpha1.ModelRef{{Role: "primary", Backend: "main", Model: "small"}}},
		}}
		if err := env.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		removed(t, p)
		return p
	}
	off(project)
	until("the cache has it", func() bool { _, model, _, _ := g.ask(t, login.Token, ""); return model == "small" })
	want("", "small", composed)
	off(kubetest.SystemNamespace)
	until("it is off", func() bool { _, _, parts, _ := g.ask(t, login.Token, ""); return parts == rest })
	want("next", "small", composed)

	// More than a request may carry is refused, and says so.
	half := strings.Repeat("x", compose.MaxText)
	for i := range 5 {
		put(t, project, fmt.Sprintf("huge-%d", i), input(0, half))
	}
	if err := env.Client.Delete(t.Context(), &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "off"}}); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Delete(t.Context(), &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: "off"}}); err != nil {
		t.Fatal(err)
	}
	until("there is too much", func() bool {
		status, _, _, text := g.ask(t, login.Token, "")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "the Input templates of scope project have")
	})
	want("next", "small", composed)
}

// turns asks as the manager of a namespace does.
func (g *gateway) turns(t *testing.T, account, audience, query string) (int, []protocol.Turn) {
	t.Helper()
	code, text := g.asked(t, account, audience, protocol.TurnsPath, query)
	var found protocol.Turns
	if err := json.Unmarshal(text, &found); err != nil && code == http.StatusOK {
		t.Fatal(err)
	}
	return code, found.Turns
}

// asked by a service account for something of the ledger.
func (g *gateway) asked(t *testing.T, account, audience, path, query string) (int, []byte) {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: ptr.To[int64](600)}}
	holder := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.SystemNamespace, Name: account}}
	if err := client.IgnoreAlreadyExists(env.Client.Create(t.Context(), holder.DeepCopy())); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.SubResource("token").Create(t.Context(), holder, request); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(g.rotator.Bundle())
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: protocol.GatewayService + "." + kubetest.SystemNamespace + ".svc", MinVersion: tls.VersionTLS13}}
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+g.ledger+path+"?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask.Header.Set("Authorization", "Bearer "+request.Status.Token)
	answer, err := transport.RoundTrip(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, text
}

// wantTurns: the manager, and nobody else, reads what was recorded before and after a restart.
func (g *gateway) wantTurns(t *testing.T, f *v1alpha1.Feature) {
	t.Helper()
	query := "feature=" + string(f.UID)
	code, all := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, query)
	if code != http.StatusOK || len(all) < 5 {
		t.Fatalf("%d: %+v", code, all)
	}
	first := slices.IndexFunc(all, func(x protocol.Turn) bool { return x.Task == "next" })
	if x := all[first]; x.Turn != 12 || x.Attempt != 1 || x.Model != "small" || x.ModelAsked != "any" || x.Status != http.StatusOK || x.Templates == "" || x.Answer != "" {
		t.Errorf("the first turn of the task is %+v", x)
	}
	code, one := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, query+"&call="+strconv.FormatInt(all[first].Sequence, 10))
	if code != http.StatusOK || len(one) != 1 || !strings.Contains(one[0].Answer, "Be kind.") || one[0].Sequence != all[first].Sequence {
		t.Errorf("one turn: %d %+v", code, one)
	}
	if code, some := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, query+"&after=1&limit=2"); code != http.StatusOK || len(some) != 2 || some[0].Sequence != 2 {
		t.Errorf("some turns: %d %+v", code, some)
	}
	for name, tc := range map[string]struct {
		account, audience, query string
		want                     int
	}{
		"another account":  {"default", protocol.LedgerAudience, query, http.StatusUnauthorized},
		"another audience": {protocol.ManagerAccount, "https://kubernetes.default.svc", query, http.StatusUnauthorized},
		"no Feature":       {protocol.ManagerAccount, protocol.LedgerAudience, "", http.StatusBadRequest},
		"no such turn":     {protocol.ManagerAccount, protocol.LedgerAudience, query + "&call=9999", http.StatusNotFound},
		"no number":        {protocol.ManagerAccount, protocol.LedgerAudience, query + "&after=x", http.StatusBadRequest},
		"another Feature":  {protocol.ManagerAccount, protocol.LedgerAudience, "feature=other", http.StatusOK},
	} {
		if code, found := g.turns(t, tc.account, tc.audience, tc.query); code != tc.want || len(found) != 0 {
			t.Errorf("%s: %d %+v, want %d", name, code, found, tc.want)
		}
	}
}
