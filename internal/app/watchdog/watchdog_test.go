// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

func wantFinal(t *testing.T, got protocol.FinalReport, outcome, reason string) {
	t.Helper()
	if got.Outcome != outcome || got.Reason != reason {
		t.Errorf("final %+v, want %s/%s", got, outcome, reason)
	}
}

// verdicts writes the checkpoints as "trigger verdict action".
func (w *world) verdicts() []string {
	var out []string
	for _, c := range w.intake.Checkpoints() {
		line := c.Trigger + " " + string(c.Verdict) + " " + c.Action
		if !c.Settled {
			line += " unsettled"
		}
		out = append(out, line)
	}
	return out
}

func (w *world) wantVerdicts(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.verdicts()); diff != "" {
		w.t.Errorf("checkpoints (-want +got):\n%s", diff)
	}
}

// wantBlob says whether a content may be reachable from the delivered branch: in any commit of its whole ancestry.
func (w *world) wantBlob(content string, reachable bool) {
	w.t.Helper()
	file := filepath.Join(w.dir, "blob")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	id := w.git("hash-object", file)
	objects := w.git("-C", w.origin, "rev-list", "--objects", "refs/heads/tidewaiter/login")
	if strings.Contains(objects, id) != reachable {
		w.t.Errorf("%q is reachable from the branch: %v, want %v", content, !reachable, reachable)
	}
}

// seldom leaves only the triggers that a test causes.
func seldom(o *protocol.Orders) {
	o.Policy.Execution.Interval, o.Policy.Execution.MaxChanges = 1<<40, 0
}

func shadow(o *protocol.Orders) { o.Policy.Execution.Strategy = policy.StrategyShadow }

// keen takes a checkpoint for every change.
func keen(o *protocol.Orders) { o.Policy.Execution.MaxChanges = 1 }

func TestValidWorkIsDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `git status --porcelain | grep -q . && exit 9
		echo "<form>" > web/login.html; rm web/index.html; echo noise > web/x.log`, seldom)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.delivered("web/login.html"); got != "<form>" {
		t.Errorf("delivered %q", got)
	}
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); got != "D\tweb/index.html\nA\tweb/login.html" {
		t.Errorf("branch changes %q", got)
	}
	message := w.git("-C", w.origin, "log", "-1", "--format=%an <%ae>%n%B", "tidewaiter/login")
	want := "Tidewaiter <bot@example.com>\nAdd a login page\n\nTidewaiter-Feature: shop/login\nTidewaiter-Task: login\nTidewaiter-Checkpoint: login-1"
	if message != want {
		t.Errorf("message %q, want %q", message, want)
	}
	w.wantVerdicts("Final Valid Promoted")
	c := w.intake.Checkpoints()[0]
	if c.Added != 1 || c.Deleted != 1 || c.LinesAdded != 1 || c.LinesDeleted != 1 || c.DeliveryCommit != w.branch() || c.PolicyHash != "policy-1" {
		t.Errorf("checkpoint %+v", c)
	}
	s := w.intake.Status()
	if s.State != protocol.StateComplete || s.Head != w.branch() || s.Tasks[0].State != protocol.TaskDone || *s.Tasks[0].ExitCode != 0 {
		t.Errorf("status %+v", s)
	}
}

func TestTasksRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo "$TIDEWAITER_TASK: $TIDEWAITER_PROMPT ($TIDEWAITER_FEATURE, $TIDEWAITER_ATTEMPT)" >> web/log.txt`, seldom,
		func(o *protocol.Orders) {
			o.Prompt, o.Tasks = "Shop.", []protocol.Task{{Name: "form"}, {Name: "save"}}
		})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantVerdicts("Task Valid Promoted", "Final Valid Promoted")
	if got := w.delivered("web/log.txt"); got != "form: Shop. (shop/login, 1)\nsave: Shop. (shop/login, 1)" {
		t.Errorf("delivered %q", got)
	}
}

func TestInvalidWorkIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo good > web/good.html; echo evil > web/legacy/evil.html; ln -s /etc/passwd web/passwd; mkdir web/nested; git init -q web/nested`, seldom)
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
	if !strings.Contains(f.Message, "web/") || !strings.Contains(f.Message, "fix") {
		t.Errorf("message %q names no path or says nothing of what to do", f.Message)
	}
	if w.branch() != "" {
		t.Error("something was pushed")
	}
	w.wantVerdicts("Final Invalid Held")
	var rules []string
	for _, v := range w.intake.Checkpoints()[0].Violations {
		rules = append(rules, v.Rule+" "+v.Path)
	}
	for _, want := range []string{"forbidden-areas web/legacy/evil.html", "symlinks web/passwd", "git-directory web/nested/.git"} {
		if !strings.Contains(strings.Join(rules, "\n"), want) {
			t.Errorf("violations %q lack %q", rules, want)
		}
	}
	if got := w.trusted("show", "refs/tidewaiter/chain:web/legacy/evil.html"); got != "evil" {
		t.Errorf("the chain has %q", got)
	}
}

func TestShadowGoesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo good > web/good.html; echo evil > web/legacy/evil.html; rm web/index.html`, seldom, shadow)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
	w.wantVerdicts("Final Invalid Reverted")
	if w.branch() != "" {
		t.Error("something was pushed")
	}
	if _, err := os.Stat(filepath.Join(w.paths.Workspace, "web/legacy/evil.html")); !os.IsNotExist(err) {
		t.Errorf("the workspace did not go back: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.paths.Workspace, "web/index.html")); err != nil {
		t.Errorf("the workspace did not go back: %v", err)
	}
	if got := w.trusted("show", "refs/tidewaiter/chain:web/legacy/evil.html"); got != "evil" {
		t.Errorf("the chain has %q", got)
	}
}

// The agent reads what it is told on its standard input, fixes it, and its work is delivered without what was wrong.
func TestTheAgentMendsWhatItIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo evil > web/legacy/evil.html; read line; echo "$line" > "$HOME/told"; rm web/legacy/evil.html; echo good > web/good.html`, keen)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("evil\n", false)
	w.wantBlob("good\n", true)
	told, err := os.ReadFile(filepath.Join(w.paths.Home, "told"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"type":"checkpoint_violation"`, `"severity":"error"`, `"checkpoint_id":"login-`, `"file":"web/legacy/evil.html"`,
		`"constraint":"forbidden-areas"`, `"action_taken":"none"`, `"files_changed":["web/legacy/evil.html"]`} {
		if !strings.Contains(string(told), want) {
			t.Errorf("the agent was told %s, which lacks %s", told, want)
		}
	}
	if !strings.Contains(strings.Join(w.verdicts(), "\n"), "Invalid Held") {
		t.Errorf("checkpoints %q", w.verdicts())
	}
}

// Under Shadow the agent is told that its work went back, goes on, and everything rejected stays out of the branch's
// whole ancestry.
func TestShadowGoesOnAfterARevert(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo one > web/one.html; sleep 0.5; echo evil > web/legacy/evil.html; read line; echo "$line" > "$HOME/told"
		[ -e web/legacy/evil.html ] && exit 7; [ -e web/one.html ] || exit 8; echo two > web/two.html`, keen, shadow)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("evil\n", false)
	w.wantBlob("one\n", true)
	w.wantBlob("two\n", true)
	told, err := os.ReadFile(filepath.Join(w.paths.Home, "told"))
	if err != nil || !strings.Contains(string(told), `"action_taken":"reverted"`) {
		t.Errorf("the agent was told %s, %v", told, err)
	}
}

func TestAuditBlocksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo evil > web/legacy/evil.html`, seldom, shadow, func(o *protocol.Orders) { o.Policy.Enforcement = policy.Audit })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantVerdicts("Final Invalid Promoted")
	if c := w.intake.Checkpoints()[0]; !c.Audit || c.ViolationCount != 1 {
		t.Errorf("checkpoint %+v", c)
	}
	w.wantBlob("evil\n", true)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script      string
		wantOutcome string
		wantReason  string
		wantMessage string
	}{
		"nothing changed": {script: "exit 0", wantOutcome: protocol.OutcomeDelivered, wantReason: protocol.ReasonNothingChanged, wantMessage: "the watchdog pushed nothing"},
		"an error":        {script: "echo x > web/x; exit 3", wantOutcome: protocol.OutcomeAgentFailed, wantReason: protocol.ReasonAgentFailed, wantMessage: "code 3"},
		"a signal":        {script: "kill -KILL $$", wantOutcome: protocol.OutcomeAgentFailed, wantReason: protocol.ReasonAgentFailed, wantMessage: "code 137"},
		"leftovers":       {script: "(trap '' TERM; while :; do sleep 0.1; done) & exit 0", wantOutcome: protocol.OutcomeDelivered, wantReason: protocol.ReasonNothingChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.script, seldom)
			f := w.start(1, nil).finish()
			wantFinal(t, f, tc.wantOutcome, tc.wantReason)
			if !strings.Contains(f.Message, tc.wantMessage) {
				t.Errorf("message %q, want %q", f.Message, tc.wantMessage)
			}
			if w.branch() != "" {
				t.Error("something was pushed")
			}
		})
	}
}

func TestACommandThatDoesNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", func(o *protocol.Orders) { o.Agent.Command = []string{"/nowhere/agent"} })
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeAgentFailed, protocol.ReasonAgentNotStarted)
	if !strings.Contains(f.Message, "/nowhere/agent") {
		t.Errorf("message %q", f.Message)
	}
}

func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `[ -e web/half.html ] && exit 0; echo half > web/half.new; mv web/half.new web/half.html; ` + w.waitFor("never")
		seldom(o)
	})
	p := w.start(1, nil)
	w.eventually("the agent runs", func() bool { s := w.intake.Status(); return s.AgentRunning })
	w.eventually("it has written", func() bool { _, err := os.Stat(filepath.Join(w.paths.Workspace, "web/half.html")); return err == nil })
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	wantFinal(t, p.finish(), protocol.OutcomeSuspended, protocol.ReasonSuspended)
	if s := w.intake.Status(); s.State != protocol.StateAborted {
		t.Errorf("suspended, and the state is %s", s.State)
	}
	w.wantVerdicts("Final Valid Promoted")
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = false })
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("half\n", true)
}

func TestRequestedCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo a > web/a.new; mv web/a.new web/a.html; ` + w.waitFor("go")
		seldom(o)
	})
	p := w.start(1, nil)
	w.eventually("it has written", func() bool { _, err := os.Stat(filepath.Join(w.paths.Workspace, "web/a.html")); return err == nil })
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = []protocol.Request{{ID: "r1", Kind: protocol.RequestCheckpoint}, {ID: "r2", Kind: protocol.RequestResetBreaker}}
	})
	results := func() map[string]protocol.RequestReport {
		out := map[string]protocol.RequestReport{}
		for _, r := range w.intake.Reports() {
			if r.Request != nil {
				out[r.Request.ID] = *r.Request
			}
		}
		return out
	}
	w.eventually("both requests have a result", func() bool { return len(results()) == 2 })
	w.signal("go")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if r := results()["r1"]; !r.OK || r.Message != "checkpoint login-1: Valid, Promoted" {
		t.Errorf("r1: %+v", r)
	}
	if r := results()["r2"]; r.OK || !strings.Contains(r.Message, "not open") {
		t.Errorf("r2: %+v", r)
	}
	w.wantVerdicts("Requested Valid Promoted", "Final Skipped None")
}

// Supervision does not depend on intake: it goes on while it is away, and everything is told when it is back.
func TestIntakeIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", keen)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo a > web/a.new; mv web/a.new web/a.html; ` + w.waitFor("go") + `echo b > web/b.html`
	})
	p := w.start(1, nil)
	w.eventually("the first checkpoint", func() bool { return len(w.intake.Checkpoints()) > 0 })
	w.intake.Refuse(http.StatusServiceUnavailable)
	w.signal("go")
	w.eventually("the work is delivered without intake", func() bool { return w.branch() != "" })
	if f := w.intake.Final(1); f != nil {
		t.Fatalf("intake heard %+v although it was away", f)
	}
	w.intake.Refuse(0)
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("b\n", true)
}
