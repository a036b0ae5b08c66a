// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestATokenLeavesNoTrace: what an agent and a model say with a token in it is in no line of the log, no header and no record. The tokens look like
// those of GitHub and Anthropic, and are none.
func TestATokenLeavesNoTrace(t *testing.T) {
	const token, key = "ghp_" + "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiO", "sk-ant-api03-" + "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiOx7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jAeUiOx7Kq92mZpL4wVt8sB3nR6AA"
	backend(t, func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ System string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, "cannot be read: "+token, http.StatusBadRequest)
			return
		}
		if strings.Contains(asked.System, "Fail.") {
			http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"`+token+`"}}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"type":"message","model":"large","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
			`{"colour": "`+token+`", "`+key+`": 1}`)
	})
	g := start(t, "--ledger=sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	if err := g.rotator.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	project := env.Project(t)
	login := attempt.Start(t, env, attempt.Feature(t, env, project, "login"))
	gomega.NewWithT(t).Eventually(g.ready, 60*time.Second, 20*time.Millisecond).Should(gomega.BeTrue())
	http1 := g.client(t)
	ask := func(path, task, body string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+g.address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Authorization": {"Bearer " + login.Token}, dialect.TaskHeader: {task}}
		answer, err := http1.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatal(err)
		}
		header := fmt.Sprint(answer.Header, answer.Trailer)
		for _, planted := range []string{token, key} {
			if strings.Contains(header, planted) {
				t.Errorf("%s in %q: the headers have a token: %s", body, task, header)
			}
		}
		return answer.StatusCode, answer.Header.Get(protocol.ReasonHeader)
	}
	const messages = "/anthropic/v1/messages"
	gomega.NewWithT(t).Eventually(func() int {
		status, _ := ask(messages, "known", `{"model":"any","messages":[]}`)
		return status
	}, 60*time.Second, 20*time.Millisecond).Should(gomega.Equal(http.StatusOK), "the pod is known")

	put(t, kubetest.SystemNamespace, "schema", v1alpha1.TemplateSpec{Direction: v1alpha1.DirectionOutput, AnswerChecks: v1alpha1.AnswerChecks{
		JSONSchema: &apiextensionsv1.JSON{Raw: []byte(`{"type":"object","properties":{"colour":{"enum":["red"]}},"additionalProperties":false}`)},
	}})
	gomega.NewWithT(t).Eventually(func() string {
		_, reason := ask(messages, fmt.Sprint("schema-", time.Now().UnixNano()), `{"model":"any","messages":[]}`)
		return reason
	}, 60*time.Second, 20*time.Millisecond).Should(gomega.Equal(protocol.ReasonAnswerRejected), "the schema is in force")
	for n, plant := range []struct{ path, body string }{
		{messages, `{"model":"` + token + `","messages":[]}`},
		{messages, `{"model":"any","messages":[{"role":"` + token + `","content":"` + key + `"}]}`},
		{messages, `{"model":"any","messages":[],"tools":[{"type":"` + token + `","name":"x"}]}`},
		{messages, `{"model":"any","messages":[],"mcp_servers":[{"url":"https://example.com/` + token + `"}]}`},
		{messages, `{"model":"any","messages":[],"` + token + `":1,"` + strings.ToUpper(token) + `":2,"Model":"` + key + `"}`},
		{messages, `{"model":"any","system":"Fail.","messages":[]}`},
		{messages, `{"model":"any","messages":[` + token},
		{messages + "/" + token, `{}`},
		{"/" + token + "?key=" + key, `{}`},
	} {
		if status, reason := ask(plant.path, fmt.Sprint("plant-", n), plant.body); status == http.StatusUnauthorized {
			t.Errorf("%+v: %d %s", plant, status, reason)
		}
	}
	g.connect(t, login.Token, token+".example.com:443")

	query := "feature=" + string(login.Feature.UID)
	_, all := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, query+"&limit=500")
	asked, marks := 0, 0
	for _, turn := range all {
		_, one := g.turns(t, protocol.ManagerAccount, protocol.LedgerAudience, fmt.Sprint(query, "&call=", turn.Sequence))
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), token) || strings.Contains(string(text), key) {
			t.Errorf("a record of the ledger: %s", text)
		}
		marks += strings.Count(string(text), "[redacted: ")
		if turn.ModelAsked == "[redacted: github-pat]" {
			asked++
		}
	}
	if asked == 0 || marks < 5 {
		t.Errorf("%d records of a model that has a token for its name, %d marks: %+v", asked, marks, all)
	}
	for line := range strings.Lines(g.Log()) {
		if strings.Contains(line, token) || strings.Contains(line, key) {
			t.Errorf("the log: %s", line)
		}
	}
	if !strings.Contains(g.Log(), "[redacted: github-pat]") {
		t.Error("the log says nothing of what was planted")
	}
}
