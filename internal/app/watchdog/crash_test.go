// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// errPulled is what a process ends with when a test pulls its plug.
var errPulled = errors.New("the plug was pulled")

// pullAt is a probe that ends the process when a step is reached for the nth time. Records that acts note have a step before them, too.
func pullAt(step string, n int) func(string) error {
	var mu sync.Mutex
	return func(reached string) error {
		mu.Lock()
		defer mu.Unlock()
		if reached == step {
			n--
		}
		if reached == step && n == 0 {
			return errPulled
		}
		return nil
	}
}

// crashesAt starts a pod whose watchdog ends when a step is reached for the nth time, and begins again. If the step is empty, it does not end.
func (w *world) crashesAt(step string, n int) *pod {
	w.t.Helper()
	if step == "" {
		return w.start(1, nil)
	}
	p := w.start(1, pullAt(step, n))
	if err := p.wait(); !errors.Is(err, errPulled) {
		w.t.Fatalf("the watchdog ended with %v", err)
	}
	p.watch(nil)
	return p
}

// crashScript promotes, breaks a rule and is set right by Shadow, and ends well.
const crashScript = `[ -e web/one.html ] || echo one > web/one.html
	echo evil > web/legacy/evil.html
	n=0; while [ -e web/legacy/evil.html ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done
	rm -f web/legacy/evil.html; echo one > web/one.html; echo two > web/two.html`

// crashPoints are all steps after which a watchdog may end, in their order: the steps of a checkpoint for the first one, and for the next. At each step, the
// cache is lost once; the agent asks no model, so little is remembered of it.
func crashPoints() []plug {
	list := lost("task begun", "task started")
	checkpoint := []string{"captured", "committed", "intent journaled", "restored", "refs moved", "changes logged", "spooled", "done journaled"}
	list = append(append(list, after(checkpoint...)...), lost(checkpoint...)...)
	return append(list, lost("pushed", "delivery journaled", "final journaled", "final spooled")...)
}

// besides are the steps that come at some time while the steps of crashPoints are made.
var besides = []string{"agent exited", "handed over", "handover noted", "history handed over", "history noted"}

// wantUndisturbed holds what is there at the end against what an undisturbed run leaves.
func (w *world) wantUndisturbed(f protocol.FinalReport) {
	w.t.Helper()
	wantFinal(w.t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); got != "A\tweb/one.html\nA\tweb/two.html" {
		w.t.Errorf("branch changes %q", got)
	}
	w.wantBlob("evil\n", false)
	if w.branch() != f.Head || w.trusted("rev-parse", protocol.RefDelivery) != f.Head {
		w.t.Errorf("branch %q, delivery %q, head %q", w.branch(), w.trusted("rev-parse", protocol.RefDelivery), f.Head)
	}
	w.wantEveryCheckpointOnce()
	w.trusted("fsck", "--full", "--strict", "--no-dangling")
	if code, out := verify(w.t, w.paths.Trusted, "--history"); code != 0 {
		w.t.Errorf("verify: code %d\n%s", code, out)
	}
	w.wantEventsAddUp()
	w.wantHandedOver()
	w.wantHistory()
}

// sizes of all files of a commit.
func (w *world) sizes(commit string) map[string]string {
	w.t.Helper()
	files := map[string]string{}
	for line := range strings.SplitSeq(w.trusted("ls-tree", "-r", "-l", commit), "\n") {
		f := strings.Fields(line)
		files[f[4]] = f[3]
	}
	return files
}

// wantEventsAddUp: the file events, applied to the base in order, give the newest checkpoint; none is missing or there twice.
func (w *world) wantEventsAddUp() {
	w.t.Helper()
	files := w.sizes(protocol.RefBase)
	for decoder := json.NewDecoder(strings.NewReader(w.ask("log", "--files"))); decoder.More(); {
		var e struct {
			Event string      `json:"event_type"`
			Path  string      `json:"file_path"`
			Size  json.Number `json:"file_size"`
		}
		if err := decoder.Decode(&e); err != nil {
			w.t.Fatal(err)
		}
		if _, exists := files[e.Path]; exists != (e.Event != "add") {
			w.t.Errorf("event %+v, and whether the file exists: %v", e, exists)
		}
		files[e.Path] = e.Size.String()
		if e.Event == "unlink" {
			delete(files, e.Path)
		}
	}
	if diff := cmp.Diff(w.sizes(protocol.RefChain), files); diff != "" {
		w.t.Errorf("file events add up to something else (-chain +events):\n%s", diff)
	}
}

// wantEveryCheckpointOnce: each commit of the chain, and nothing else, was reported as one checkpoint.
func (w *world) wantEveryCheckpointOnce() {
	w.t.Helper()
	var reported []string
	sequence := int64(0)
	for _, c := range w.intake.Checkpoints() {
		if c.Sequence <= sequence {
			w.t.Errorf("checkpoint %d after checkpoint %d", c.Sequence, sequence)
		}
		sequence = c.Sequence
		if c.Action != protocol.ActionNone {
			reported = append(reported, c.Commit)
		}
	}
	slices.Reverse(reported)
	chain := strings.Fields(w.trusted("rev-list", "--first-parent", protocol.RefChain, "^"+protocol.RefBase))
	if !slices.Equal(chain, reported) {
		w.t.Errorf("chain %q, reported %q", chain, reported)
	}
}

// A watchdog that ends after any step is started again beside the same agent, and goes on as if nothing had happened.
func TestAWatchdogThatCrashesGoesOn(t *testing.T) {
	t.Parallel()
	for name, list := range alternately(crashPoints()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, crashScript, keen, shadow)
			w.tidy, w.fold = true, true
			p := newPlugs(t, list)
			w.wantUndisturbed(p.processes(w.start(1, p.probe())).finish())
		})
	}
	t.Run("besides", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, crashScript, keen, shadow)
		w.tidy, w.fold = true, true
		var lists [][]plug
		for _, step := range besides {
			lists = append(lists, lost(step))
		}
		p := newPlugs(t, lists...)
		w.wantUndisturbed(p.processes(w.start(1, p.probe())).finish())
	})
}

// Whatever intake has had without the watchdog hearing of it is not told again by the process, or the pod, that follows; what it has not had is.
func TestAWatchdogWhoseAnswersAreLostRepeatsNothing(t *testing.T) {
	t.Parallel()
	steps := [][]string{{"intent journaled", "spooled", "done journaled", "delivery journaled", "final journaled"}, {"agent exited"}, {"final spooled"}}
	for name, plugged := range map[string]func(...string) []plug{"the process ends": after, "the pod is lost": lost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, crashScript, keen, shadow, func(o *protocol.Orders) {
				o.Requests = []protocol.Request{{ID: "now", Kind: protocol.RequestCheckpoint}}
			})
			w.tidy, w.fold = true, true
			p := newPlugs(t, plugged(steps[0]...), plugged(steps[1]...), plugged(steps[2]...))
			w.intake.LoseAnswers(true)
			run := p.pods(w.start(1, p.probe()))
			w.intake.LoseAnswers(false)
			w.wantUndisturbed(run.finish())
			if !slices.ContainsFunc(w.intake.Reports(), func(r protocol.Report) bool { return r.Request != nil && r.Request.ID == "now" && r.Request.OK }) {
				t.Error("the request has no result")
			}
		})
	}
}

// podScript does the same for each task, which leaves its name.
const podScript = crashScript + `; echo $TIDEWAITER_TASK > web/two.html`

// lostPods are all steps after which a pod may be lost, in their order: the steps of a checkpoint for the second one of a pod. The next pod continues
// with the next task if what is journaled is the end of one.
func lostPods() []plug {
	list := lost("task begun", "task started", "agent exited")
	for _, step := range []string{"captured", "committed", "intent journaled", "restored", "refs moved", "changes logged", "spooled", "done journaled"} {
		list = append(list, plug{step: step, lost: true, nth: 2})
	}
	return append(list, lost("pushed", "delivery journaled", "final journaled", "final spooled")...)
}

// A pod that is lost after any step is followed by another attempt, which goes on from the last promoted tree.
func TestALostPodIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	for name, list := range alternately(lostPods()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, podScript, keen, shadow, func(o *protocol.Orders) {
				o.Tasks = nil
				for i := range list { // at least as many as there are ends of tasks
					o.Tasks = append(o.Tasks, protocol.Task{Name: fmt.Sprintf("task-%d", i)})
				}
			})
			w.tidy = true
			p := newPlugs(t, list)
			w.wantUndisturbed(p.pods(w.start(1, p.probe())).finish())
		})
	}
	t.Run("besides", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, crashScript, keen, shadow)
		w.tidy = true
		var lists [][]plug
		for _, step := range besides[1:] {
			lists = append(lists, lost(step))
		}
		p := newPlugs(t, lists...)
		w.wantUndisturbed(p.pods(w.start(1, p.probe())).finish())
	})
}

// A git that was killed with its pod leaves locks; they do not stop the next attempt.
func TestLocksOfAKilledGitAreRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crashScript, keen, shadow)
	p := w.start(1, pullAt("intent journaled", 1))
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	p.kill()
	for _, name := range []string{"refs/tidewaiter/chain.lock", "refs/tidewaiter/delivery.lock", "packed-refs.lock", "HEAD.lock"} {
		w.write("trusted/repo.git/"+name, "")
	}
	w.wantUndisturbed(w.start(2, nil).finish())
}

// What a lost pod left behind half written is put aside, never promoted, and gone when the task begins anew.
func TestRemainsOfALostPodAreKeptAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.intake.Order(func(o *protocol.Orders) {
		seldom(o)
		o.Agent.Command[2] = `[ "$TIDEWAITER_ATTEMPT" = 2 ] || { echo half > web/half.html; ` + w.waitFor("never") + `}
			[ -e web/half.html ] && exit 5; echo whole > web/whole.html`
	})
	p := w.start(1, pullAt("captured", 1))
	w.eventually("it has written", func() bool {
		data, err := os.ReadFile(filepath.Join(w.paths.Workspace, "web/half.html"))
		return err == nil && string(data) == "half\n"
	})
	p.kill()
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	before := len(w.intake.Checkpoints())
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("half\n", false)
	w.wantBlob("whole\n", true)
	if chain := w.trusted("rev-list", "--objects", protocol.RefChain); !strings.Contains(chain, "web/half.html") {
		t.Errorf("what was there is lost (%d checkpoints before, %q)", before, w.verdicts())
	}
	w.wantEveryCheckpointOnce()
}

// SIGTERM on the pod: the state of that moment is captured, there is no final report, and the next attempt goes on.
func TestATerminatedPodLeavesAfterACheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.intake.Order(func(o *protocol.Orders) {
		seldom(o)
		o.Agent.Command[2] = `[ -e web/a.html ] && exit 0; echo a > web/a.new; mv web/a.new web/a.html; ` + w.waitFor("never")
	})
	p := w.start(1, nil)
	w.eventually("it has written", func() bool { _, err := os.Stat(filepath.Join(w.paths.Workspace, "web/a.html")); return err == nil })
	p.terminate()
	if err := p.wait(); err != nil {
		t.Fatalf("watchdog: %v", err)
	}
	<-p.gone
	if code := p.agent.ProcessState.ExitCode(); code != 143 {
		t.Errorf("the runner exited with %d", code)
	}
	if f := w.intake.Final(1); f != nil {
		t.Errorf("final report %+v", f)
	}
	w.wantVerdicts("Final Valid Promoted")
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("a\n", true)
}
