// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
)

// looperEnv makes the test binary an agent that asks a model and does what it says.
const looperEnv = "TIDEWAITER_TEST_LOOPER"

// becomeLooper notes that it has started, changes the workspace, and asks the model until that has nothing more to do. Whatever the
// model calls has the same result.
func becomeLooper() error {
	starts := filepath.Join(os.Getenv("HOME"), "starts")
	before, _ := os.ReadFile(starts)
	n := strings.Count(string(before), "\n") + 1
	told := strings.ReplaceAll(os.Getenv(protocol.EnvInstructions), "\n", " ")
	if err := os.WriteFile(starts, fmt.Appendf(before, "%s\n", told), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(fmt.Sprintf("web/wrong-%d.html", n), fmt.Appendf(nil, "wrong %d\n", n), 0o600); err != nil {
		return err
	}
	messages := []string{fmt.Sprintf(`{"role":"user","content":%q}`, "Add a page. "+told)}
	for {
		answer, err := askModel(messages)
		if err != nil {
			time.Sleep(10 * time.Millisecond) // as clients do when a watchdog is started anew
			continue
		}
		if answer.Stop != "tool_use" {
			return os.WriteFile("web/done.html", []byte("done\n"), 0o600)
		}
		id := fmt.Sprintf("call_%d", len(messages))
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"Deploy","input":{"to":"web"}}]}`, id),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"is_error":true,"content":"Error: cannot"}]}`, id))
	}
}

func askModel(messages []string) (answer struct {
	Stop string `json:"stop_reason"`
}, err error,
) {
	body := `{"model":"m","max_tokens":10,"tools":[{"name":"Deploy"}],"messages":[` + strings.Join(messages, ",") + `]}`
	r, err := http.Post(os.Getenv(protocol.EnvModels)+"/anthropic/v1/messages", "application/json", strings.NewReader(body)) //nolint:noctx // it ends with the process
	if err != nil {
		return answer, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return answer, errors.New(r.Status)
	}
	return answer, json.NewDecoder(r.Body).Decode(&answer)
}

// oracle is a model that calls the same tool until it hears what it waits for.
type oracle struct {
	// until a request has this text, and, of a restarted agent, until is what it is told before its task.
	until string

	mu     sync.Mutex
	bodies []string
}

func (o *oracle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		tunnel(w, r.Host)
		return
	case r.URL.Path == protocol.AllowancePath:
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	o.mu.Lock()
	o.bodies = append(o.bodies, string(body))
	o.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if o.until != "" && strings.Contains(string(body), o.until) {
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":1}}`)
		return
	}
	_, _ = io.WriteString(w, `{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"x","name":"Deploy","input":{"to":"web"}}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":1}}`)
}

// heard are the requests so far.
func (o *oracle) heard() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.bodies)
}

// climbing is a world whose policy lets steering climb to a rung, soon.
func climbing(t *testing.T, rung policy.Rung, until string, changes ...func(*protocol.Orders)) (*world, *oracle) {
	t.Helper()
	w := newWorld(t, "", append([]func(*protocol.Orders){seldom, func(o *protocol.Orders) {
		a := &o.Policy.Anomalies
		a.CheckEveryTurns, a.CooldownTurns, a.Loop, a.Hold, a.Ladder = 1, 1, 2, 20*time.Millisecond, rung
		o.Agent.Command = []string{os.Args[0]}
		o.Agent.Env = append(o.Agent.Env, looperEnv+"=1")
	}}, changes...)...)
	model := &oracle{until: until}
	w.serveGateway(model)
	return w, model
}

// starts of the agent: what each was told before its task.
func (w *world) starts() []string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.paths.Home, "starts"))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// wantTakenBack: what the agent had written before was captured, taken back and not delivered; each so many times.
func (w *world) wantTakenBack(times int) {
	w.t.Helper()
	back := 0
	for _, c := range w.intake.Checkpoints() {
		if c.Trigger == protocol.TriggerSteering && c.Action == protocol.ActionReverted {
			back++
			if text := w.trusted("show", c.Commit+":web/wrong-1.html"); text != "wrong 1" { // nothing is lost
				w.t.Errorf("checkpoint %d has %q", c.Sequence, text)
			}
		}
	}
	if back != times {
		w.t.Errorf("taken back %d times, want %d: %+v", back, times, w.intake.Checkpoints())
	}
	if w.branch() != "" {
		w.wantBlob("wrong 1\n", false)
	}
	if answers := w.results(); len(answers) > 0 {
		w.t.Errorf("requests of nobody are reported: %+v", answers)
	}
}

// answers to requests of people that were reported.
func (w *world) results() (all []protocol.RequestReport) {
	for _, r := range w.intake.Reports() {
		if r.Request != nil {
			all = append(all, *r.Request)
		}
	}
	return all
}

const (
	wentBack  = "The workspace has gone back to the last valid checkpoint"
	begunAnew = "An agent that worked on this task before you was ended"
	wasHeld   = "Your work was held here"
)

// TestSteeringTakesWorkBack: an agent that goes on in a loop finds the workspace as the last valid checkpoint has it, and is told so with the
// call that was held meanwhile.
func TestSteeringTakesWorkBack(t *testing.T) {
	t.Parallel()
	w, model := climbing(t, policy.RungRollback, wentBack)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantTakenBack(1)
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); got != "A\tweb/done.html" {
		t.Errorf("branch changes %q", got)
	}
	if len(w.starts()) != 1 {
		t.Errorf("started %d times", len(w.starts()))
	}
	all := model.heard()
	if last := all[len(all)-1]; !strings.Contains(last, wasHeld) || !strings.Contains(last, "calls are left out of the conversation here") {
		t.Errorf("the rungs before it: %s", last)
	}
	for _, body := range all {
		if !json.Valid([]byte(body)) {
			t.Errorf("not JSON: %s", body)
		}
	}
	if c := w.intake.Status().Conversation; c == nil || c.Turn != int64(len(all)) { // also what there was no time to report before
		t.Errorf("of %d turns the last status says %+v", len(all), c)
	}
}

// TestSteeringStartsTheAgentAnew from the last valid checkpoint, without its session, and with a word about what went wrong.
func TestSteeringStartsTheAgentAnew(t *testing.T) {
	t.Parallel()
	w, _ := climbing(t, policy.RungRestart, begunAnew)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantTakenBack(1) // nothing was written between the rollback and the restart
	starts := w.starts()
	if len(starts) != 2 || starts[0] != "" || !strings.Contains(starts[1], "Deploy has failed") {
		t.Errorf("started with %q", starts)
	}
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); got != "A\tweb/done.html\nA\tweb/wrong-2.html" {
		t.Errorf("branch changes %q", got)
	}
}

// TestSteeringGivesUp when the agent that was started anew does the same: a person decides, and knows why.
func TestSteeringGivesUp(t *testing.T) {
	t.Parallel()
	w, _ := climbing(t, policy.RungBlock, "")
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonAnomalyPersists)
	if !strings.Contains(f.Message, `task "login": the same call of Deploy has failed`) && !strings.Contains(f.Message, "Deploy has failed") {
		t.Errorf("message %q", f.Message)
	}
	if len(w.starts()) != 2 {
		t.Errorf("started %d times", len(w.starts()))
	}
	w.wantTakenBack(1)
	// A person who retries starts with a conversation of which nothing is held against it.
	model := &oracle{until: "[SUPERVISOR]"}
	w.serveGateway(model)
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
}

// TestSteeringHoldsForAPerson: the call waits, the agent is frozen and people are told why, until one lets it go on.
func TestSteeringHoldsForAPerson(t *testing.T) {
	t.Parallel()
	w, model := climbing(t, policy.RungHold, wasHeld)
	run := w.start(1, nil)
	w.eventually("people are told", func() bool {
		s := w.intake.Status()
		return s != nil && s.State == protocol.StateFrozen && s.Fault != nil && s.Fault.Reason == protocol.ReasonAgentHeld
	})
	if f := w.intake.Status().Fault; !strings.Contains(f.Message, "Deploy has failed") && !strings.Contains(f.Message, "call of Deploy") {
		t.Errorf("fault %+v", f)
	}
	before := len(model.heard())
	if c := w.checkpointNow("now"); c.Action != protocol.ActionPromoted { // which lets it go on for a moment
		t.Errorf("a checkpoint that was asked for: %+v", c)
	}
	if now := len(model.heard()); now != before {
		t.Errorf("the model was asked %d times while the agent was held", now-before)
	}
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = append(o.Requests, protocol.Request{ID: "go-on", Kind: protocol.RequestRelease}, protocol.Request{ID: "once-more", Kind: protocol.RequestRelease})
	})
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	for _, r := range w.results() {
		if want := r.ID != "once-more"; r.OK != want {
			t.Errorf("%+v", r)
		}
	}
}

// TestAReleaseWaitsForTheRunner: a person lets an agent go on whose watchdog has just been started again, and does not know yet that it is held.
func TestAReleaseWaitsForTheRunner(t *testing.T) {
	t.Parallel()
	w, _ := climbing(t, policy.RungHold, wasHeld)
	w.models = addresses.Free()
	var dies atomic.Bool
	run := w.start(1, func(string) error {
		if dies.Load() {
			return errPulled
		}
		return nil
	})
	w.eventually("the agent is held", func() bool {
		s := w.intake.Status()
		return s != nil && s.State == protocol.StateFrozen && s.Fault != nil && s.Fault.Reason == protocol.ReasonAgentHeld
	})
	dies.Store(true)
	w.intake.Order(func(o *protocol.Orders) {
		o.Requests = append(o.Requests, protocol.Request{ID: "now", Kind: protocol.RequestCheckpoint})
	})
	if err := run.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	runner := run.agent.Process
	if err := runner.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.intake.Order(func(o *protocol.Orders) { // the second is answered at once, and shows that the first was seen
		o.Requests = append(o.Requests, protocol.Request{ID: "go-on", Kind: protocol.RequestRelease}, protocol.Request{ID: "reset", Kind: protocol.RequestResetBreaker})
	})
	run.watch(nil)
	w.eventually("the other request is answered", func() bool {
		return slices.ContainsFunc(w.results(), func(r protocol.RequestReport) bool { return r.ID == "reset" })
	})
	if err := runner.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	for _, r := range w.results() {
		if r.ID == "go-on" && !r.OK {
			t.Errorf("%+v", r)
		}
	}
}

// TestMeasuresOutliveAWatchdog that ends after any step of one: each is taken once.
func TestMeasuresOutliveAWatchdog(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rung  policy.Rung
		until string
		step  string
		times int
		want  string
	}{
		"rollback, captured":         {policy.RungRollback, wentBack, "captured", 1, protocol.OutcomeDelivered},
		"rollback, intent journaled": {policy.RungRollback, wentBack, "intent journaled", 1, protocol.OutcomeDelivered},
		"rollback, restored":         {policy.RungRollback, wentBack, "restored", 1, protocol.OutcomeDelivered},
		"rollback, done":             {policy.RungRollback, wentBack, "done journaled", 1, protocol.OutcomeDelivered},
		"restart, journaled":         {policy.RungRestart, begunAnew, "measure journaled", 1, protocol.OutcomeDelivered},
		"restart, started":           {policy.RungRestart, begunAnew, "agent launched", 2, protocol.OutcomeDelivered},
		"restart, start journaled":   {policy.RungRestart, begunAnew, "task started", 2, protocol.OutcomeDelivered},
		"block, journaled":           {policy.RungBlock, "", "measure journaled", 2, protocol.OutcomeBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := climbing(t, tc.rung, tc.until)
			w.models = addresses.Free()
			run := w.start(1, pullAt(tc.step, tc.times))
			if err := run.wait(); !errors.Is(err, errPulled) {
				t.Fatalf("the watchdog ended with %v", err)
			}
			run.watch(nil)
			f := run.finish()
			if f.Outcome != tc.want {
				t.Errorf("%+v", f)
			}
			starts := 1
			if tc.rung != policy.RungRollback {
				starts = 2
			}
			if got := w.starts(); len(got) != starts {
				t.Errorf("started %d times, want %d: %q", len(got), starts, got)
			}
			w.wantTakenBack(1)
			if tc.rung == policy.RungBlock { // a person who retries has the whole ladder again
				w.serveGateway(&oracle{until: begunAnew})
				wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			}
		})
	}
}

// TestAnAgentThatIsFasterThanItsStart: what steering wants before the start of the agent is noted is done after that.
func TestAnAgentThatIsFasterThanItsStart(t *testing.T) {
	t.Parallel()
	w, model := climbing(t, policy.RungRollback, wentBack)
	slow := func(step string) error {
		if step == "agent launched" { // it goes on when the agent's call is held
			w.eventually("the agent has climbed", func() bool { return len(model.heard()) > 5 })
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	}
	wantFinal(t, w.start(1, slow).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantTakenBack(1)
	if n := len(model.heard()); n > 9 { // one call for each rung, and those before
		t.Errorf("it took %d calls", n)
	}
}
