// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package reviewers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelclient"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// Variables that name a real model.
const (
	envURL     = "TIDEWAITER_EVAL_MODEL_URL"
	envKey     = "TIDEWAITER_EVAL_MODEL_KEY"
	envModel   = "TIDEWAITER_EVAL_MODEL"
	envDialect = "TIDEWAITER_EVAL_MODEL_DIALECT"
)

// model is a provider, and the name of the model that it is asked for.
type model struct{ url, key, name, dialect string }

// client speaks to the model by way of a server of the test, which puts in what the gateway puts in: the name of the model, and the key.
func (m model) client(t *testing.T) *modelclient.Client {
	t.Helper()
	spoken, known := speech.Find(m.dialect)
	if !known {
		t.Fatalf("%s is %q: use anthropic, openai-chat or openai-responses", envDialect, m.dialect)
	}
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := m.relay(w, r, spoken.Dialect.Prefix); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	}))
	t.Cleanup(relay.Close)
	return modelclient.New(modelclient.Options{
		URL: relay.URL, Speech: spoken, Transport: http.DefaultTransport, Agent: "tidewaiter-eval", Call: 5 * time.Minute, Sleep: modelclient.Sleep, Log: slog.New(slog.DiscardHandler),
	})
}

// relay a request to the provider, and its answer back.
func (m model) relay(w http.ResponseWriter, r *http.Request, prefix string) error {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return err
	}
	body["model"] = m.name
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, strings.TrimSuffix(m.url, "/")+strings.TrimPrefix(r.URL.Path, prefix), bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header = r.Header.Clone()
	request.Header.Del("Content-Length")
	request.Header.Set("Authorization", "Bearer "+m.key)
	request.Header.Set("X-Api-Key", m.key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(answer.StatusCode)
	_, err = io.Copy(w, answer.Body)
	return err
}

// answered is what a question brought: the arguments of the answer, and the tokens that both took.
type answered struct {
	arguments json.RawMessage
	tokens    int64
}

// ask a question once. An answer without arguments counts as one that says nothing.
func ask(t *testing.T, client *modelclient.Client, q speech.Question) answered {
	t.Helper()
	body, err := client.Speech().Body(q.First())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Ask(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	arguments, objection := q.Arguments(answer)
	if objection != "" {
		t.Logf("%s: %s", q.Tool.Name, objection)
		arguments = json.RawMessage("{}")
	}
	return answered{arguments, answer.Usage.Total()}
}

// TestAModelIsAsked: what a model answers comes back as it was said, in each dialect. The model is the scripted provider.
func TestAModelIsAsked(t *testing.T) {
	const key = "key-of-the-eval"
	server := httptest.NewServer(provider.New(key))
	defer server.Close()
	for _, dialect := range []string{"anthropic", "openai-chat", "openai-responses"} {
		client := model{url: server.URL, key: key, name: "large", dialect: dialect}.client(t)
		for turn, b := range breakpoints(t) {
			said := b.spoken(t, turn)
			if b.label != planted || slices.Contains([]int{4, 5}, turn%6) {
				continue // one of each subject is enough, and a script has to fit into the instructions of a team
			}
			q := review.Question(b.scene)
			b.scene.Team = fmt.Sprintf("```script %s\nturns:\n- tool: {name: %s, input: %s}\n```", q.Tool.Name, q.Tool.Name, said)
			if got := b.decide(t, ask(t, client, review.Question(b.scene)).arguments); !b.finds(got) {
				t.Errorf("%s: %s: %+v", dialect, b.path, got)
			}
		}
	}
}

// TestModel plays the breakpoints and the chores to a real model, if the environment names one. No figure of it fails the test.
func TestModel(t *testing.T) {
	m := model{url: os.Getenv(envURL), key: os.Getenv(envKey), name: os.Getenv(envModel), dialect: os.Getenv(envDialect)}
	if m.url == "" || m.key == "" {
		if os.Getenv("TIDEWAITER_EVAL") != "" {
			fmt.Printf("### A real model\n\nNo model is asked, and there are no tables of conventions and of work with reviewers: %s and %s are not set.\n\n", envURL, envKey)
		}
		return
	}
	client := m.client(t)
	table, _, refused := play(t, m.name, func(_ breakpoint, _ int, q speech.Question) json.RawMessage { return ask(t, client, q).arguments })
	fmt.Printf("%s\nAnswers that the schema refuses: %d\n\n", table, len(refused))
	list := chores()
	w := worker{ask: func(q speech.Question) answered { return ask(t, client, q) }, script: func(chore, string) string { return "" }}
	fmt.Println(tables(measure(t, list, w.chores(t, list))))
}
