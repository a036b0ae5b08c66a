// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

// wroteTasks leaves a line for each task that the agent gets.
const wroteTasks = `echo "$TIDEWAITER_TASK: $TIDEWAITER_INSTRUCTIONS" | head -1 >> "$HOME/tasks"; echo "$TIDEWAITER_TASK" > "web/$(basename "$TIDEWAITER_TASK").html"`

// newPlanned is a world in which a model divides the work. The gateway's backend speaks one dialect, and plays the script of the planner.
func newPlanned(t *testing.T, speaks, script string) (*world, *provider.Server) {
	t.Helper()
	w := newWorld(t, wroteTasks, seldom, func(o *protocol.Orders) {
		o.Planning = protocol.PlanningAuto
		o.Prompt = "Add a login page.\n```script propose_plan\nturns:\n" + script + "\n```\n"
	})
	return w, w.serveSupervisor(speaks)
}

// serveSupervisor serves a gateway for the watchdog's own questions. Its backend speaks one dialect, and plays the scripts that the questions have.
func (w *world) serveSupervisor(speaks string) *provider.Server {
	w.t.Helper()
	d, _ := dialect.Find(speaks)
	player := provider.New("")
	var calls atomic.Int64
	w.serveGateway(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			tunnel(rw, r.Host)
		case r.URL.Path == protocol.AllowancePath:
			http.NotFound(rw, r)
		case r.Header.Get(dialect.RoleHeader) != policy.RoleSupervisor || r.Header.Get(dialect.TaskHeader) != "" || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "):
			http.Error(rw, "not a call of the watchdog itself", http.StatusForbidden)
		case !strings.HasPrefix(r.URL.Path, d.Prefix+"/"):
			rw.Header().Set(protocol.DialectsHeader, d.Name)
			http.Error(rw, "the backend speaks "+d.Name, http.StatusServiceUnavailable)
		default:
			rw.Header().Set(protocol.CallHeader, fmt.Sprint("call-", calls.Add(1)))
			http.StripPrefix(d.Prefix, player).ServeHTTP(rw, r)
		}
	}))
	return player
}

const planOfTwo = `- tool: {name: propose_plan, input: {milestones: [{name: page, tasks: [{name: form, instructions: Add the form.}, {name: save, instructions: Save it.}]}], allowedAreas: ["web/*.html"]}}`

// planned is the plan that the journal has.
func (w *world) planned() (all []journal.Planned) {
	records, _ := w.recorded()
	for _, r := range records {
		if r.Planned != nil {
			all = append(all, *r.Planned)
		}
	}
	return all
}

// tasks that the agent got.
func (w *world) tasks() string {
	text, err := os.ReadFile(filepath.Join(w.paths.Home, "tasks"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// TestAModelDividesTheWork: in each dialect, before the first task. The agent gets the planned tasks, and the plan is reported.
func TestAModelDividesTheWork(t *testing.T) {
	t.Parallel()
	for _, d := range dialect.All() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			w, player := newPlanned(t, d.Name, planOfTwo)
			wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if got, want := w.tasks(), "page/form: Add the form.\npage/save: Save it."; got != want {
				t.Errorf("the agent got %q, want %q", got, want)
			}
			if got := w.delivered("web/save.html"); got != "page/save" {
				t.Errorf("delivered %q", got)
			}
			if p := w.planned(); len(p) != 1 || p[0].Plan == nil {
				t.Fatalf("plans in the journal: %+v", p)
			}
			reported := w.intake.Plans()
			if len(reported) != 1 || reported[0].Hash == "" || len(reported[0].Plan.Milestones) != 1 {
				t.Errorf("plans reported: %+v", reported)
			}
			if asked := player.Recorded(); len(asked) != 1 || !strings.Contains(asked[0].Body, "web/legacy/**") {
				t.Errorf("%d questions", len(asked))
			}
		})
	}
}

// TestAPlanThatCannotBeUsed: the planner hears of it once. Then the prompt is the only task.
func TestAPlanThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	const wrong = `- tool: {name: propose_plan, input: {milestones: [{name: page, tasks: [{name: form, instructions: Add it., gates: [deploy]}]}]}}`
	for name, tc := range map[string]struct {
		script, tasks string
		questions     int
	}{
		"once":       {wrong + "\n" + planOfTwo, "page/form: Add the form.\npage/save: Save it.", 2},
		"twice":      {wrong + "\n" + wrong + "\n" + planOfTwo, "login:", 2},
		"only words": {"- text: I would do it in two steps.\n- text: As I said.", "login:", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, player := newPlanned(t, "openai-chat", tc.script)
			wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if got := w.tasks(); !strings.HasPrefix(got, tc.tasks) {
				t.Errorf("the agent got %q, want %q", got, tc.tasks)
			}
			if n := len(player.Recorded()); n != tc.questions {
				t.Errorf("%d questions, want %d", n, tc.questions)
			}
			p := w.planned()
			if len(p) != 1 || (p[0].Plan == nil) != (tc.tasks == "login:") || (p[0].Message != "") != (tc.tasks == "login:") {
				t.Errorf("plans in the journal: %+v", p)
			}
		})
	}
}

// TestAPlanOutlivesCrashes: the plan in the journal is the only one, and every process and attempt follows it.
func TestAPlanOutlivesCrashes(t *testing.T) {
	t.Parallel()
	w, player := newPlanned(t, "anthropic", planOfTwo)
	plugs := newPlugs(t, after("plan reported", "planned"))
	wantFinal(t, plugs.processes(w.start(1, plugs.probe())).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got, want := w.tasks(), "page/form: Add the form.\npage/save: Save it."; got != want {
		t.Errorf("the agent got %q, want %q", got, want)
	}
	if n := len(player.Recorded()); n != 2 { // again after the plan that was only reported
		t.Errorf("%d questions, want 2", n)
	}
	if p := w.planned(); len(p) != 1 {
		t.Errorf("plans in the journal: %+v", p)
	}
}

// TestAPlannerIsCalledOff: who suspends a Feature does not wait for a provider that is away.
func TestAPlannerIsCalledOff(t *testing.T) {
	t.Parallel()
	w, player := newPlanned(t, "anthropic", "- {text: Hm., delay: 10m}")
	run := w.start(1, nil)
	w.eventually("the planner was asked", func() bool { return len(player.Recorded()) > 0 })
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	wantFinal(t, run.finish(), protocol.OutcomeSuspended, protocol.ReasonSuspended)
	if p := w.planned(); len(p) != 0 {
		t.Errorf("plans in the journal: %+v", p)
	}
	if got := w.tasks(); got != "" {
		t.Errorf("the agent got %q", got)
	}
}

// TestAPlanIsFollowedBeforeIntakeAnswers: the watchdog ends between the record of the plan and the record of the orders with its tasks, and the
// manager is away when it continues.
func TestAPlanIsFollowedBeforeIntakeAnswers(t *testing.T) {
	t.Parallel()
	w, _ := newPlanned(t, "anthropic", planOfTwo)
	run := w.start(1, pullAt("planned", 1))
	if err := run.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	w.intake.Refuse(503)
	run.resume(false)
	w.eventually("an agent has started", func() bool { return w.tasks() != "" })
	if got := w.tasks(); !strings.HasPrefix(got, "page/form") {
		t.Errorf("the agent got %q", got)
	}
}
