// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestSUP5GlobalAndProjectTemplates: texts and checks of both scopes count, the global text is the outer one, and a task keeps what it
// began with. A project alone lifts nothing; with a global policy that does, it can. What is audited alone passes.
func TestSUP5GlobalAndProjectTemplates(t *testing.T) {
	done := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","model":"large","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	}
	backend(t, done)
	g := start(t, "--ledger=sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	if err := g.rotator.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	project := env.Project(t)
	login := attempt.Start(t, env, attempt.Feature(t, env, project, "login"))
	answered := func(task string) string {
		_, _, _, text := g.ask(t, login.Token, task)
		return text
	}
	until := func(what, task, text string) {
		t.Helper()
		gomega.NewWithT(t).Eventually(func() string { return answered(task) }, 60*time.Second, 20*time.Millisecond).Should(gomega.ContainSubstring(text), what)
	}
	gomega.NewWithT(t).Eventually(g.ready, 60*time.Second, 20*time.Millisecond).Should(gomega.BeTrue())
	until("the pod is known", "", `"text":"Done."`)

	output := func(text string, checks v1alpha1.AnswerChecks) v1alpha1.TemplateSpec {
		spec := v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionOutput, AnswerChecks: checks}
		if text != "" {
			spec.Text = ptr.To(text)
		}
		return spec
	}
	put(t, kubetest.SystemNamespace, "answers", output("G {{OUTPUT}}", v1alpha1.AnswerChecks{}))
	until("the global text", "", `"text":"G Done."`)
	own := put(t, project, "answers", output("P {{OUTPUT}}", v1alpha1.AnswerChecks{}))
	until("both texts", "", `"text":"G P Done."`)
	until("a task", "first", `"text":"G P Done."`)
	if err := env.Client.Delete(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	until("the global text again", "", `"text":"G Done."`)
	until("the task keeps what it began with", "first", `"text":"G P Done."`)

	put(t, kubetest.SystemNamespace, "checks", output("", v1alpha1.AnswerChecks{RequiredSections: []string{"Summary"}, AutoCorrect: &v1alpha1.AutoCorrect{AddMissingSections: true}}))
	until("a global check", "", `"text":"G Done.\n\n## Summary"`)
	put(t, project, "checks", output("", v1alpha1.AnswerChecks{ForbiddenPhrases: []string{"done"}}))
	until("a check of the project", "", `forbidden phrase`)
	_, all := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, "feature="+string(login.Feature.UID)+"&limit=500")
	last := all[len(all)-1]
	if last.Reason != protocol.ReasonAnswerRejected || len(last.Violations) != 2 || last.Violations[0].Severity != "Minor" || last.Violations[1].Severity != "Major" {
		t.Errorf("the last turn: %+v", last)
	}
	formatted := ""
	for _, turn := range all {
		_, one := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, "feature="+string(login.Feature.UID)+"&call="+strconv.FormatInt(turn.Sequence, 10))
		if len(one) == 1 && one[0].Text == "Done." && one[0].Formatted != "" {
			formatted += one[0].Formatted + "\n"
		}
	}
	if !strings.Contains(formatted, "P Done.") || !strings.Contains(formatted, "## Summary") {
		t.Errorf("formatted texts in the ledger: %s", formatted)
	}

	lift := func(namespace, name string, e v1alpha1.Enforcement, priority int32, r v1alpha1.SupervisionRules) {
		p := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.SupervisorPolicySpec{
			Enforcement: e, Priority: priority, Defaults: &v1alpha1.Rules{Models: []v1alpha1.ModelRef{{Role: "primary", Backend: "main", Model: "small"}}, Supervision: &r},
		}}
		if err := env.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		removed(t, p)
	}
	both := func(name string, e v1alpha1.Enforcement, priority int32, r v1alpha1.SupervisionRules, alone, text string) {
		t.Helper()
		lift(project, name, e, priority, r)
		until(name+", a project alone", "", alone)
		lift(kubetest.SystemNamespace, name, e, priority, r)
		until(name+", with a global policy", "", text)
	}
	put(t, project, "own", output("P {{OUTPUT}}", v1alpha1.AnswerChecks{}))
	both("audit", v1alpha1.EnforcementAudit, 1, v1alpha1.SupervisionRules{MaxRetries: ptr.To[int32](0)}, `"text":"G P Done."`, `"text":"G P Done."`)
	both("replace", v1alpha1.EnforcementAudit, 2, v1alpha1.SupervisionRules{AllowOutputReplacement: ptr.To(true)}, `"text":"G P Done."`, `"text":"P Done."`)
	both("lift", v1alpha1.EnforcementEnforce, 3, v1alpha1.SupervisionRules{
		AllowRawOutput: ptr.To(true), RequireFormatValidation: ptr.To(false), MaxRetries: ptr.To[int32](0),
	}, `0 retries did not help`, `"text":"Done."`)
}
