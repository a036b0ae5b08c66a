// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/consult"
	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/pod/gatewayclient"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

// thinks is how long the model of a reviewer thinks.
const thinks = 20 * time.Millisecond

// reviewing has the reviewers look one after the other, as at a breakpoint, next to the same calls by themselves, and selects knowledge.
func reviewing(t *testing.T, s scale, b *board.Board) {
	var mu sync.Mutex
	var bodies [][]byte
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		if len(bodies) < len(protocol.Reviewers()) {
			bodies = append(bodies, body)
		}
		mu.Unlock()
		time.Sleep(thinks)
		w.Header().Set("Content-Type", "application/json")
		tool, answer := answerTo(body)
		_, _ = fmt.Fprintf(w, `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t","name":%q,"input":%s}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`, tool, answer)
	}))
	defer server.Close()
	dir := t.TempDir()
	link := gatewayclient.Link{Token: filepath.Join(dir, "token"), CA: filepath.Join(dir, "ca.crt")}
	for name, content := range map[string][]byte{link.Token: []byte("token"), link.CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	desk := consult.New(consult.Options{Gateway: server.URL, Link: link, Log: slog.New(slog.DiscardHandler)})
	scene := breakpointScene()
	var looked, called []time.Duration
	for range s.runs {
		began := time.Now()
		for _, name := range protocol.Reviewers() {
			look(t, desk, scene, name)
		}
		looked = append(looked, time.Since(began))
		began = time.Now()
		for _, body := range bodies {
			post(t, server, body)
		}
		called = append(called, time.Since(began))
	}
	b.Ratio(fmt.Sprintf("review-breakpoint/reviewers=%d", len(protocol.Reviewers())), board.Median(looked), board.Median(called), board.AtMost(1.5))
	selecting(t, s, b)
}

// answerTo is the tool that a question wants called, and what is given to it.
func answerTo(question []byte) (tool, arguments string) {
	switch {
	case bytes.Contains(question, []byte("give_verdict")):
		return "give_verdict", `{"verdict":"Aligned","reason":"It follows the request."}`
	case bytes.Contains(question, []byte("write_documents")):
		return "write_documents", `{"summary":"Nothing.","documents":[]}`
	}
	return "report_findings", `{"summary":"Nothing.","findings":[{"path":"web/f7.go","line":3,"quote":"line 3 of","rule":"naming","description":"Name it","priority":"Low"}]}`
}

// breakpointScene has about as many changes as a watchdog compares line by line.
func breakpointScene() review.Scene {
	s := review.Scene{Request: strings.Repeat("Add a form. ", 100), Task: "page/form", Milestone: "page", Nonce: "aBcDeFgHiJkL"}
	for i := range 150 {
		var diff strings.Builder
		diff.WriteString("@@ -0,0 +1,200 @@\n")
		for n := range 200 {
			fmt.Fprintf(&diff, "+line %d of the file %d\n", n, i)
		}
		s.Changes = append(s.Changes, review.Change{Path: fmt.Sprintf("web/f%d.go", i), Kind: judge.Added, Diff: diff.String(), Size: int64(diff.Len())})
	}
	return s
}

// look asks a reviewer, and decides what comes of its answer.
func look(t *testing.T, desk *consult.Desk, scene review.Scene, name string) {
	r, known := review.Find(name, policy.Effective{})
	if !known {
		t.Fatalf("no reviewer %s", name)
	}
	scene.Reviewer, scene.Writes = r, true
	question := review.Question(scene)
	asked := review.NewAsked(question)
	var answer review.Answer
	_, err := desk.Ask(t.Context(), question, consult.Short, func(arguments json.RawMessage) (objection string) {
		if r.Assesses {
			_, objection = review.ReadVerdict(arguments)
			return objection
		}
		answer, objection = review.Read(r, true, arguments)
		return objection
	})
	if err != nil {
		t.Fatal(err)
	}
	text := func(string) (string, bool) { return strings.Repeat("line 3 of\n", 200), true }
	if kept, _ := review.Keep(r, answer, text, func(string) bool { return false }, 3); len(kept) != len(answer.Findings) || asked.SHA256 == "" {
		t.Fatalf("%s: %d of %d findings are kept", name, len(kept), len(answer.Findings))
	}
}

// post makes the call of a reviewer, with a connection of its own as a reviewer has.
func post(t *testing.T, server *httptest.Server, body []byte) {
	transport := server.Client().Transport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response.Status, err)
	}
}

// selecting chooses from as many documents as there may be, next to reading them.
func selecting(t *testing.T, s scale, b *board.Board) {
	var files []string
	var areas []string
	for i := range knowledge.MaxDocuments {
		files = append(files, fmt.Sprintf("_Last updated by: a user_\n_Status: established_\n_Paths: web/%d/**, **/b*c*d*_\n\n# D%d\n\n## Rules\n\n- %s\n", i, i, strings.Repeat("word ", 80)))
		areas = append(areas, fmt.Sprintf("**/x%d*y*z*/**", i))
	}
	task := knowledge.Task{Text: strings.Repeat("many words of a/path.go ", 200), Plan: protocol.Plan{Allowed: areas}}
	var selected, read []time.Duration
	for range s.runs {
		var documents []knowledge.Document
		began := time.Now()
		for i, text := range files {
			d, err := knowledge.Parse(fmt.Sprintf("%s/%s/d%d.md", knowledge.Dir, knowledge.Kinds()[i%len(knowledge.Kinds())], i), []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			documents = append(documents, d)
		}
		read = append(read, time.Since(began))
		began = time.Now()
		got := knowledge.Select(documents, task, instructions.KnowledgeRoom())
		selected = append(selected, time.Since(began))
		if len(got.Answers) != len(files) || len(got.Lines) == 0 {
			t.Fatalf("%d answers, %d lines", len(got.Answers), len(got.Lines))
		}
	}
	b.Beside(fmt.Sprintf("knowledge-select/documents=%d", len(files)), board.Median(selected), board.Median(read), board.AtMost(20))
}
