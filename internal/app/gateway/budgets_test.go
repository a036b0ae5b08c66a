// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
)

// twoProjects have a Feature each, whose pods a gateway answers.
func twoProjects(t *testing.T) (g *gateway, login, elsewhere *attempt.Attempt) {
	t.Helper()
	backend(t, echo)
	g = start(t, "--ledger=sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	if err := g.rotator.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	until, answered := eventually(t), g.answers(t)
	until("it is ready", g.ready)
	login = attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	elsewhere = attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	until("the pod is known", answered(login.Token, http.StatusOK))
	until("the other pod is known", answered(elsewhere.Token, http.StatusOK))
	return g, login, elsewhere
}

// eventually gives a function that waits until something holds.
func eventually(t *testing.T) func(what string, done func() bool) {
	return func(what string, done func() bool) {
		t.Helper()
		gomega.NewWithT(t).Eventually(done, 60*time.Second, 50*time.Millisecond).Should(gomega.BeTrue(), what)
	}
}

// answers gives a function that says whether a call with a token is answered with a status.
func (g *gateway) answers(t *testing.T) func(token string, want int) func() bool {
	return func(token string, want int) func() bool {
		return func() bool { status, _, _, _ := g.ask(t, token, "form"); return status == want }
	}
}

// TestBudgetsAreThoseOfNow: a task that is under way is held to the budget that a policy has now, whatever it began with, and the
// refusal names the policy. Another project has its own.
func TestBudgetsAreThoseOfNow(t *testing.T) {
	g, login, elsewhere := twoProjects(t)
	project, other := login.Feature.Namespace, elsewhere.Feature.Namespace
	until, answered := eventually(t), g.answers(t)

	limits := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "limits"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Budget: &v1alpha1.BudgetRules{Project: &v1alpha1.Budget{MaxOutputTokens: ptr.To[int64](100)}}},
	}}
	if err := env.Client.Create(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	until("the budget is held to", answered(login.Token, http.StatusServiceUnavailable))
	_, _, _, text := g.ask(t, login.Token, "form")
	for _, part := range []string{`this month's budget of the project \"` + project + `\"`, "raise budget.project.maxOutputTokens of the SupervisorPolicy (defaults of " + project + "/limits)"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %s", part, text)
		}
	}
	if !answered(elsewhere.Token, http.StatusOK)() {
		t.Error("another project is held to it")
	}
	// A policy that cannot be used lifts no budget, and stops nobody.
	broken := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "broken"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Checks: []v1alpha1.Check{{Name: "odd", CEL: "no such thing", Message: "m"}}},
	}}
	if err := env.Client.Create(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	if !answered(elsewhere.Token, http.StatusOK)() {
		t.Error("a broken policy stops an agent at work")
	}
	limits.Spec.Defaults.Budget.Project.MaxOutputTokens = ptr.To[int64](1_000_000)
	if err := env.Client.Update(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	until("the raised budget is known", answered(login.Token, http.StatusOK))

	// The rate of calls is as much a value of now.
	limits.Spec.Defaults.Budget.CallsPerMinute = ptr.To[int32](1)
	if err := env.Client.Update(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	until("the rate is held to", answered(login.Token, http.StatusTooManyRequests))
	if _, _, _, text = g.ask(t, login.Token, "form"); !strings.Contains(text, "raise budget.callsPerMinute of the SupervisorPolicy (defaults of "+project+"/limits)") {
		t.Errorf("a call that is too fast: %s", text)
	}
	if !answered(elsewhere.Token, http.StatusOK)() {
		t.Error("another project is held to the rate")
	}
	limits.Spec.Defaults.Budget.CallsPerMinute = ptr.To[int32](1_000_000)
	if err := env.Client.Update(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	until("the raised rate is known", answered(login.Token, http.StatusOK))
}

// TestAStoppedFeatureAsksNoModel: while a policy suspends a Feature its calls are refused, also where a rule of that policy cannot be read,
// and they are answered again afterwards. Another project is not stopped.
func TestAStoppedFeatureAsksNoModel(t *testing.T) {
	g, login, elsewhere := twoProjects(t)
	project := login.Feature.Namespace
	until, answered := eventually(t), g.answers(t)

	halt := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "halt"}, Spec: v1alpha1.SupervisorPolicySpec{Suspend: true}}
	if err := env.Client.Create(t.Context(), halt); err != nil {
		t.Fatal(err)
	}
	until("the stop is heard", answered(login.Token, http.StatusServiceUnavailable))
	if _, _, _, text := g.ask(t, login.Token, "form"); !strings.Contains(text, "spec.suspend of the SupervisorPolicy "+project+"/halt is true") {
		t.Errorf("the refusal does not name the policy: %s", text)
	}
	if !answered(elsewhere.Token, http.StatusOK)() {
		t.Error("another project is stopped")
	}
	halt.Spec.Suspend = false
	if err := env.Client.Update(t.Context(), halt); err != nil {
		t.Fatal(err)
	}
	until("calls are answered again", answered(login.Token, http.StatusOK))

	// The budgets of before hold while a rule cannot be read, but not against a stop.
	halt.Spec.Suspend = true
	halt.Spec.Defaults = &v1alpha1.Rules{Checks: []v1alpha1.Check{{Name: "odd", CEL: "no such thing", Message: "m"}}}
	if err := env.Client.Update(t.Context(), halt); err != nil {
		t.Fatal(err)
	}
	until("the stop with a broken rule is heard", answered(login.Token, http.StatusServiceUnavailable))
}

// TestAStopOutlivesAFailedRead: that policies cannot be read for a moment lets no Feature go on that they suspend.
func TestAStopOutlivesAFailedRead(t *testing.T) {
	b, err := newBudgets(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	b.now = func() time.Time { now = now.Add(2 * budgetTime); return now }
	p := pod{feature: &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "project", Name: "login", UID: "login"}}}
	for _, read := range []error{nil, errors.New("the API server does not answer"), errors.New("nor now")} {
		e := policy.Effective{SuspendedBy: []string{"project/halt"}}
		if read != nil {
			e = policy.Effective{}
		}
		a, err := b.of(t.Context(), p, func(context.Context) (policy.Effective, error) { return e, read })
		if err != nil || len(a.suspendedBy) != 1 {
			t.Errorf("%v: suspended by %q, %v", read, a.suspendedBy, err)
		}
	}
}
