// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
)

// TestResultsOfToolsInTheLedger: what a policy has the ledger keep of results of tools is in the turn that managers read, without secrets; a task keeps
// what it began with, and a list has none of it.
func TestResultsOfToolsInTheLedger(t *testing.T) {
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

	const key = "ghp_" + "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiO" // looks like a token, and is none
	const said = "The key is " + key
	const request = `{"model":"any","system":"Code.","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":[{"type":"text","text":"` + said + `"}]}]}]}`
	// last turn of the Feature, after one more call of a task.
	last := func(task string) []protocol.ToolResult {
		t.Helper()
		if status, text := g.asks(t, login.Token, task, request); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		feature := "feature=" + string(login.Feature.UID)
		_, all := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, feature+"&limit=500")
		newest := all[len(all)-1]
		_, one := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, feature+"&call="+strconv.FormatInt(newest.Sequence, 10))
		if len(one) != 1 || newest.ToolResults != nil || newest.Task != task {
			t.Fatalf("%d turns; in the list: %+v", len(one), newest)
		}
		return one[0].ToolResults
	}
	sum := sha256.Sum256([]byte(said))
	digest := protocol.ToolResult{Call: "toolu_1", Tool: "Read", Bytes: int64(len(said)), SHA256: hex.EncodeToString(sum[:]), Failed: true}
	redacted := digest
	redacted.Text = "The key is [redacted: github-pat]"
	want := func(task string, want ...protocol.ToolResult) {
		t.Helper()
		if diff := cmp.Diff(want, last(task)); diff != "" {
			t.Errorf("task %q (-want +got):\n%s", task, diff)
		}
	}
	want("plain")
	set := func(name, word string, priority int32, model string) {
		t.Helper()
		p := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}, Spec: v1alpha1.SupervisorPolicySpec{
			Priority: priority, Defaults: &v1alpha1.Rules{Ledger: &v1alpha1.LedgerRules{ToolResults: word}, Models: []v1alpha1.ModelRef{{Role: "primary", Backend: "main", Model: model}}},
		}}
		if err := env.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		until("the cache has it", func() bool { _, got, _, _ := g.ask(t, login.Token, ""); return got == model })
	}
	set("digest", "Digest", 1, "small")
	want("digests", digest)
	want("plain")
	set("redacted", "Redacted", 2, "large")
	want("texts", redacted)
	want("digests", digest)

	// A gateway that starts anew goes on with what the ledger has.
	g.End(t)
	g = start(t, options...)
	if err := g.rotator.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	until("it is ready again", g.ready)
	until("the pod is known again", func() bool { status, _, _, _ := g.ask(t, login.Token, ""); return status == http.StatusOK })
	want("texts", redacted)
	want("digests", digest)
	want("plain")
}
