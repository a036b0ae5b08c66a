// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

func incremental(o *protocol.Orders) {
	shadow(o)
	o.Policy.Execution.Promotion = policy.PromotionIncremental
}

func reverting(severity policy.Severity, how string) func(*protocol.Orders) {
	return func(o *protocol.Orders) {
		o.Policy.Paths.Severity, o.Policy.Execution.RevertOnViolation = severity, how
	}
}

// untilTold reads lines until one tells of a violation. A warning may come before it.
const untilTold = `until case "$line" in *checkpoint_violation*) true;; *) false;; esac; do read -r line; done; `

// strategyScript breaks a rule beside work that is fine, and waits to be told.
const strategyScript = `echo good > web/good.html; rm web/index.html; echo evil > web/legacy/evil.html; rm README.md
	` + untilTold + `echo "$line" > "$HOME/told"; ls -R . > "$HOME/looking"; mv "$HOME/looking" "$HOME/found"; rm -f web/legacy/evil.html; git checkout -q README.md; `

// TestStrategies takes one look at a workspace with good and evil in it, and then lets the agent end it well.
func TestStrategies(t *testing.T) {
	t.Parallel()
	atFirst := map[string]string{".gitignore": "100644 *.log\n", "README.md": "100644 The shop.\n",
		"web/index.html": "100644 <h1>Shop</h1>\n", "web/legacy/old.html": "100644 <h1>Old</h1>\n"}
	good := map[string]string{".gitignore": "100644 *.log\n", "README.md": "100644 The shop.\n",
		"web/good.html": "100644 good\n", "web/legacy/old.html": "100644 <h1>Old</h1>\n"}
	evil := map[string]string{".gitignore": "100644 *.log\n", "web/good.html": "100644 good\n",
		"web/legacy/old.html": "100644 <h1>Old</h1>\n", "web/legacy/evil.html": "100644 evil\n"}
	for name, tc := range map[string]struct {
		orders   []func(*protocol.Orders)
		action   string
		left     map[string]string
		promoted map[string]string
	}{
		"Direct":                    {nil, protocol.ActionHeld, evil, atFirst},
		"Direct, Full, Error":       {[]func(*protocol.Orders){reverting(policy.Error, policy.RevertFull)}, protocol.ActionHeld, evil, atFirst},
		"Direct, None, Critical":    {[]func(*protocol.Orders){reverting(policy.Critical, policy.RevertNone)}, protocol.ActionHeld, evil, atFirst},
		"Direct, Paths, Critical":   {[]func(*protocol.Orders){reverting(policy.Critical, policy.RevertViolatingPaths)}, protocol.ActionReverted, good, atFirst},
		"Direct, Full, Critical":    {[]func(*protocol.Orders){reverting(policy.Critical, policy.RevertFull)}, protocol.ActionReverted, atFirst, atFirst},
		"Shadow Atomic":             {[]func(*protocol.Orders){shadow}, protocol.ActionReverted, atFirst, atFirst},
		"Shadow Incremental":        {[]func(*protocol.Orders){incremental}, protocol.ActionPartlyPromoted, good, good},
		"Shadow Incremental, alone": {[]func(*protocol.Orders){incremental, onlyLegacy}, protocol.ActionReverted, atFirst, atFirst},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", append([]func(*protocol.Orders){seldom}, tc.orders...)...)
			w.intake.Order(func(o *protocol.Orders) {
				o.Agent.Command[2] = strings.Replace(strategyScript, "until case", w.signalled("written")+"until case", 1) + w.waitFor("end")
			})
			p := w.start(1, nil)
			w.waitSignal("written")
			before := w.onDisk()
			c := w.checkpointNow("now")
			w.eventually("the agent was told", func() bool { _, err := os.Stat(filepath.Join(w.paths.Home, "found")); return err == nil })
			if c.Action != tc.action || c.DeliveryCommit != "" != (tc.action == protocol.ActionPartlyPromoted) {
				t.Errorf("action %s, delivery %q, want %s", c.Action, c.DeliveryCommit, tc.action)
			}
			var told *protocol.RollbackReport
			if tc.action != protocol.ActionHeld {
				told = &protocol.RollbackReport{Cause: protocol.RollbackByViolation}
			}
			if d := cmp.Diff(told, c.Rollback); d != "" {
				t.Errorf("the rollback that is told (-want +got):\n%s", d)
			}
			if d := cmp.Diff(before, w.files(c.Tree)); d != "" {
				t.Errorf("what was there is not kept (-on disk +kept):\n%s", d)
			}
			if d := cmp.Diff(tc.promoted, w.files(w.trusted("rev-parse", protocol.RefDelivery))); d != "" {
				t.Errorf("promoted (-want +got):\n%s", d)
			}
			found, err := os.ReadFile(filepath.Join(w.paths.Home, "found"))
			if _, want := tc.left["web/legacy/evil.html"]; err != nil || strings.Contains(string(found), "evil.html") != want {
				t.Errorf("the agent found %s (%v), want evil: %v", found, err, want)
			}
			if _, want := tc.left["web/good.html"]; strings.Contains(string(found), "good.html") != want {
				t.Errorf("the agent found %s, want good: %v", found, want)
			}
			w.wantTold(`"action_taken":"` + map[bool]string{true: "none", false: "reverted"}[tc.action == protocol.ActionHeld] + `"`)
			w.signal("end")
			outcome := protocol.OutcomeDelivered
			if maps.Equal(tc.left, atFirst) { // all of its work went back, and it does nothing instead
				outcome = protocol.OutcomeBlocked
			}
			wantFinalOutcome(t, p.finish(), outcome)
			w.wantHealthy()
		})
	}
}

// onlyLegacy leaves nothing of the script's work that is allowed.
func onlyLegacy(o *protocol.Orders) { o.Plan.Allowed = []string{"elsewhere/**"} }

func wantFinalOutcome(t *testing.T, f protocol.FinalReport, outcome string) {
	t.Helper()
	if f.Outcome != outcome {
		t.Errorf("final %+v, want %s", f, outcome)
	}
}

// wantHealthy: nothing evil is in the branch's ancestry, and the record is whole.
func (w *world) wantHealthy() {
	w.t.Helper()
	if w.branch() != "" {
		w.wantBlob("evil\n", false)
	}
	w.wantEveryCheckpointOnce()
	if code, out := verify(w.t, w.paths.Trusted, "--history"); code != 0 {
		w.t.Errorf("verify: %d\n%s", code, out)
	}
}

// A part that is invalid by itself is not promoted: there are too many changes, whichever go back.
func TestAPartThatIsInvalidGoesBackWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `mkdir web/new; echo x > web/new/a.html; echo y > web/new/b.html; echo evil > web/legacy/evil.html`, seldom, incremental,
		func(o *protocol.Orders) { o.Policy.Changes.MaxFiles = 1 })
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
	w.wantVerdicts("Final Invalid Reverted")
	if got := w.trusted("rev-parse", protocol.RefDelivery); got != w.trusted("rev-parse", protocol.RefBase) {
		t.Errorf("delivery moved to %s", got)
	}
}

// A final checkpoint that is only partly valid does not complete the work, and keeps what is valid for the next attempt.
func TestAPartDoesNotCompleteATask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[ -e web/good.html ] && exit 0; echo good > web/good.html; echo evil > web/legacy/evil.html`, seldom, incremental)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
	w.wantVerdicts("Final Invalid PartlyPromoted")
	if w.branch() != "" {
		t.Error("something was pushed")
	}
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantBlob("good\n", true)
	w.wantHealthy()
}

// Info is for the log; a warning is told, and holds nothing.
func TestSeverities(t *testing.T) {
	t.Parallel()
	for severity, told := range map[policy.Severity]bool{policy.Info: false, policy.Warning: true} {
		t.Run(string(severity), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", seldom, reverting(severity, policy.RevertFull))
			w.intake.Order(func(o *protocol.Orders) {
				o.Agent.Command[2] = `exec 3<&0; (while read -r line; do echo "$line" >> "$HOME/told"; done) <&3 & echo odd > README.md; ` +
					w.signalled("written") + w.waitFor("end")
			})
			p := w.start(1, nil)
			w.waitSignal("written")
			if c := w.checkpointNow("now"); c.Action != protocol.ActionPromoted || c.ViolationCount != 1 || c.Severity != severity {
				t.Errorf("checkpoint %+v", c)
			}
			if told {
				w.wantTold(`"severity":"warning"`, `"action_taken":"none"`)
			}
			w.signal("end")
			wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if lines, _ := os.ReadFile(filepath.Join(w.paths.Home, "told")); !told && len(lines) > 0 {
				t.Errorf("the agent was told %s", lines)
			}
		})
	}
}

// A write that breaks a rule by its path alone is told before any checkpoint, once, and decides nothing: fixed in time it
// was never a violation. Ignored files, what is allowed and what was written as it was are nobody's business.
func TestTheAgentIsWarnedBeforeACheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `cp web/legacy/old.html "$HOME"; mv "$HOME/old.html" web/legacy/old.html
		mkdir build; echo x > build/noise.log; echo good > web/good.html; echo evil > web/legacy/evil.html; rm README.md
		until case "$(cat "$HOME/told")" in *README.md*evil.html*|*evil.html*README.md*) true;; *) false;; esac; do
			read -r line; echo "$line" >> "$HOME/told"
		done 2>&-
		rm -r build web/legacy/evil.html; git checkout -q README.md`, seldom)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantTold(`"type":"violation_warning"`, `"severity":"error"`, `"file":"README.md"`, `"constraint":"allowed-areas"`,
		`"file":"web/legacy/evil.html"`, `"constraint":"forbidden-areas"`, `"action_taken":"none"`)
	told := w.read("home/told")
	for _, not := range []string{"noise", "good.html", "old.html"} {
		if strings.Contains(told, not) {
			t.Errorf("the agent was warned of %s: %s", not, told)
		}
	}
	w.wantVerdicts("Final Valid Promoted")
	// A busy machine may make two warnings of what was written in one go; nothing is told twice.
	for _, once := range []string{`"file":"README.md"`, `"file":"web/legacy/evil.html"`} {
		if n := strings.Count(told, once); n != 1 {
			t.Errorf("the agent was told %s %d times", once, n)
		}
	}
	w.wantHealthy()
}

// The agent of the next task was warned of nothing yet.
func TestTheAgentOfEachTaskIsWarned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo evil > web/legacy/evil.html; read -r line; echo "$line" >> "$HOME/told"; rm web/legacy/evil.html; echo good >> web/good.html`,
		seldom, func(o *protocol.Orders) {
			o.Tasks = []protocol.Task{{Name: "form"}, {Name: "save"}}
		})
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if n := strings.Count(w.read("home/told"), `"type":"violation_warning"`); n != 2 {
		t.Errorf("the agents were warned %d times", n)
	}
	w.wantVerdicts("Task Valid Promoted", "Final Valid Promoted")
}
