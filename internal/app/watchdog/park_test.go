// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
)

// asker is an agent that writes a file and asks, and goes on in its session when it is started again. It keeps what it is told at each start.
func newAsker(t *testing.T, change ...func(*protocol.Orders)) *world {
	return newHelped(t, func(w *world) string {
		return `echo "run ${INTERRUPTED:-0} $REPLY" >> "$HOME/told"; if [ "$INTERRUPTED" ]; then echo good > web/good.html; exit 0; fi; echo half > web/half.html; ` + w.byHand()
	}, append([]func(*protocol.Orders){parks}, change...)...)
}

// parks lets a pod end soon after its agent has begun to wait.
func parks(o *protocol.Orders) {
	o.MayPark = true
	o.Policy.Questions = policy.Questions{Asking: policy.AskWait, Timeout: 24 * time.Hour, ParkAfter: 50 * time.Millisecond}
}

// asks calls ask_user again and again, as an agent does, until it is ended.
func (c *client) asks(id string) {
	ctx := context.WithoutCancel(c.t.Context())
	go func() {
		for {
			if _, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: "ask_user", Arguments: map[string]any{"question_id": id, "question": "Which colour?", "wait_seconds": 1}}); err != nil {
				return
			}
		}
	}()
}

func wantParked(t *testing.T, f protocol.FinalReport) {
	t.Helper()
	wantFinal(t, f, protocol.OutcomeParked, protocol.ReasonAwaitingInput)
	if q := f.Question; q == nil || q.ID != "q1" || q.Text != "Which colour?" || q.At.IsZero() {
		t.Errorf("question %+v", q)
	}
}

// wantAnswered answers and holds the rest of the life: the agent is told the answer first, once, and its work is delivered.
func (w *world) wantAnswered(attempt int64, runs ...string) {
	w.t.Helper()
	w.intake.Order(func(o *protocol.Orders) { o.Answers = []protocol.Answer{{Question: "q1", Text: "Blue."}} })
	wantFinal(w.t, w.start(attempt, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	told := strings.Split(strings.TrimSpace(w.read("home/told")), "\n")
	if !slices.EqualFunc(told, runs, strings.HasPrefix) {
		w.t.Errorf("it is told %q, want %q", told, runs)
	}
	for path, want := range map[string]string{"web/half.html": "half", "web/good.html": "good"} {
		if got := w.delivered(path); got != want {
			w.t.Errorf("%s has %q", path, got)
		}
	}
}

// cutOff is the begin of what an agent reads if a call of ask_user had no result because of a restart.
const cutOff = `A restart has cut off your question q1 ("Which colour?").`

const answeredBlue = `run 1 The answer to your question q1 ("Which colour?") is: Blue. [`

// TestAQuestionParks: a question that waits ends the pod after a checkpoint, and its answer starts the agent again in its session, also under the restart
// mode Replay. A watchdog that ends at any step goes on, and asks nobody twice.
func TestAQuestionParks(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]plug{"undisturbed": nil,
		"crashes": after("task parked", "agent exited", "captured", "intent journaled", "done journaled", "final journaled", "final spooled")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAsker(t, func(o *protocol.Orders) { o.Policy.Supervision.RestartMode = policy.RestartReplay })
			w.fold = true
			plugs := newPlugs(t, list)
			p := w.start(1, plugs.probe())
			w.connect().asks("q1")
			p = plugs.processes(p)
			wantParked(t, p.finish())
			if s := w.intake.Status(); s.Question == nil || s.Question.ID != "q1" || s.State != protocol.StateWaiting {
				t.Errorf("status %+v", s)
			}
			w.wantAnswered(2, "run 0 ", answeredBlue)
		})
	}
}

// TestAQuestionThatARestartCutsOff: the watchdog ends while a call of the agent waits and before it has noted that the attempt ends for it. The client
// does not make the call again by itself: it gives the model an error. The agent reads that it has to ask again, and the question parks.
func TestAQuestionThatARestartCutsOff(t *testing.T) {
	t.Parallel()
	w := newAsker(t)
	w.runtimes[0].Adapter = scholar{} // it reads no lines
	w.tools = addresses.Free()        // a watchdog that begins anew listens there again
	p := w.start(1, pullAt("before task parked", 1))
	c := w.connect()
	c.asks("q1")
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	p.watch(nil)
	w.eventually("the tools are back", func() bool { return c.dial() == nil })
	for _, want := range []int{1, 0} {
		if text, ok := c.try("feature_get_context", map[string]any{}); !ok || strings.Count(text, "[SUPERVISOR] "+cutOff) != want {
			t.Errorf("it is told, want %d times: %s", want, text)
		}
	}
	w.eventually("the question is shown", func() bool {
		s := w.intake.Status()
		return s.Question != nil && s.Question.ID == "q1" && s.State == protocol.StateWaiting
	})
	c.asks("q1")
	wantParked(t, p.finish())
	w.wantAnswered(2, "run 0 ", answeredBlue)
}

// TestAQuestionThatALostPodCutsOff: the agent continues its session, reads that it has to ask again, and the question parks as if it had waited all the time.
func TestAQuestionThatALostPodCutsOff(t *testing.T) {
	t.Parallel()
	w := newHelped(t, func(w *world) string {
		return `echo "run ${INTERRUPTED:-0} $REPLY" >> "$HOME/told"; case "$REPLY" in *Blue*) echo good > web/good.html; exit 0;; esac; echo half > web/half.html; ` + w.byHand()
	}, parks)
	p := w.start(1, pullAt("before task parked", 1))
	w.connect().asks("q1")
	if err := p.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	p.kill()
	p = w.start(2, nil)
	w.connect().asks("q1")
	wantParked(t, p.finish())
	w.wantAnswered(3, "run 0 ", "run 1 "+cutOff, answeredBlue)
}

// TestAPodThatIsLostWhileItParks is followed by an attempt that starts no agent before there is an answer.
func TestAPodThatIsLostWhileItParks(t *testing.T) {
	t.Parallel()
	// The next attempt completes the checkpoint before its first step.
	for name, list := range map[string][]plug{"parked": lost("task parked", "final journaled"), "exited": lost("agent exited"), "done": lost("done journaled")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAsker(t)
			plugs := newPlugs(t, list)
			p := w.start(1, plugs.probe())
			w.connect().asks("q1")
			p = plugs.pods(p)
			wantParked(t, p.finish())
			if told := w.read("home/told"); strings.Count(told, "run") != 1 {
				t.Errorf("the agent ran: %q", told)
			}
			w.intake.Order(func(o *protocol.Orders) { o.Answers = []protocol.Answer{{Question: "q1", Text: "Blue."}} })
			wantFinal(t, w.start(p.attempt+1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if told := w.read("home/told"); !strings.Contains(told, answeredBlue) {
				t.Errorf("it is told %q", told)
			}
		})
	}
}

// TestAParkedFeatureThatIsActedOn: an answer that comes while the pod is ending is not lost, a rollback by an attempt without an agent leaves the
// question as it is, and an agent that nobody answers is told to guess.
func TestAParkedFeatureThatIsActedOn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do   func(w *world) (next int64)
		told string
	}{
		"a rollback": {func(w *world) int64 {
			w.intake.Order(func(o *protocol.Orders) { o.Requests = []protocol.Request{back("back", protocol.RollbackFull, 1)} })
			wantParked(w.t, w.seal(2))
			w.intake.Order(func(o *protocol.Orders) {
				o.Requests, o.Answers = nil, []protocol.Answer{{Question: "q1", Text: "Blue."}}
			})
			return 3
		}, answeredBlue},
		"another policy": {func(w *world) int64 {
			w.intake.Order(func(o *protocol.Orders) { o.Policy.Questions.Asking = policy.AskGuess })
			return 2
		}, `run 1 Nobody has answered your question q1 ("Which colour?"): continue with your best guess`},
		"nobody answers": {func(w *world) int64 {
			w.intake.Order(func(o *protocol.Orders) { o.Policy.Questions.Timeout = time.Nanosecond })
			return 2
		}, `run 1 Nobody has answered your question q1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAsker(t)
			p := w.start(1, nil)
			w.connect().asks("q1")
			wantParked(t, p.finish())
			next := tc.do(w)
			wantFinal(t, w.start(next, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
			if told := w.read("home/told"); !strings.Contains(told, tc.told) {
				t.Errorf("it is told %q, want %q", told, tc.told)
			}
		})
	}
}

// TestAnAnswerWhileThePodEnds starts the next attempt with it, although it was written to the process that is ended.
func TestAnAnswerWhileThePodEnds(t *testing.T) {
	t.Parallel()
	w := newAsker(t)
	p := w.start(1, func(step string) error {
		if step == "task parked" {
			w.intake.Order(func(o *protocol.Orders) { o.Answers = []protocol.Answer{{Question: "q1", Text: "Blue."}} })
			w.reports("answer/q1 Addressed")
		}
		return nil
	})
	w.connect().asks("q1")
	wantParked(t, p.finish())
	w.wantAnswered(2, "run 0 ", answeredBlue)
}

// TestAQuestionThatDoesNotPark: the policy, or volumes that end with the pod, keep it.
func TestAQuestionThatDoesNotPark(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*protocol.Orders){
		"the policy":  func(o *protocol.Orders) { o.Policy.Questions.ParkAfter = 0 },
		"the volumes": func(o *protocol.Orders) { o.MayPark = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAsker(t, change)
			p := w.start(1, nil)
			c := w.connect()
			var answer struct{ Status string }
			for range 3 {
				c.call("ask_user", map[string]any{"question_id": "q1", "question": "Which colour?", "wait_seconds": 1}, &answer)
			}
			if answer.Status != "pending" {
				t.Errorf("answer %+v", answer)
			}
			w.signal("exit")
			wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
		})
	}
}

// TestAParkedTaskThatIsRemoved: the next attempt begins the next task, and asks nobody for an answer.
func TestAParkedTaskThatIsRemoved(t *testing.T) {
	t.Parallel()
	w := newAsker(t)
	p := w.start(1, nil)
	w.connect().asks("q1")
	wantParked(t, p.finish())
	w.intake.Order(func(o *protocol.Orders) {
		o.Tasks = []protocol.Task{{Name: "page/other"}}
		o.Agent.Command[2] = `echo other > web/other.html`
	})
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.delivered("web/other.html"); got != "other" {
		t.Errorf("the next task has delivered %q", got)
	}
}
