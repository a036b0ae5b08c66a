// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// confidant is a gateway whose model answers what it is told to, and remembers what it was asked.
type confidant struct {
	purse

	mu     sync.Mutex
	answer string
	asked  []string
}

func (c *confidant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect || r.URL.Path == protocol.AllowancePath {
		c.purse.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, string(body))
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(map[string]any{
		"type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "content": []any{map[string]any{"type": "text", "text": c.answer}},
	}); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// last is what the model was asked last.
func (c *confidant) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[len(c.asked)-1]
}

func (c *confidant) answers(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = text
}

// talk is an agent's conversation, which the test leads in its place.
type talk struct {
	w       *world
	model   *confidant
	entries []string
}

// say something, and let the model answer. It gives what the model was asked.
func (k *talk) say(text, answer string) string {
	k.w.t.Helper()
	url, err := os.ReadFile(filepath.Join(k.w.paths.Home, "url"))
	if err != nil {
		k.w.t.Fatal(err)
	}
	entry := func(role, text string) {
		line, err := json.Marshal(map[string]string{"role": role, "content": text})
		if err != nil {
			k.w.t.Fatal(err)
		}
		k.entries = append(k.entries, string(line))
	}
	entry("user", text)
	k.model.answers(answer)
	body := `{"model":"m","max_tokens":10,"messages":[` + strings.Join(k.entries, ",") + `],"tools":[{"name":"Read","input_schema":{}}]}`
	var response *http.Response
	k.w.eventually("the watchdog serves models", func() bool { // one that begins again needs a moment, and clients try again
		response, err = http.Post(strings.TrimSpace(string(url))+"/anthropic/v1/messages", "application/json", strings.NewReader(body)) //nolint:noctx // it ends with the watchdog
		return !errors.Is(err, syscall.ECONNREFUSED)
	})
	if err != nil {
		k.w.t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		k.w.t.Fatalf("status %d, %v", response.StatusCode, err)
	}
	entry("assistant", answer)
	return k.model.last()
}

// directives as they were reported last, one "id state" each.
func (w *world) directives() (all []string) {
	for _, d := range w.intake.Status().Directives {
		all = append(all, d.ID+" "+d.State)
	}
	return all
}

// reports waits for directives to be reported like this.
func (w *world) reports(states ...string) {
	w.t.Helper()
	w.eventually("directives are "+strings.Join(states, ", "), func() bool { return slices.Equal(w.directives(), states) })
}

// gives a directive.
func (w *world) gives(id, text string) {
	w.intake.Order(func(o *protocol.Orders) {
		o.Directives = append(o.Directives, protocol.Directive{ID: id, Source: protocol.SourcePerson, Description: text, Priority: protocol.PriorityCritical})
	})
}

// scholar is a runtime with sessions whose agents talk to models and read nothing else than their prompt.
type scholar struct{ monk }

func (m scholar) Launch(t runtimes.Task) runtimes.Launch {
	how := m.monk.Launch(t)
	how.Input = &t.Prompt
	return how
}

// restart the pod: another attempt, which goes on with the session.
func (k *talk) restart(run *pod, attempt int64) *pod {
	k.w.t.Helper()
	run.stop()
	if err := run.wait(); err != nil {
		k.w.t.Fatal(err)
	}
	<-run.gone
	if err := os.Remove(filepath.Join(k.w.paths.Home, "url")); err != nil {
		k.w.t.Fatal(err)
	}
	run = k.w.start(attempt, nil)
	k.w.eventually("the agent knows where models are", func() bool {
		_, err := os.Stat(filepath.Join(k.w.paths.Home, "url"))
		return err == nil
	})
	return run
}

// TestADirectiveReachesTheModel: with its next call, at the same place in every later one, and once. Watchdog and pod begin anew in between, and
// neither forget nor repeat it; a session that begins anew hears what is open. People see how far it is all along.
func TestADirectiveReachesTheModel(t *testing.T) {
	t.Parallel()
	for name, sessions := range map[string]bool{"the session goes on": true, "another session": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reachTheModel(t, sessions)
		})
	}
}

func reachTheModel(t *testing.T, sessions bool) {
	w := newWorld(t, "", seldom, func(o *protocol.Orders) { o.Agent.Runtime = "scholar" })
	w.runtimes = []runtimes.Runtime{{Name: "scholar", Available: true, Interactive: true, Sessions: sessions, Adapter: scholar{}}}
	model := &confidant{answer: "Well."}
	run, _ := w.withModels(model, nil)
	k := &talk{w: w, model: model}
	once := func(asked, text string, supervisors int) {
		t.Helper()
		if strings.Count(asked, text) != 1 || strings.Count(asked, "[SUPERVISOR]") != supervisors {
			t.Fatalf("the model was asked: %s", asked)
		}
	}
	if asked := k.say("Add a login page.", "I begin."); strings.Contains(asked, "[SUPERVISOR]") {
		t.Fatalf("told of nothing: %s", asked)
	}
	w.gives("use-dict", "Take the labels from the dictionary.")
	w.reports("use-dict Pending")
	run = k.restart(run, 2)
	if !sessions {
		k.entries = nil
	}
	w.reports("use-dict Pending")
	once(k.say("Go on.", "I go on."), "Take the labels from the dictionary.", 1)
	w.reports("use-dict Active")
	run = k.restart(run, 3)
	if !sessions {
		k.entries = nil
	}
	for range 2 {
		once(k.say("Go on.", "I go on."), "Take the labels from the dictionary.", 1)
	}
	w.reports("use-dict Active")
	k.say("Go on.", "All is well.\nDIRECTIVE use-dict: ADDRESSED - by web/dict.ts")
	w.reports("use-dict Addressed")
	w.gives("no-cookies", "Use no cookies.")
	w.reports("use-dict Addressed", "no-cookies Pending")
	once(k.say("Go on.", "DIRECTIVE no-cookies: CANNOT - the login needs one"), "Use no cookies.", 2)
	w.reports("use-dict Addressed", "no-cookies Escalated")
	w.signal("end")
	if f := run.finish(); !slices.Equal(f.Paths, []string{"web/a.html"}) || f.PathCount != 1 {
		t.Errorf("%d paths were delivered: %q", f.PathCount, f.Paths)
	}
	if got := w.directives(); !slices.Equal(got, []string{"use-dict Addressed", "no-cookies Escalated"}) {
		t.Errorf("at the end: %q", got)
	}
}

// TestADirectiveOnStandardInput: an agent without a conversation gets a line of JSON, each process one; without a call of a model that is all
// that is known, and the status says so.
func TestADirectiveOnStandardInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo a > web/a.html; head -n 1 > "$HOME/line"; ` + w.waitFor("more") + `head -n 1 > "$HOME/line2"; ` + w.waitFor("end")
	})
	run := w.start(1, nil)
	w.gives("use-dict", "Take the labels from the dictionary.")
	w.reports("use-dict Active")
	line := ""
	w.eventually("the agent has read a line", func() bool {
		text, err := os.ReadFile(filepath.Join(w.paths.Home, "line"))
		line = string(text)
		return err == nil && line != ""
	})
	var got struct {
		Type, Description, Priority string
		ID                          string `json:"directive_id"`
	}
	if err := json.Unmarshal([]byte(line), &got); err != nil || got.Type != "directive" || got.ID != "use-dict" || got.Priority != "critical" || got.Description != "Take the labels from the dictionary." {
		t.Errorf("%v: %s", err, line)
	}
	if m := w.intake.Status().Directives[0].Message; !strings.Contains(m, "nobody knows") {
		t.Errorf("message %q", m)
	}
	w.intake.Order(func(o *protocol.Orders) { o.Directives = nil })
	w.reports("use-dict Addressed")
	w.gives("next", "Do this, too.")
	w.reports("use-dict Addressed", "next Active")
	w.signal("more")
	w.eventually("the agent has read the next line", func() bool {
		text, err := os.ReadFile(filepath.Join(w.paths.Home, "line2"))
		return err == nil && strings.Contains(string(text), `"directive_id":"next"`)
	})
	w.signal("end")
	run.finish()
}

// TestADirectiveThroughTools: an agent in Deterministic mode reads what is open and settles it by a tool; of what it was not told it cannot
// speak. The answer to a question is over when it has asked for it.
func TestADirectiveThroughTools(t *testing.T) {
	t.Parallel()
	w := agentByHand(t)
	p := w.start(1, nil)
	c := w.connect()
	w.gives("use-dict", "Take the labels from the dictionary.")
	w.reports("use-dict Active")
	var context struct {
		Directives []struct{ ID, Description string }
	}
	c.call("feature_get_context", map[string]any{}, &context)
	if len(context.Directives) != 1 || context.Directives[0].ID != "use-dict" {
		t.Errorf("context %+v", context)
	}
	settle := func(id string) (string, bool) {
		return c.try("directive_settle", map[string]any{"directive_id": id, "outcome": "ALREADY HANDLED", "reason": "in web/dict.ts"})
	}
	if text, ok := settle("other"); ok || !strings.Contains(text, "you have no directive") {
		t.Errorf("another one: %s", text)
	}
	if text, ok := settle("use-dict"); !ok {
		t.Error(text)
	}
	w.reports("use-dict Addressed")
	var answer struct{ Status string }
	c.call("ask_user", map[string]any{"question_id": "q1", "question": "Which colour?", "wait_seconds": 1}, &answer)
	w.intake.Order(func(o *protocol.Orders) { o.Answers = []protocol.Answer{{Question: "q1", Text: "Blue."}} })
	w.reports("use-dict Addressed", "answer/q1 Pending")
	c.call("ask_user", map[string]any{"question_id": "q1", "question": "Which colour?", "wait_seconds": 1}, &answer)
	w.reports("use-dict Addressed", "answer/q1 Addressed")
	c.complete()
	w.signal("exit")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonNothingChanged)
}
