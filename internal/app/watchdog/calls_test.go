// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/addresses"
)

// answered is a whole answer of Anthropic Messages: the watchdog counts one that it cannot read to its end as cut off.
const answered = `{"type":"message","role":"assistant","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":1}}`

// faulty is a gateway that answers with an error, or well where there is none.
type faulty struct{ status, reason atomic.Value }

func (f *faulty) fail(status int, reason string) {
	f.status.Store(status)
	f.reason.Store(reason)
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch status, _ := f.status.Load().(int); {
	case r.Method == http.MethodConnect:
		tunnel(w, r.Host)
	case r.URL.Path == protocol.AllowancePath:
		http.NotFound(w, r)
	case status != 0:
		if reason, _ := f.reason.Load().(string); reason != "" {
			w.Header().Set("Tidewaiter-Reason", reason)
		}
		w.WriteHeader(status)
	default:
		_, _ = io.WriteString(w, answered)
	}
}

// givingUp is an agent that ends with an error when it is told to.
func givingUp(o *protocol.Orders) { o.Agent.Command[2] += "; exit 3" }

// TestAnAgentThatNoModelAnswers: an attempt that ends for that says so, and who is to blame.
func TestAnAgentThatNoModelAnswers(t *testing.T) {
	t.Parallel()
	type call struct {
		status int
		reason string
	}
	for name, test := range map[string]struct {
		calls  []call
		reason string
		want   *protocol.Failure
		says   string
	}{
		"no model is available": {
			[]call{{503, "ModelNotAvailable"}, {503, "ModelNotAvailable"}}, protocol.ReasonProviderUnavailable,
			&protocol.Failure{Class: protocol.FailurePolicy, Cause: "ModelNotAvailable", Status: 503, Calls: 2}, "ConfigMap tidewaiter-backends",
		},
		"the provider is overloaded": {
			[]call{{}, {529, ""}}, protocol.ReasonProviderUnavailable,
			&protocol.Failure{Class: protocol.FailureProvider, Cause: "Status529", Status: 529, Calls: 1}, "its last model call failed",
		},
		"a model answers in the end": {[]call{{503, "ModelNotAvailable"}, {}}, protocol.ReasonAgentFailed, nil, "exited with code 3"},
		"an invalid request":         {[]call{{503, "BackendUnreachable"}, {400, ""}}, protocol.ReasonAgentFailed, nil, "exited with code 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", seldom)
			gateway := &faulty{}
			run, ask := w.withModels(gateway, nil, givingUp)
			for _, c := range test.calls {
				gateway.fail(c.status, c.reason)
				ask()
			}
			w.signal("end")
			f := run.finish()
			wantFinal(t, f, protocol.OutcomeAgentFailed, test.reason)
			if diff := cmp.Diff(test.want, f.Failure); diff != "" || !strings.Contains(f.Message, test.says) {
				t.Errorf("%s (-want +got):\n%s", f.Message, diff)
			}
		})
	}
}

// TestWhatFailedOutlivesAWatchdog: one that starts anew, whatever it died between, knows what the calls came to that its agent ended for.
func TestWhatFailedOutlivesAWatchdog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom)
	gateway := &faulty{}
	gateway.fail(http.StatusServiceUnavailable, "BackendUnreachable")
	plugs := newPlugs(t, after("agent exited", "captured", "final journaled"))
	run, ask := w.withModels(gateway, plugs.probe(), givingUp)
	ask()
	w.signal("end")
	f := plugs.processes(run).finish()
	wantFinal(t, f, protocol.OutcomeAgentFailed, protocol.ReasonProviderUnavailable)
	if f.Failure == nil || f.Failure.Cause != "BackendUnreachable" {
		t.Errorf("%+v", f.Failure)
	}
}

// TestARetryKnowsNothingOfEarlierCalls: what an agent of an earlier attempt ended for is nobody's excuse later.
func TestARetryKnowsNothingOfEarlierCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom)
	gateway := &faulty{}
	gateway.fail(http.StatusServiceUnavailable, "BackendUnreachable")
	run, ask := w.withModels(gateway, nil, givingUp)
	ask()
	w.signal("end")
	wantFinal(t, run.finish(), protocol.OutcomeAgentFailed, protocol.ReasonProviderUnavailable)
	f := w.start(2, nil).finish()
	wantFinal(t, f, protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed)
	if f.Failure != nil {
		t.Errorf("%+v", f.Failure)
	}
}

// TestNoRungForAProviderThatFails: an agent that goes on by itself while no model answers is stuck, and its watchdog says that it is not to blame. Nothing
// is done about it, however far the policy's ladder goes.
func TestNoRungForAProviderThatFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		reason string
		// found says that it is one that no time heals: others are found after minutes.
		found bool
	}{
		"the provider is overloaded": {529, "", false},
		"the gateway avoids it":      {503, "BackendAvoided", false},
		"the key is refused":         {401, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &circling{world: newWorld(t, "", seldom)}
			c.models = addresses.Free()
			gateway := &faulty{}
			gateway.fail(test.status, test.reason)
			c.run, _ = c.withModels(gateway, nil, func(o *protocol.Orders) {
				a := &o.Policy.Anomalies
				a.CheckEveryTurns, a.CooldownTurns, a.Stall, a.Loop, a.Ladder = 1, 1, 4, 2, policy.RungBlock
			})
			c.entries = []string{`{"role":"user","content":"Add a login page."}`}
			for n := range 40 {
				if err := c.ask(); err == nil {
					t.Fatal("a model answers")
				}
				c.entries = append(c.entries, `{"role":"assistant","content":"API Error"}`, fmt.Sprintf(`{"role":"user","content":"Try again: %d"}`, n))
			}
			told := func() (all []protocol.Anomaly) {
				for _, r := range c.intake.Reports() {
					if r.Status != nil && r.Status.Conversation != nil {
						all = append(all, r.Status.Conversation.Anomalies...)
					}
				}
				return all
			}
			if test.found {
				c.eventually("people are told", func() bool { return len(told()) > 0 })
			}
			c.signal("end")
			if f := c.run.finish(); f.Outcome == protocol.OutcomeBlocked {
				t.Errorf("%s %s", f.Outcome, f.Reason)
			}
			for _, a := range told() {
				if !test.found || a.Type != string(anomaly.AgentStalled) || a.Cause != protocol.CauseProvider {
					t.Errorf("%+v", a)
				}
			}
			for _, s := range c.steered() {
				if !s.Over && s.Rung != string(policy.RungObserve) || s.Message != "" {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}
