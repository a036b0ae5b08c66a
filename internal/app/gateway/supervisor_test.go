// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
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
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
)

// TestRRouteCallsOfTheWatchdogItself: the model of the role supervisor answers, or the primary one. No template is before such a call, no rule is for its
// answer, and the ledger has it by its role, in no task.
func TestRRouteCallsOfTheWatchdogItself(t *testing.T) {
	backend(t, echo)
	g := start(t, "--ledger=sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	if err := g.rotator.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	until := func(what string, done func() bool) {
		t.Helper()
		gomega.NewWithT(t).Eventually(done, 60*time.Second, 20*time.Millisecond).Should(gomega.BeTrue(), what)
	}
	until("it is ready", g.ready)
	project := env.Project(t)
	put(t, project, "house", input(0, "Use tabs."))
	put(t, project, "answers", v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionOutput, Text: ptr.To("<{{OUTPUT}}>"), AnswerChecks: v1alpha1.AnswerChecks{RequiredSections: []string{"Summary"}}})
	login := attempt.Start(t, env, attempt.Feature(t, env, project, "login"))
	const question = `{"model":"primary","system":"Plan.","messages":[{"role":"user","content":"x"}]}`
	ask := func() string {
		status, text := g.asks(t, login.Token, "", question, policy.RoleSupervisor)
		return fmt.Sprint(status, text)
	}
	want := func(model string) func() bool {
		return func() bool {
			text := ask()
			return strings.HasPrefix(text, "200") && strings.Contains(text, `"model":"`+model+`"`) && strings.Contains(text, `"system":"Plan."`)
		}
	}
	until("the primary model answers", want("large"))
	until("agents get the template", func() bool { _, _, parts, _ := g.ask(t, login.Token, "form"); return parts.Project == "Use tabs." })
	if err := env.Client.Create(t.Context(), &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "models"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Models: []v1alpha1.ModelRef{{Role: policy.RoleSupervisor, Backend: "main", Model: "small"}}},
	}}); err != nil {
		t.Fatal(err)
	}
	until("the supervisor's model answers", want("small"))
	if _, model, _, text := g.ask(t, login.Token, "form"); model != "large" {
		t.Errorf("the agent is answered by %q: %s", model, text)
	}
	if status, text := g.asks(t, login.Token, "", question, "owner"); status != http.StatusBadRequest || !strings.Contains(text, `has \"owner\": the gateway knows supervisor`) {
		t.Errorf("another role: %d %s", status, text)
	}

	_, _, call := g.asksFor(t, login.Token, "", question, policy.RoleSupervisor)
	if _, _, other := g.asksFor(t, login.Token, "form", question); call == "" || other != "" {
		t.Errorf("the watchdog's call is %q, and the agent hears of %q", call, other)
	}
	code, turns := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, fmt.Sprintf("feature=%s&limit=%d", login.Feature.UID, protocol.MaxTurns))
	if code != http.StatusOK {
		t.Fatalf("read the turns: %d", code)
	}
	roles := map[string]int{}
	named := false
	for _, turn := range turns {
		named = named || turn.ID == call && turn.Role == policy.RoleSupervisor
		roles[turn.Role+" "+turn.Task+" "+turn.Model]++
		if turn.Role == policy.RoleSupervisor && turn.Templates != "" {
			t.Errorf("a template was before %+v", turn)
		}
	}
	if !named {
		t.Errorf("the ledger has no call %q of the watchdog", call)
	}
	if roles["supervisor  large"] == 0 || roles["supervisor  small"] == 0 || roles["primary form large"] == 0 {
		t.Errorf("turns by role, task and model: %v", roles)
	}
}
