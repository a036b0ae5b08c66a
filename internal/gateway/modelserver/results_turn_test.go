// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

const withResult = `{"model":"large","tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"Go."},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}]},` +
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":"No such file."}]}]}`

// TestResultsOfToolsAreRecorded: as the policy has it, with the turn whose request they are new in.
func TestResultsOfToolsAreRecorded(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(answering), roomy())
	sum := sha256.Sum256([]byte("No such file."))
	digest := ledger.ToolResult{Call: "toolu_1", Tool: "Bash", Bytes: 13, SHA256: hex.EncodeToString(sum[:]), Failed: true}
	whole := digest
	whole.Text = "No such file."
	asked := 0
	for _, tc := range []struct {
		feature, path string
		want          []ledger.ToolResult
	}{
		{"login", messages, nil}, {"digesting", messages, []ledger.ToolResult{digest}}, {"keeping", messages, []ledger.ToolResult{whole}},
	} {
		if answer, text := w.ask(tc.feature, http.MethodPost, tc.path, withResult); answer.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", answer.StatusCode, text)
		}
		asked++
		w.last(asked)
		turns := w.recorded()
		if diff := cmp.Diff(tc.want, turns[len(turns)-1].Results); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.feature, diff)
		}
	}
}

// TestResultsOfAnAnswerThatIsRejected: the model is asked again, and the turn of its first answer has the results.
func TestResultsOfAnAnswerThatIsRejected(t *testing.T) {
	var asked atomic.Int64
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		text := "wrong"
		if asked.Add(1) > 1 {
			text = "right"
		}
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, `{"type":"message","model":"large","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`, text)
	}), roomy())
	w.answers = answers.Rules{Checks: []answers.Checks{{Phrases: []string{"wrong"}}}, Retries: 1}
	if answer, text := w.ask("keeping", http.MethodPost, messages, withResult); answer.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", answer.StatusCode, text)
	}
	w.last(1)
	var got []int
	for _, turn := range w.recorded() {
		got = append(got, len(turn.Results))
	}
	if diff := cmp.Diff([]int{1, 0}, got); diff != "" {
		t.Errorf("results of each turn (-want +got):\n%s", diff)
	}
}
