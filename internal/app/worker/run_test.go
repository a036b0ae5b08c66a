// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
)

// TestATask: a worker does a task in every dialect. It is told what may change, a patch that is refused is corrected, several
// tools may be called at once, and with task_complete it ends.
func TestATask(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		o := newOffice(t, name, 6)
		err := o.work(`- text: I look around.
  tools: [{name: repo_read_file, input: {path: a.txt}}, {name: repo_search, input: {query: b.txt}}]
- tool: ` + patch("one", "web/legacy/a.html") + `
- text: Elsewhere, then.
  tool: ` + patch("two", "web/a.html") + `
- tool: {name: repo_apply_patch, input: {operation_id: "not an id!", patch: x}}
- tool: {name: no_such_tool, input: {}}
- tools: [` + patch("three", "web/b.html") + `, {name: task_complete, input: {summary: There is a form.}}, ` + patch("never", "web/c.html") + `]
- text: never`)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"one refused", "two applied", "three applied"}; !slices.Equal(o.desk.patches, want) || o.desk.summary != "There is a form." {
			t.Errorf("patches %q, summary %q", o.desk.patches, o.desk.summary)
		}
		if bodies := o.bodies(); len(bodies) != 6 {
			t.Errorf("the model was asked %d times", len(bodies))
		}
		// The task is told once, with what may change; what the server says of its tools is told too.
		for _, part := range []string{`Add a form.`, `\"allowed_areas\":[\"web/**\"]`, "The workspace is read-only.", "I look around.", `a.txt`, `forbidden-areas`, `operation_id must be`, `no_such_tool`} {
			if !strings.Contains(o.last(), part) {
				t.Errorf("the last request lacks %s: %.2000s", part, o.last())
			}
		}
		if strings.Contains(o.last(), "once more") {
			t.Errorf("the task is told twice: %.2000s", o.last())
		}
	})
}

// TestAWorkerThatOnlyTalks is reminded of its tools, and fails when that is in vain.
func TestAWorkerThatOnlyTalks(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		o := newOffice(t, name, 6)
		if err := o.work("- text: Shall I?\n- tool: {name: task_complete, input: {summary: too early}}\n- text: Hm.\n- tool: {name: task_complete, input: {summary: done}}"); err != nil || o.desk.summary != "done" {
			t.Errorf("%v, summary %q", err, o.desk.summary)
		}
		if n := strings.Count(o.last(), "You have called no tool."); n != 2 {
			t.Errorf("%d reminders: %s", n, o.last())
		}
		o = newOffice(t, name, 6)
		if err := o.work("- text: Hm."); err == nil || !strings.Contains(err.Error(), `the model has called no tool in 4 answers in a row; its last one (ended by End) begins: "Done."`) {
			t.Errorf("%v", err)
		}
	})
}

// TestAProviderThatFails: what passes is tried again, with pauses and not before the provider asks for it; a stream that breaks off
// too. What does not pass ends the task.
func TestAProviderThatFails(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		o := newOffice(t, name, 6)
		err := o.work(`- tool: ` + patch("one", "web/a.html") + `
  fail: {status: 529, times: 2}
- tool: ` + patch("two", "web/b.html") + `
  fail: {status: 429, retryAfter: 90}
- text: one two three four five
  tool: {name: task_complete, input: {summary: done}}
  cut: true`)
		if want := []string{"one applied", "two applied"}; err != nil || !slices.Equal(o.desk.patches, want) || o.desk.summary != "done" {
			t.Fatalf("%v, patches %q", err, o.desk.patches)
		}
		want := []time.Duration{time.Second, 2 * time.Second, 90 * time.Second, time.Second}
		for i := range want {
			if len(o.slept) != len(want) || o.slept[i] < want[i] || o.slept[i] > want[i]*5/4+1 {
				t.Fatalf("pauses %v, want %v", o.slept, want)
			}
		}
		for status, message := range map[string]string{"{status: 400}": "the model has not answered (try 1): 400 Bad Request: ", "{status: 503, times: 99}": "the model has not answered (try 12): 503 Service Unavailable: ",
			"{status: 429, retryAfter: 3600}": "the model has not answered (try 1): 429 Too Many Requests: "} {
			o := newOffice(t, name, 6)
			if err := o.work("- text: a\n  fail: " + status); err == nil || !strings.HasPrefix(err.Error(), message) || !strings.Contains(err.Error(), "the script says so") {
				t.Errorf("%s: %v", status, err)
			}
		}
	})
}

// TestAnotherDialect: where the backend of the policy speaks another dialect than the agent was started with, from the beginning or since its policy was changed, the
// agent goes on in that one, without a pause.
func TestAnotherDialect(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		for _, after := range []int{0, 1} {
			o := newOffice(t, name, 6)
			asked, other := 0, "openai-chat"
			if name == other {
				other = "anthropic"
			}
			speech, _ := speech.Find(other)
			gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				speaks := o.options.Speech
				if strings.HasPrefix(r.URL.Path, speech.Path()) {
					speaks = speech
				} else if asked++; asked > after {
					w.Header().Set(protocol.DialectsHeader, "unheard-of,"+other)
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				http.StripPrefix(speaks.Dialect.Prefix, o.provider).ServeHTTP(w, r)
			}))
			defer gateway.Close()
			o.options.Models = gateway.URL
			err := o.work("- tool: " + patch("one", "web/a.html") + "\n- tool: {name: task_complete, input: {summary: done}}")
			if err != nil || o.desk.summary != "done" || !slices.Equal(o.desk.patches, []string{"one applied"}) || len(o.slept) > 0 {
				t.Errorf("after %d answers: %v, summary %q, patches %q, pauses %v", after, err, o.desk.summary, o.desk.patches, o.slept)
			}
		}
	})
}

// TestAnAnswerThatIsRejected: the gateway ends a stream with an error that no client tries again after.
func TestAnAnswerThatIsRejected(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		o := newOffice(t, name, 6)
		d := o.options.Speech.Dialect
		rejecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write(d.Broken(dialect.Failure{Status: http.StatusBadRequest, Message: "tidewaiter: the answer breaks the rules"}))
		}))
		defer rejecting.Close()
		o.options.Models = rejecting.URL
		if err := o.work("- text: a"); err == nil || err.Error() != "the model has not answered (try 1): the answer ended with an error: tidewaiter: the answer breaks the rules" {
			t.Errorf("%v", err)
		}
	})
}

// TestAQuestion: waiting for a person costs no turn of the model.
func TestAQuestion(t *testing.T) {
	o := newOffice(t, "openai-chat", 6)
	o.desk.waits = 3
	err := o.work("- tool: {name: ask_user, input: {question_id: q1, question: \"Which colour?\", wait_seconds: 1}}\n- tool: {name: task_complete, input: {summary: done}}")
	if err != nil || o.desk.asked != 4 || len(o.bodies()) != 2 || !strings.Contains(o.last(), "teal") || strings.Contains(o.last(), `\"pending\"`) {
		t.Errorf("%v: asked %d times, %d turns, %s", err, o.desk.asked, len(o.bodies()), o.last())
	}
}

// TestALongConversation: old answers of tools make room; a task that is too large for the model by itself fails and says so.
func TestALongConversation(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		o := newOffice(t, name, 30_000)
		o.options.Bounds.Window, o.options.Bounds.MaxOutput = 30_000, 1000 // the provider counts four bytes a token
		var script strings.Builder
		for _, file := range []string{"a", "b", "c", "d", "e"} {
			script.WriteString("- tool: {name: repo_read_file, input: {path: " + file + ".txt}}\n")
		}
		if err := o.work(script.String() + "- tool: {name: task_complete, input: {summary: done}}"); err != nil {
			t.Fatal(err)
		}
		for _, body := range o.bodies() {
			if len(body) > 29_000*4 {
				t.Errorf("a request has %d bytes", len(body))
			}
		}
		if !strings.Contains(o.last(), "was dropped to make room") || !strings.Contains(o.last(), `e.txt\\ne.txt`) || strings.Contains(o.last(), `a.txt\\na.txt`) {
			t.Errorf("what was dropped is not the oldest: %.3000s", o.last())
		}
		o.options.Bounds.Window, o.options.Bounds.MaxOutput = 2000, 100
		if err := o.work("- text: " + strings.Repeat("a", 6000)); err == nil || !strings.Contains(err.Error(), "(its context window has 2000 tokens). Split the task, or choose a model with a larger window") {
			t.Errorf("%v", err)
		}
	})
}

// TestAModelThatTakesLess than it should: a conversation that a provider refuses is sent once more without its oldest answers.
func TestAModelThatTakesLess(t *testing.T) {
	o := newOffice(t, "anthropic", 30_000)
	o.options.Bounds.Window, o.options.Bounds.MaxOutput = 40_000, 1000
	strict := httptest.NewServer(http.StripPrefix("/anthropic", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 100_000 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`))
			return
		}
		o.provider.ServeHTTP(w, r)
	})))
	defer strict.Close()
	o.options.Models = strict.URL
	var script strings.Builder
	for _, file := range []string{"a", "b", "c", "d", "e"} {
		script.WriteString("- tool: {name: repo_read_file, input: {path: " + file + ".txt}}\n")
	}
	if err := o.work(script.String() + "- tool: {name: task_complete, input: {summary: done}}"); err != nil || o.desk.summary != "done" {
		t.Errorf("%v", err)
	}
}

// TestToolsThatGoAway: a watchdog that ended and is back is called again; one that does not come back ends the task.
func TestToolsThatGoAway(t *testing.T) {
	o := newOffice(t, "openai-responses", 6)
	o.close()
	away := 0
	o.options.Sleep = func(context.Context, time.Duration) bool {
		if away++; away == 3 {
			o.serveTools(o.address)
		}
		return true
	}
	if err := o.work("- tool: {name: repo_read_file, input: {path: a.txt}}\n- tool: {name: task_complete, input: {summary: done}}"); err != nil || away != 3 {
		t.Errorf("away %d times: %v", away, err)
	}
	script := "- tool: " + patch("one", "web/a.html") + "\n- tool: {name: task_complete, input: {summary: again}}"
	o.options.Models = leaving(t, o)
	if away = 2; o.work(script) != nil || o.desk.summary != "again" || !slices.Equal(o.desk.patches, []string{"one applied"}) {
		t.Errorf("in the middle of a task: patches %q, summary %q", o.desk.patches, o.desk.summary)
	}
	o.close()
	away = 10
	if err := o.work("- text: a"); err == nil || !strings.HasPrefix(err.Error(), "cannot reach the tools: ") {
		t.Errorf("%v", err)
	}
}

// TestCallsWithoutAResult: a watchdog that is ending does not know what becomes of a call. The call is made again, and the
// model is not asked about it.
func TestCallsWithoutAResult(t *testing.T) {
	o := newOffice(t, "openai-chat", 6)
	o.desk.leaving = true
	pauses := 0
	o.options.Sleep = func(context.Context, time.Duration) bool { pauses++; return true }
	err := o.work("- tool: " + patch("one", "web/a.html") + "\n- tool: {name: task_complete, input: {summary: done}}")
	if err != nil || pauses != 2 || o.desk.summary != "done" || !slices.Equal(o.desk.patches, []string{"one applied"}) {
		t.Errorf("%d pauses, patches %q, summary %q: %v", pauses, o.desk.patches, o.desk.summary, err)
	}
	if asked := o.provider.Recorded(); len(asked) != 2 {
		t.Errorf("the model was asked %d times, want 2", len(asked))
	}
}

// leaving are models at whose first answer the watchdog ends.
func leaving(t *testing.T, o *office) string {
	t.Helper()
	gone := false
	server := httptest.NewServer(http.StripPrefix("/openai", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !gone {
			gone = true
			o.close()
		}
		o.provider.ServeHTTP(w, r)
	})))
	t.Cleanup(server.Close)
	return server.URL
}

// TestTurns: a task that comes to no end is ended.
func TestTurns(t *testing.T) {
	o := newOffice(t, "anthropic", 6)
	o.options.Bounds.Turns = 3
	script := strings.Repeat("- tool: {name: repo_read_file, input: {path: a.txt}}\n", 9)
	if err := o.work(script); err == nil || !strings.Contains(err.Error(), "the model has answered 3 times and the task is not done") || len(o.bodies()) != 3 {
		t.Errorf("%d turns: %v", len(o.bodies()), err)
	}
}

// TestAnEndThatIsRefused: a task that is called complete beside a patch that is refused is not, and the model is told so; one that
// goes on so is ended at its bound.
func TestAnEndThatIsRefused(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		o := newOffice(t, name, 6)
		refused := "- tools: [" + patch("one", "web/legacy/a.html") + ", {name: task_complete, input: {summary: too early}}]\n"
		if err := o.work(refused + "- tools: [" + patch("two", "web/a.html") + ", {name: task_complete, input: {summary: done}}]"); err != nil ||
			o.desk.summary != "done" || !strings.Contains(o.last(), "so the task is not completed") {
			t.Errorf("%v, summary %q: %s", err, o.desk.summary, o.last())
		}
		o = newOffice(t, name, 6)
		o.options.Bounds.Turns = 3
		if err := o.work(strings.Repeat(refused, 9)); err == nil || !strings.Contains(err.Error(), "the model has answered 4 times and the task is not done") || o.desk.summary != "" {
			t.Errorf("%v, summary %q", err, o.desk.summary)
		}
	})
}

// TestExitCodes: exit codes tell how it ended, and the last line says why.
func TestExitCodes(t *testing.T) {
	o := newOffice(t, "anthropic", 6)
	environment := []string{"TIDEWAITER_MODELS_URL=" + o.options.Models, "TIDEWAITER_MCP_URL=" + o.options.Tools, "TIDEWAITER_DIALECT=latin", "TIDEWAITER_DIALECT=anthropic", "TIDEWAITER_CONTEXT_WINDOW=50000"}
	const done, idle = "```script\nturns: [{tool: {name: task_complete, input: {summary: done}}}]\n```\n", "Do nothing."
	for name, tc := range map[string]struct {
		args, environment []string
		task              string
		code              int
		last              string
	}{
		"done":               {environment: environment, task: done, code: 0, last: `{"time":`},
		"within its bounds":  {args: []string{"--max-turns=1", "--max-output", "100"}, environment: environment, task: done, code: 0, last: `{"time":`},
		"failed":             {environment: environment, task: idle, code: 1, last: "worker: the model has called no tool in 4 answers in a row"},
		"beyond its bounds":  {args: []string{"--max-turns=2"}, environment: environment, task: idle, code: 1, last: "worker: the model has answered 2 times"},
		"of no dialect":      {environment: append(slices.Clone(environment), "TIDEWAITER_DIALECT=latin"), task: done, code: 2, last: `worker: TIDEWAITER_DIALECT is "latin", and not one of anthropic, openai-responses, openai-chat, gemini`},
		"of no window":       {environment: append(slices.Clone(environment), "TIDEWAITER_CONTEXT_WINDOW=-1"), task: done, code: 2, last: `worker: TIDEWAITER_CONTEXT_WINDOW is "-1", and not a number of tokens`},
		"in the wrong mode":  {environment: append(slices.Clone(environment), "TIDEWAITER_MCP_URL="), task: done, code: 2, last: "worker: TIDEWAITER_MCP_URL is not set: only Tidewaiter starts the worker, in Deterministic mode"},
		"an unknown flag":    {args: []string{"--fast"}, environment: environment, task: done, code: 2, last: "worker: flag provided but not defined: -fast"},
		"an argument":        {args: []string{"fast"}, environment: environment, task: done, code: 2, last: `worker: unexpected argument "fast"`},
		"a bound of nothing": {args: []string{"--max-turns=0"}, environment: environment, task: done, code: 2, last: "worker: --max-turns and --max-output must be positive"},
		"a task too large":   {environment: environment, task: strings.Repeat("x", maxTask+1), code: 2, last: "worker: the task on standard input has more than 1048576 bytes"},
		"help":               {args: []string{"--help"}, environment: environment, code: 2, last: "    \tmost answers of the model"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := Main(t.Context(), tc.args, tc.environment, strings.NewReader(tc.task), &stderr)
			lines := strings.Split(strings.TrimRight(stderr.String(), "\n"), "\n")
			if last := lines[len(lines)-1]; code != tc.code || !strings.HasPrefix(last, tc.last) {
				t.Errorf("code %d, %s", code, stderr.String())
			}
		})
	}
}

// TestTheEnd: a worker whose context ends does not wait.
func TestTheEnd(t *testing.T) {
	o := newOffice(t, "anthropic", 6)
	ctx, cancel := context.WithCancel(t.Context())
	o.options.Sleep = func(context.Context, time.Duration) bool { cancel(); return false }
	o.options.Task = "```script\nturns: [{text: a, fail: {status: 503}}]\n```"
	if err := Run(ctx, o.options); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
