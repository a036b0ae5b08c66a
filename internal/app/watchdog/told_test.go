// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
)

// newTalk is with an agent that reads nothing after its prompt, and whose part the test plays: it asks the model, and writes.
func newTalk(t *testing.T, probe func(string) error, change ...func(*protocol.Orders)) (*talk, *pod) {
	t.Helper()
	w := newWorld(t, "", append([]func(*protocol.Orders){seldom, func(o *protocol.Orders) {
		o.Agent.Runtime, o.Policy.Anomalies.Ladder = "scholar", policy.RungObserve // it does nothing but wait to be told
	}}, change...)...)
	w.runtimes = []runtimes.Runtime{{Name: "scholar", Available: true, Interactive: true, Deterministic: true, Sessions: true, Adapter: scholar{}}}
	w.models = addresses.Free() // a watchdog that begins anew listens there again
	model := &confidant{answer: "Well."}
	run, _ := w.withModels(model, probe)
	k := &talk{w: w, model: model}
	if asked := k.say("Add a login page.", "I begin."); strings.Contains(asked, "[SUPERVISOR]") {
		t.Fatalf("told of nothing: %s", asked)
	}
	return k, run
}

// hears goes on until the model is told something: what a checkpoint has found is known a moment after its report.
func (k *talk) hears(text string) (asked string) {
	k.w.t.Helper()
	k.w.eventually("the model is told: "+text, func() bool {
		asked = k.say("Go on.", "I go on.")
		return strings.Contains(asked, text)
	})
	return asked
}

// wantOnce: it stands in a request once.
func wantOnce(t *testing.T, asked string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if n := strings.Count(asked, text); n != 1 {
			t.Errorf("%q is said %d times in %s", text, n, asked)
		}
	}
}

// TestAModelIsToldOfCheckpoints: what a checkpoint finds broken is told with the next call, at the same place in every later one, and once. What
// the next one finds takes its place; what is fixed is said to be. A person's rollback is heard, too. Nothing goes to standard input.
func TestAModelIsToldOfCheckpoints(t *testing.T) {
	t.Parallel()
	k, run := newTalk(t, nil)
	w := k.w
	w.write("workspace/web/legacy/evil.html", "evil\n")
	w.write("workspace/web/legacy/worse.html", "worse\n")
	w.checkpointNow("one")
	first := "[SUPERVISOR] Checkpoint login-1 found 2 broken rules of severity error."
	k.hears(first)
	wantOnce(t, k.say("Go on.", "I go on."), first, `- \"web/legacy/evil.html\", rule forbidden-areas: `, "All files are as you wrote them.")
	w.remove("workspace/web/legacy/evil.html")
	w.checkpointNow("two")
	wantOnce(t, k.hears("[SUPERVISOR] Checkpoint login-2 found 1 broken rule"), first, "This replaces what the supervisor told you of checkpoint login-1. Fixed since: ")
	w.remove("workspace/web/legacy/worse.html")
	w.checkpointNow("three")
	k.hears("[SUPERVISOR] Checkpoint login-3: the rules that were broken at checkpoint login-2 are fixed.")
	if r := w.request(back("back", protocol.RollbackFull, 1)); !r.OK {
		t.Fatal(r.Message)
	}
	k.hears("[SUPERVISOR] A user has put files of the workspace back. Reverted 2 files: web/legacy/evil.html, web/legacy/worse.html.")
	if asked := k.say("Go on.", "I go on."); strings.Count(asked, "[SUPERVISOR]") != 4 {
		t.Errorf("told of something else: %s", asked)
	}
	for _, kind := range []string{"checkpoint_violation", "violation_warning", "rollback"} {
		if lines := w.lines(kind); len(lines) > 0 {
			t.Errorf("told twice: %q", lines)
		}
	}
	records, _ := w.recorded()
	told := ""
	for _, r := range records {
		if r.Told != nil {
			told += r.Told.Text + "\n"
		}
	}
	wantOnce(t, told, first, "[SUPERVISOR] Checkpoint login-2", "[SUPERVISOR] A user has put files")
	w.remove("workspace/web/legacy/evil.html")
	w.remove("workspace/web/legacy/worse.html")
	w.signal("end")
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantHealthy()
}

// TestAModelIsWarnedBeforeACheckpoint: of a path that will break a rule, with its next call, once; what is fixed by then was no violation.
func TestAModelIsWarnedBeforeACheckpoint(t *testing.T) {
	t.Parallel()
	k, run := newTalk(t, nil)
	w := k.w
	w.write("workspace/web/legacy/evil.html", "evil\n")
	wantOnce(t, k.hears("[SUPERVISOR] The next checkpoint will find 1 broken rule"), `- \"web/legacy/evil.html\", rule forbidden-areas: `)
	w.remove("workspace/web/legacy/evil.html")
	if c := w.checkpointNow("one"); c.ViolationCount != 0 {
		t.Errorf("%+v", c)
	}
	w.write("workspace/README.md", "another readme\n")
	asked := k.hears("README.md")
	wantOnce(t, asked, `web/legacy/evil.html`, `- \"README.md\", rule allowed-areas: `)
	if strings.Count(asked, "[SUPERVISOR]") != 2 {
		t.Errorf("told of something else: %s", asked)
	}
	w.checkpointNow("two")
	k.hears("[SUPERVISOR] Checkpoint login-2 found 1 broken rule")
	w.signal("end")
	wantFinal(t, run.finish(), protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
	// The one of login-2 was not fixed in time.
	if c := w.intake.Status().Conversation; c == nil || c.FixedInTime != 1 {
		t.Errorf("reported: %+v", c)
	}
}

// TestWhatWasPutBackIsToldToTheModel: under Shadow, with the paths that went and what they broke. Work that is done again is delivered.
func TestWhatWasPutBackIsToldToTheModel(t *testing.T) {
	t.Parallel()
	k, run := newTalk(t, nil, shadow)
	w := k.w
	for n := range 2 { // what it breaks once more it is told once more
		w.write("workspace/web/good.html", "good\n")
		w.write("workspace/web/legacy/evil.html", "evil\n")
		if c := w.checkpointNow([]string{"one", "two"}[n]); c.Action != protocol.ActionReverted {
			t.Fatalf("%+v", c)
		}
		k.hears([]string{"[SUPERVISOR] Checkpoint login-1 found 1 broken rule", "[SUPERVISOR] Checkpoint login-2 found 1 broken rule"}[n])
	}
	wantOnce(t, k.say("Go on.", "I do it again."), `Because of this, files went back to the last valid checkpoint: \"web/a.html\", \"web/good.html\", \"web/legacy/evil.html\".`,
		`Because of this, files went back to the last valid checkpoint: \"web/good.html\", \"web/legacy/evil.html\".`)
	w.write("workspace/web/good.html", "good\n")
	w.signal("end")
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("good\n", true)
}

// TestWhatWentBackIsToldAfterACrash: where the watchdog ended after the files went back and before it could tell.
func TestWhatWentBackIsToldAfterACrash(t *testing.T) {
	t.Parallel()
	for step, lost := range map[string]bool{"restored": false, "done journaled": true} {
		t.Run(named(step, lost), func(t *testing.T) {
			t.Parallel()
			k, run := newTalk(t, pullAt(step, 1), shadow)
			w := k.w
			w.write("workspace/web/legacy/evil.html", "evil\n")
			w.intake.Order(func(o *protocol.Orders) {
				o.Requests = append(o.Requests, protocol.Request{ID: "now", Kind: protocol.RequestCheckpoint})
			})
			if err := run.wait(); !errors.Is(err, errPulled) {
				t.Fatalf("watchdog: %v", err)
			}
			run.resume(lost)
			w.eventually("models are there again", func() bool {
				c, err := net.Dial("tcp", w.models)
				return err == nil && c.Close() == nil
			})
			wantOnce(t, k.hears("[SUPERVISOR] Files of yours went back at checkpoint login-1, which keeps them."), "web/legacy/evil.html: it was added in the forbidden area")
			w.write("workspace/web/good.html", "good\n")
			w.signal("end")
			wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			w.wantHealthy()
		})
	}
}

// TestAnAgentWithToolsIsToldOfCheckpoints: beside the result of its next call of a tool, once.
func TestAnAgentWithToolsIsToldOfCheckpoints(t *testing.T) {
	t.Parallel()
	w := agentByHand(t, func(o *protocol.Orders) { o.Agent.Runtime = "scholar" })
	w.runtimes = []runtimes.Runtime{{Name: "scholar", Available: true, Deterministic: true, Adapter: scholar{}}}
	p := w.start(1, nil)
	c := w.connect()
	patch := map[string]any{"operation_id": "op1", "patch": newFile("web/a.html", "0")}
	if text, ok := c.try("repo_apply_patch", patch); !ok || strings.Contains(text, "[SUPERVISOR]") {
		t.Fatal(text)
	}
	patch = map[string]any{"operation_id": "op2", "patch": newFile("web/b.html", "0")}
	if text, ok := c.try("repo_apply_patch", patch); !ok || strings.Contains(text, "[SUPERVISOR]") {
		t.Fatal(text)
	}
	if r := w.request(back("back", protocol.RollbackFull, 1)); !r.OK {
		t.Fatal(r.Message)
	}
	told := 0
	w.eventually("it is told", func() bool {
		text, _ := c.try("feature_get_context", map[string]any{})
		told += strings.Count(text, "[SUPERVISOR] A user has put files of the workspace back. Reverted 1 file: web/b.html.")
		return told > 0
	})
	if text, _ := c.try("feature_get_context", map[string]any{}); strings.Contains(text, "[SUPERVISOR]") || told != 1 {
		t.Errorf("told %d times, then %s", told, text)
	}
	c.complete()
	w.signal("exit")
	p.finish()
	if lines := w.lines("rollback"); len(lines) > 0 {
		t.Errorf("told twice: %q", lines)
	}
}

// critical has a broken rule of paths be of severity Critical.
func critical(o *protocol.Orders) { o.Policy.Paths.Severity = policy.Critical }

// acknowledged is what intake was told that the agent has acknowledged, once the journal has it too.
func (w *world) acknowledged() (all []protocol.Acknowledgment) {
	w.t.Helper()
	for _, r := range w.intake.Reports() {
		if r.Acknowledged != nil {
			all = append(all, *r.Acknowledged)
		}
	}
	records, _ := w.recorded()
	journaled := 0
	for _, r := range records {
		if r.Acknowledged != nil {
			journaled++
		}
	}
	return all[:min(journaled, len(all))]
}

// TestAModelAcknowledges a critical violation by a line of its answer, which is reported without what is secret in it.
func TestAModelAcknowledges(t *testing.T) {
	t.Parallel()
	k, run := newTalk(t, nil, critical)
	w := k.w
	w.write("workspace/web/legacy/evil.html", "evil\n")
	w.checkpointNow("one")
	wantOnce(t, k.hears("[SUPERVISOR] Checkpoint login-1 found 1 broken rule of severity critical."), "The rules are: forbidden-areas.")
	k.say("Go on.", "VIOLATION other: UNDERSTOOD\nVIOLATION forbidden-areas: UNDERSTOOD - I write to web with ghp_"+"Zq3xV7mK9pL2rT5wY8"+"bN1cD4fG6hJ0sA2eU7")
	w.eventually("it is reported", func() bool { return len(w.acknowledged()) == 1 })
	got := w.acknowledged()[0]
	if got.Checkpoint != 1 || got.Rule != "forbidden-areas" || got.Turn == 0 || !strings.HasPrefix(got.Text, "I write to web with ") || strings.Contains(got.Text, "Zq3xV7mK9pL2rT5wY8") {
		t.Errorf("reported %+v", got)
	}
	w.remove("workspace/web/legacy/evil.html")
	w.signal("end")
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantHealthy()
}

// understood is the shell command by which an agent acknowledges a rule at the first checkpoint.
func understood(rule string) string {
	return `echo '{"type":"violation_ack","understood":true,"checkpoint_id":"login-1","constraint":"` + rule + `","corrective_action":"I write to web"}' >&$TIDEWAITER_REPLY_FD; `
}

// TestACommandAcknowledges by a line where it may reply. What it was not told of acknowledges nothing.
func TestACommandAcknowledges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", keen, critical)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo evil > web/legacy/evil.html; ` + untilTold + `echo "$line" > "$HOME/told"; ` + understood("other") + understood("forbidden-areas") +
			w.waitFor("go") + `rm web/legacy/evil.html; echo good > web/good.html`
	})
	run := w.start(1, nil)
	w.eventually("it is reported", func() bool { return len(w.acknowledged()) == 1 })
	w.signal("go")
	if got := w.acknowledged(); len(got) != 1 || got[0] != (protocol.Acknowledgment{Checkpoint: 1, Rule: "forbidden-areas", Text: "I write to web"}) {
		t.Errorf("reported %+v", got)
	}
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	told, err := os.ReadFile(filepath.Join(w.paths.Home, "told"))
	if err != nil || !strings.Contains(string(told), `"requires_acknowledgment":true`) {
		t.Errorf("told %s, %v", told, err)
	}
}
