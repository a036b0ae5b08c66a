// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
)

// deterministic makes the agent work through its tools. In these tests nothing keeps it from writing to the workspace;
// in a pod the mount does.
func deterministic(o *protocol.Orders) {
	o.Mode, o.NextMode = policy.ModeDeterministic, policy.ModeDeterministic
	seldom(o)
}

// byHand is an agent that does nothing but tell where its tools are: the test calls them in its place.
func (w *world) byHand() string { return byHand + w.waitFor("exit") }

const byHand = `echo "$TIDEWAITER_MCP_URL" > "$HOME/url.new"; mv "$HOME/url.new" "$HOME/url"; `

// agentByHand orders a world whose agent is played by the test.
func agentByHand(t *testing.T, change ...func(*protocol.Orders)) *world {
	w := newWorld(t, "", append([]func(*protocol.Orders){deterministic}, change...)...)
	w.intake.Order(func(o *protocol.Orders) { o.Agent.Command = []string{"sh", "-c", w.byHand()} })
	return w
}

// client is the agent's session with its tools.
type client struct {
	t       *testing.T
	url     string
	session *mcp.ClientSession
}

// connect waits for the agent to say where its tools are, and speaks to them as a real client does.
func (w *world) connect() *client {
	w.t.Helper()
	file := filepath.Join(w.paths.Home, "url")
	var url string
	w.eventually("the agent has tools", func() bool {
		text, err := os.ReadFile(file)
		url = strings.TrimSpace(string(text))
		return err == nil
	})
	if err := os.Remove(file); err != nil {
		w.t.Fatal(err)
	}
	c := &client{t: w.t, url: url}
	if err := c.dial(); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// dial begins a session; one that broke is of no use any more.
func (c *client) dial() (err error) {
	transport := &mcp.StreamableClientTransport{Endpoint: c.url, DisableStandaloneSSE: true, MaxRetries: -1}
	c.session, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(c.t.Context(), transport, nil)
	return err
}

// try calls a tool, and gives its result as JSON, or the text of its error.
func (c *client) try(name string, in any) (string, bool) {
	c.t.Helper()
	result, err := c.session.CallTool(context.WithoutCancel(c.t.Context()), &mcp.CallToolParams{Name: name, Arguments: in})
	if err != nil {
		return err.Error(), false
	}
	var text string
	for _, content := range result.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	return text, !result.IsError
}

// call calls a tool that has to work.
func (c *client) call(name string, in, out any) {
	c.t.Helper()
	text, ok := c.try(name, in)
	if !ok {
		c.t.Fatalf("%s: %s", name, text)
	}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		c.t.Fatalf("%s: %v: %s", name, err, text)
	}
}

type patchAnswer struct {
	Status     string `json:"status"`
	Message    string `json:"message"`
	Checkpoint string `json:"checkpoint"`
	Violations []struct {
		Rule, Path, Severity, Message, Suggestion string
	} `json:"violations"`
	FilesChanged []string `json:"files_changed"`
}

func (c *client) patch(id, patch string) patchAnswer {
	c.t.Helper()
	var out patchAnswer
	c.call("repo_apply_patch", map[string]any{"operation_id": id, "patch": patch}, &out)
	return out
}

func (c *client) complete() {
	c.t.Helper()
	c.call("task_complete", map[string]any{"summary": "It is done."}, &struct{}{})
}

func newFile(path, line string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+%[2]s\n", path, line)
}

func (w *world) inWorkspace(path string) string {
	w.t.Helper()
	content, err := os.ReadFile(filepath.Join(w.paths.Workspace, path))
	if errors.Is(err, fs.ErrNotExist) {
		return "(nothing)"
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return string(content)
}

func TestPatchesAreJudgedBeforeTheyAreLaidIn(t *testing.T) {
	t.Parallel()
	w := agentByHand(t)
	p := w.start(1, nil)
	c := w.connect()

	evil := c.patch("op1", newFile("web/good.html", "good")+newFile("web/legacy/evil.html", "evil"))
	if evil.Status != "refused" || len(evil.Violations) != 1 || evil.Violations[0].Rule != "forbidden-areas" ||
		evil.Violations[0].Path != "web/legacy/evil.html" || evil.Violations[0].Suggestion == "" {
		t.Errorf("a patch that breaks a rule: %+v", evil)
	}
	if got := w.inWorkspace("web/good.html"); got != "(nothing)" {
		t.Errorf("something of a refused patch was laid in: %q", got)
	}
	if refused := c.patch("op2", newFile("web/x.log", "noise")); refused.Status != "refused" || !strings.Contains(refused.Message, "ignore rules leave out web/x.log") {
		t.Errorf("an ignored file: %+v", refused)
	}
	if refused := c.patch("op3", "diff --git a/web/index.html b/web/index.html\n--- a/web/index.html\n+++ b/web/index.html\n@@ -1 +1 @@\n-<h1>No</h1>\n+<h1>Yes</h1>\n"); refused.Status != "refused" || !strings.Contains(refused.Message, "does not match the file at its line 1") {
		t.Errorf("a patch of something else: %+v", refused)
	}
	if n := len(w.intake.Checkpoints()); n != 0 {
		t.Errorf("%d checkpoints of patches that were refused", n)
	}
	good := c.patch("op4", newFile("web/good.html", "good"))
	if good.Status != "applied" || good.Checkpoint != "login-1" || len(good.Violations) != 0 || cmp.Diff([]string{"web/good.html"}, good.FilesChanged) != "" {
		t.Errorf("a valid patch: %+v", good)
	}
	if got := w.inWorkspace("web/good.html"); got != "good\n" {
		t.Errorf("the workspace has %q", got)
	}
	c.complete()
	if text, ok := c.try("repo_apply_patch", map[string]any{"operation_id": "late", "patch": newFile("web/late.html", "late")}); ok || !strings.Contains(text, "the task is complete") {
		t.Errorf("a patch after the end: %s", text)
	}
	w.signal("exit")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantVerdicts("Patch Valid Promoted", "Final Skipped None")
	if got := w.delivered("web/good.html"); got != "good" {
		t.Errorf("delivered %q", got)
	}
	w.wantBlob("evil\n", false)
}

func TestOperationsAreDoneOnce(t *testing.T) {
	t.Parallel()
	w := agentByHand(t)
	p := w.start(1, nil)
	c := w.connect()
	first := c.patch("op1", newFile("web/a.html", "a"))
	refused := c.patch("op2", newFile("web/legacy/b.html", "b"))
	again := func(when string, c *client) {
		t.Helper()
		if diff := cmp.Diff(first, c.patch("op1", newFile("web/a.html", "a"))); diff != "" {
			t.Errorf("%s, the same patch again (-first +again):\n%s", when, diff)
		}
		if diff := cmp.Diff(refused, c.patch("op2", newFile("web/legacy/b.html", "b"))); diff != "" {
			t.Errorf("%s, the refused patch again (-first +again):\n%s", when, diff)
		}
		for _, id := range []string{"op1", "op2"} {
			if text, ok := c.try("repo_apply_patch", map[string]any{"operation_id": id, "patch": newFile("web/c.html", "c")}); ok || !strings.Contains(text, "belongs to another patch") {
				t.Errorf("%s, %s for another patch: %s", when, id, text)
			}
		}
	}
	again("at once", c)

	// A new attempt finds what the lost one was told, and the workspace as it left it.
	p.kill()
	if err := p.wait(); err != nil {
		t.Logf("the lost watchdog: %v", err)
	}
	p = w.start(2, nil)
	c = w.connect()
	again("in the next attempt", c)
	// The lost one may have been asked to end before it knew that it had lost its agent: what it could not hold still is held.
	if got := w.verdicts(); len(got) != 2 || got[0] != "Patch Valid Promoted" || !slices.Contains([]string{"Final Skipped None", "Final Valid Held unsettled"}, got[1]) {
		t.Errorf("checkpoints %q", got)
	}
	c.complete()
	w.signal("exit")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
}

// A watchdog that ends in the middle of a patch is started again beside the same agent, which sends the patch once more:
// it is done exactly once, and answered as if nothing had happened.
func TestAPatchSurvivesACrash(t *testing.T) {
	t.Parallel()
	for name, list := range alternately(after("refusal journaled", "committed", "intent journaled", "restored", "refs moved", "changes logged", "spooled", "done journaled")) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := agentByHand(t)
			w.tools = addresses.Free()
			plugs := newPlugs(t, list)
			p := w.start(1, plugs.probe())
			c := w.connect()
			wanted := []struct{ id, patch, status string }{
				{"bad", newFile("web/legacy/evil.html", "evil"), "refused"}, {"good", newFile("web/a.html", "a"), "applied"},
			}
			for range 2 { // before the intent is journaled, a patch is not known to the next process
				for _, op := range wanted {
					_, _ = c.try("repo_apply_patch", map[string]any{"operation_id": op.id, "patch": op.patch})
				}
				plugs.ended(w, p.wait())
				p.watch(plugs.probe())
				if plugs.last() == "refusal journaled" || plugs.last() == "committed" {
					w.eventually("the tools are back", func() bool { return c.dial() == nil })
				}
			}
			p = plugs.processes(p)
			w.eventually("the tools are back", func() bool { return c.dial() == nil })
			for _, op := range wanted {
				var got string
				w.eventually("the task goes on", func() bool {
					text, ok := c.try("repo_apply_patch", map[string]any{"operation_id": op.id, "patch": op.patch})
					got = text
					return ok
				})
				if !strings.Contains(got, `"status":"`+op.status+`"`) {
					t.Errorf("%s: %s", op.id, got)
				}
			}
			if got := w.inWorkspace("web/a.html"); got != "a\n" {
				t.Errorf("the workspace has %q", got)
			}
			c.complete()
			w.signal("exit")
			wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			w.wantVerdicts("Patch Valid Promoted", "Final Skipped None")
			w.wantEveryCheckpointOnce()
			w.wantBlob("evil\n", false)
			if code, out := verify(t, w.paths.Trusted, "--history"); code != 0 {
				t.Errorf("verify: code %d\n%s", code, out)
			}
		})
	}
}

func TestAnAgentMustSayThatItIsDone(t *testing.T) {
	t.Parallel()
	w := agentByHand(t)
	p := w.start(1, nil)
	w.connect().patch("op1", newFile("web/a.html", "a"))
	w.signal("exit")
	f := p.finish()
	wantFinal(t, f, protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed)
	if !strings.Contains(f.Message, "without calling task_complete") {
		t.Errorf("message %q", f.Message)
	}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	w := agentByHand(t)
	p := w.start(1, nil)
	c := w.connect()
	type answer struct {
		Status string `json:"status"`
		Answer string `json:"answer"`
	}
	ask := func(id, text string, wait int) (a answer) {
		c.call("ask_user", map[string]any{"question_id": id, "question": text, "wait_seconds": wait}, &a)
		return a
	}
	if a := ask("q1", "Which colour?", 1); a.Status != "pending" {
		t.Errorf("nobody answered: %+v", a)
	}
	w.eventually("the question is told", func() bool {
		s := w.intake.Status()
		return s.Question != nil && *s.Question == protocol.Question{ID: "q1", Text: "Which colour?", At: s.Question.At} && !s.Question.At.IsZero() && s.State == protocol.StateWaiting
	})
	for _, wrong := range []map[string]any{
		{"question_id": "q2", "question": "And which size?"},
		{"question_id": "q1", "question": "Another one?"},
		{"question_id": "-q-", "question": "Which colour?"},
	} {
		if text, ok := c.try("ask_user", wrong); ok {
			t.Errorf("%v: %s", wrong, text)
		}
	}
	heard := make(chan answer)
	go func() { heard <- ask("q1", "Which colour?", 50) }()
	w.intake.Order(func(o *protocol.Orders) { o.Answers = []protocol.Answer{{Question: "q1", Text: "Blue."}} })
	if a := <-heard; a != (answer{Status: "answered", Answer: "Blue."}) {
		t.Errorf("answered: %+v", a)
	}
	w.eventually("the question is gone", func() bool { s := w.intake.Status(); return s.Question == nil && s.State == protocol.StateActive })
	if a := ask("q1", "Which colour?", 1); a.Answer != "Blue." {
		t.Errorf("asked again: %+v", a)
	}
	c.complete()
	w.signal("exit")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonNothingChanged)
}

func TestTheContextIsTold(t *testing.T) {
	t.Parallel()
	w := agentByHand(t, func(o *protocol.Orders) { o.Tasks[0].Instructions = "Use a form." })
	p := w.start(1, nil)
	c := w.connect()
	var got struct {
		Feature, Task, Prompt, Instructions, Base, Head string
		AllowedAreas                                    []string `json:"allowed_areas"`
		ForbiddenAreas                                  []string `json:"forbidden_areas"`
		ProtectedPaths                                  []string `json:"protected_paths"`
	}
	c.call("feature_get_context", map[string]any{}, &got)
	if got.Feature != "shop/login" || got.Task != "login" || got.Prompt != "Add a login page." || got.Instructions != "Use a form." ||
		got.Base == "" || got.Base != got.Head || cmp.Diff([]string{"web/**"}, got.AllowedAreas) != "" ||
		cmp.Diff([]string{"web/legacy/**"}, got.ForbiddenAreas) != "" || len(got.ProtectedPaths) == 0 {
		t.Errorf("context %+v", got)
	}
	p.kill()
}

func TestModesSwitchBetweenTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom, func(o *protocol.Orders) {
		o.Mode, o.NextMode = policy.ModeInteractive, policy.ModeInteractive
		o.Tasks = []protocol.Task{{Name: "one"}, {Name: "two"}}
	})
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command = []string{"sh", "-c", `if [ -z "$TIDEWAITER_MCP_URL" ]; then ` + w.waitFor("one") + `echo one > web/one.html; exit; fi; ` + w.byHand()}
	})
	p := w.start(1, nil)
	w.eventually("the agent works", func() bool { s := w.intake.Status(); return s.AgentRunning })
	w.tell(func(o *protocol.Orders) { o.NextMode = policy.ModeDeterministic })
	w.signal("one")
	f := p.finish()
	wantFinal(t, f, protocol.OutcomeSwitched, protocol.ReasonModeSwitched)
	if w.branch() != "" {
		t.Error("something was pushed")
	}
	w.intake.Order(func(o *protocol.Orders) { o.Mode = policy.ModeDeterministic })
	p = w.start(2, nil)
	c := w.connect()
	if a := c.patch("op1", newFile("web/two.html", "two")); a.Status != "applied" {
		t.Errorf("patch %+v", a)
	}
	c.complete()
	w.signal("exit")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantVerdicts("Task Valid Promoted", "Patch Valid Promoted", "Final Skipped None")
	if one, two := w.delivered("web/one.html"), w.delivered("web/two.html"); one != "one" || two != "two" {
		t.Errorf("delivered %q and %q", one, two)
	}
}
