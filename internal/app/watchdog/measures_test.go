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

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
)

// looperEnv makes the test binary an agent that asks a model and does what it says.
const looperEnv = "TIDEWAITER_TEST_LOOPER"

// silentEnv makes it one that ends at once when it is to go on with its session.
const silentEnv = "TIDEWAITER_TEST_SILENT"

// becomeLooper asks the model until that calls no tool, as the CLIs do: then it keeps its session and ends. Whatever the model calls has the same
// result.
func becomeLooper() error {
	messages, err := hears()
	if err != nil || len(messages) > 1 && os.Getenv(silentEnv) != "" {
		return err
	}
	for {
		answer, err := askModel(messages)
		if err != nil {
			time.Sleep(10 * time.Millisecond) // as clients do when a watchdog is started anew
			continue
		}
		if answer.Stop != "tool_use" {
			if answer.Content[0].Text == "Done." {
				if err := os.WriteFile("web/done.html", []byte("done\n"), 0o600); err != nil {
					return err
				}
			}
			messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":%q}`, answer.Content[0].Text))
			return os.WriteFile(filepath.Join(os.Getenv("HOME"), "session"), []byte(strings.Join(messages, "\n")), 0o600)
		}
		id := fmt.Sprintf("call_%d", len(messages))
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"Deploy","input":{"to":"web"}}]}`, id),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"is_error":true,"content":"Error: cannot"}]}`, id))
	}
}

// hears what it is started with. It goes on with its session, or notes that it has started and changes the workspace.
func hears() (messages []string, err error) {
	if correction := os.Getenv("CORRECTION"); correction != "" {
		session, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), "session"))
		return append(strings.Split(string(session), "\n"), fmt.Sprintf(`{"role":"user","content":%q}`, correction)), err
	}
	starts := filepath.Join(os.Getenv("HOME"), "starts")
	before, _ := os.ReadFile(starts)
	n := strings.Count(string(before), "\n") + 1
	told := strings.ReplaceAll(os.Getenv(protocol.EnvInstructions), "\n", " ")
	if err := os.WriteFile(starts, fmt.Appendf(before, "%s\n", told), 0o600); err != nil {
		return nil, err
	}
	err = os.WriteFile(fmt.Sprintf("web/wrong-%d.html", n), fmt.Appendf(nil, "wrong %d\n", n), 0o600)
	return []string{fmt.Sprintf(`{"role":"user","content":%q}`, "Add a page. "+told)}, err
}

func askModel(messages []string) (answer struct {
	Stop    string `json:"stop_reason"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
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

// oracle is a model that calls the same tool until it hears what it waits for. Where it may call none, it says so.
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
	content, stop := `{"type":"tool_use","id":"x","name":"Deploy","input":{"to":"web"}}`, "tool_use"
	switch {
	case strings.Contains(string(body), `"tool_choice":{"type":"none"}`):
		content, stop = `{"type":"text","text":"I have no tools."}`, "end_turn"
	case o.until != "" && strings.Contains(string(body), o.until):
		content, stop = `{"type":"text","text":"Done."}`, "end_turn"
	}
	_, _ = fmt.Fprintf(w, `{"type":"message","role":"assistant","content":[%s],"stop_reason":%q,"usage":{"input_tokens":9,"output_tokens":1}}`, content, stop)
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
		o.Agent.Runtime, o.Agent.Command = "monk", []string{os.Args[0]}
		o.Agent.Env = append(o.Agent.Env, looperEnv+"=1")
	}}, changes...)...)
	w.runtimes = []runtimes.Runtime{monastery}
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
			if b := c.Rollback; b == nil || b.Cause != protocol.RollbackBySupervision || !strings.Contains(b.Reason, "Deploy has failed") || b.To != 0 {
				w.t.Errorf("checkpoint %d tells of the rollback %+v", c.Sequence, b)
			}
			if text := w.trusted("show", c.Commit+":web/wrong-1.html"); text != "wrong 1" { // nothing is lost
				w.t.Errorf("checkpoint %d has %q", c.Sequence, text)
			}
		}
	}
	if back != times {
		w.t.Errorf("taken back %d times, want %d: %+v", back, times, w.intake.Checkpoints())
	}
	if w.branch() != "" {
		w.wantBlob("wrong 1\n", times == 0)
	}
	if answers := w.results(); len(answers) > 0 {
		w.t.Errorf("requests of nobody are reported: %+v", answers)
	}
}

// wantGoesOn: the agent was started again in its session after a turn without tools, so many times.
func (w *world) wantGoesOn(times int) {
	w.t.Helper()
	records, _ := w.recorded()
	goes := 0
	for _, r := range records {
		if r.TaskCorrected != nil && r.TaskCorrected.ID != "" && strings.Contains(r.TaskCorrected.Text, wasBare) {
			goes++
		}
	}
	if goes != times {
		w.t.Errorf("goes on %d times, want %d", goes, times)
	}
}

// wantRungs: what was done about the anomaly, rung by rung. The ends of anomalies are "over".
func (w *world) wantRungs(rungs ...policy.Rung) {
	w.t.Helper()
	var got []policy.Rung
	for _, x := range w.steered() {
		rung := policy.Rung(x.Rung)
		if x.Over {
			rung = over
		}
		if n := len(got); n == 0 || got[n-1] != rung || rung == policy.RungNoTools {
			got = append(got, rung)
		}
	}
	if diff := cmp.Diff(rungs, got); diff != "" {
		w.t.Errorf("rungs (-want +got):\n%s", diff)
	}
}

// over stands for the end of an anomaly.
const over = policy.Rung("over")

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
	begunAnew = "The supervisor ended an agent that worked on this task before you"
	wasHeld   = "The supervisor held your work here"
	wasBare   = "your last turn had no tools, and your run ended with it"
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
	if len(starts) != 2 || !strings.HasPrefix(starts[0], "You may write within these bounds.") || !strings.Contains(starts[1], "Deploy has failed") {
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

// TestATurnWithoutToolsIsNoEnd: an agent that ends with the answer of such a turn goes on in its session and knows why. What is wrong with it is not
// over by that. A next turn that says that all is done is its end.
func TestATurnWithoutToolsIsNoEnd(t *testing.T) {
	t.Parallel()
	w, model := climbing(t, policy.RungNudge, wasBare)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantGoesOn(1)
	w.wantTakenBack(0)
	w.wantRungs(policy.RungNudge, policy.RungNoTools, policy.RungNoTools)
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); got != "A\tweb/done.html\nA\tweb/wrong-1.html" {
		t.Errorf("branch changes %q", got)
	}
	all := model.heard()
	if last := all[len(all)-1]; strings.Contains(last, "tool_choice") || !strings.Contains(last, "Deploy has failed") || strings.Count(last, "This turn has no tools") != 1 {
		t.Errorf("the last request: %s", last)
	}
}

// TestAnAgentGoesOnUpTheLadder: one that goes on after its turn without tools, and does the same, climbs to the end of the ladder. It has no such turn
// again.
func TestAnAgentGoesOnUpTheLadder(t *testing.T) {
	t.Parallel()
	w, _ := climbing(t, policy.RungBlock, "")
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonAnomalyPersists)
	w.wantGoesOn(1)
	w.wantRungs(policy.RungNudge, policy.RungDirective, policy.RungSurgery, policy.RungNoTools, policy.RungNoTools, policy.RungHold, policy.RungRollback, policy.RungRestart, over,
		policy.RungNudge, policy.RungDirective, policy.RungSurgery, policy.RungHold, policy.RungBlock, over)
}

// TestAnAgentThatEndsAgain when it is to go on, without a turn, is started anew where the ladder allows it. Otherwise a person decides.
func TestAnAgentThatEndsAgain(t *testing.T) {
	t.Parallel()
	silent := func(o *protocol.Orders) { o.Agent.Env = append(o.Agent.Env, silentEnv+"=1") }
	for rung, want := range map[policy.Rung]int{policy.RungNudge: 1, policy.RungRestart: 2} {
		t.Run(string(rung), func(t *testing.T) {
			t.Parallel()
			w, _ := climbing(t, rung, begunAnew, silent)
			f := w.start(1, nil).finish()
			if got := len(w.starts()); got != want {
				t.Errorf("started %d times, want %d", got, want)
			}
			w.wantGoesOn(1)
			if want == 2 {
				wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
				return
			}
			wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonAnomalyPersists)
			if !strings.Contains(f.Message, "Deploy has failed") || !strings.Contains(f.Message, "the agent ended with a turn without tools, and it had been started again") {
				t.Errorf("message %q", f.Message)
			}
			if w.branch() != "" {
				t.Error("its work is delivered")
			}
		})
	}
}

// TestACompleteTaskIsDone: the agent's word that its task is complete counts, whatever its last turn was.
func TestACompleteTaskIsDone(t *testing.T) {
	t.Parallel()
	w := agentByHand(t, func(o *protocol.Orders) { o.Policy.Anomalies.CheckEveryTurns, o.Policy.Anomalies.Loop = 1, 2 })
	c := &circling{world: w, model: &model{}, entries: []string{`{"role":"user","content":"Add a login page."}`}, fails: true}
	w.models = addresses.Free()
	w.serveGateway(c.model)
	p := w.start(1, nil)
	tools := w.connect()
	for range 12 {
		if err := c.ask(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(c.model.told(), "tool_choice") {
			break
		}
	}
	tools.complete()
	w.signal("exit")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonNothingChanged)
	w.wantRungs(policy.RungNudge, policy.RungNoTools)
}

// TestASuspendedAgentDoesNotGoOn: one that ends because it was asked to is not started again.
func TestASuspendedAgentDoesNotGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", func(o *protocol.Orders) { o.Policy.Anomalies.CheckEveryTurns, o.Policy.Anomalies.Loop = 1, 2 })
	c := &circling{world: w, model: &model{}, entries: []string{`{"role":"user","content":"Add a login page."}`}, fails: true}
	w.models = addresses.Free()
	run, _ := w.withModels(c.model, nil, func(o *protocol.Orders) { o.Agent.Command[2] = "trap 'exit 0' TERM; " + o.Agent.Command[2] })
	for range 12 {
		if err := c.ask(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(c.model.told(), "tool_choice") {
			break
		}
	}
	w.intake.Order(func(o *protocol.Orders) { o.Suspend = true })
	wantFinal(t, run.finish(), protocol.OutcomeSuspended, protocol.ReasonSuspended)
	w.wantRungs(policy.RungNudge, policy.RungNoTools)
}

// TestAnAgentWithoutASessionBeginsAnew when it has ended with a turn without tools, from the last valid checkpoint and once.
func TestAnAgentWithoutASessionBeginsAnew(t *testing.T) {
	t.Parallel()
	command := func(o *protocol.Orders) { o.Agent.Runtime = "command" }
	w, _ := climbing(t, policy.RungNudge, begunAnew, command)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantGoesOn(0)
	w.wantTakenBack(1)
	if starts := w.starts(); len(starts) != 2 || !strings.Contains(starts[1], "Deploy has failed") {
		t.Errorf("started with %q", starts)
	}
	w.wantRungs(policy.RungNudge, policy.RungNoTools, policy.RungRestart, over)
}

// TestSteeringHoldsForAPerson: the call waits, the agent is frozen and people are told why, until one lets it go on.
func TestSteeringHoldsForAPerson(t *testing.T) {
	t.Parallel()
	w, model := climbing(t, policy.RungHold, wasHeld)
	run := w.start(1, nil)
	w.eventually("people are told", func() bool {
		s := w.intake.Status()
		return s.State == protocol.StateWaiting && s.Fault != nil && s.Fault.Reason == protocol.ReasonAgentHeld
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
		return s.State == protocol.StateWaiting && s.Fault != nil && s.Fault.Reason == protocol.ReasonAgentHeld
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

// TestMeasuresOutliveAWatchdog that ends after any step of one, with and without what it remembers of the conversation: each is taken once.
func TestMeasuresOutliveAWatchdog(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rung  policy.Rung
		until string
		plugs [][]plug
		want  string
	}{
		"rollback":         {policy.RungRollback, wentBack, [][]plug{after("captured", "intent journaled", "restored", "done journaled")}, protocol.OutcomeDelivered},
		"restart, started": {policy.RungRestart, begunAnew, [][]plug{{{step: "measure journaled", nth: 2}, {step: "agent launched"}}}, protocol.OutcomeDelivered},
		// What was launched before a crash has no such step.
		"restart, start journaled": {policy.RungRestart, begunAnew, [][]plug{{{step: "task started", nth: 3}}}, protocol.OutcomeDelivered},
		"block":                    {policy.RungBlock, "", [][]plug{{{step: "measure journaled", nth: 3}}}, protocol.OutcomeBlocked},
		"bare turn, asked":         {policy.RungNudge, wasBare, [][]plug{{{step: "handed over", nth: 2}}}, protocol.OutcomeDelivered},
		"bare turn, started": {policy.RungNudge, wasBare,
			[][]plug{after("agent exited"), after("measure journaled", "agent launched")}, protocol.OutcomeDelivered},
		"bare turn, start journaled": {policy.RungNudge, wasBare, [][]plug{{{step: "task started", nth: 2}}}, protocol.OutcomeDelivered},
	} {
		measure := func(t *testing.T, lost bool) {
			t.Parallel()
			w, _ := climbing(t, tc.rung, tc.until)
			w.models = addresses.Free()
			lists := make([][]plug, len(tc.plugs))
			for i, list := range tc.plugs {
				for _, p := range list {
					p.lost = lost
					lists[i] = append(lists[i], p)
				}
			}
			plugs := newPlugs(t, lists...)
			f := plugs.processes(w.start(1, plugs.probe())).finish()
			if f.Outcome != tc.want {
				t.Errorf("%+v", f)
			}
			starts, back := 1, 1
			switch tc.rung {
			case policy.RungNudge:
				back = 0
			case policy.RungRestart, policy.RungBlock:
				starts = 2
			}
			if got := w.starts(); len(got) != starts {
				t.Errorf("started %d times, want %d: %q", len(got), starts, got)
			}
			w.wantGoesOn(1)
			w.wantTakenBack(back)
			if tc.rung == policy.RungBlock { // a person who retries has the whole ladder again
				w.serveGateway(&oracle{until: begunAnew})
				wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			}
		}
		for _, lost := range []bool{false, true} {
			t.Run(named(name, lost), func(t *testing.T) { measure(t, lost) })
		}
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
