// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// purse is a gateway with a budget.
type purse struct {
	empty atomic.Bool
	calls atomic.Int64
}

func (p *purse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		tunnel(w, r.Host)
	case r.URL.Path == protocol.AllowancePath:
		a := protocol.Allowance{Usage: protocol.Usage{Calls: p.calls.Load(), InputTokens: 100 * p.calls.Load(), Cost: "0.5"}, Warning: "it is nearly used"}
		if p.empty.Load() {
			a.Exceeded = "the budget has nothing left; raise budget.maxCost"
		}
		if err := json.NewEncoder(w).Encode(a); err != nil {
			panic(http.ErrAbortHandler)
		}
	case p.empty.Load():
		w.Header().Set("Tidewaiter-Reason", protocol.ReasonBudgetExceeded)
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		p.calls.Add(1)
	}
}

// tunnel to whatever is asked for: Git goes through the gateway, too.
func tunnel(w http.ResponseWriter, host string) {
	far, err := net.Dial("tcp", host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer far.Close()
	w.WriteHeader(http.StatusOK)
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()
	go func() {
		_, _ = io.Copy(far, buffered)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

// withModels starts an agent that works until it is told to end, with a gateway. The test asks models in the agent's place.
func (w *world) withModels(gateway http.Handler, probe func(string) error, changes ...func(*protocol.Orders)) (run *pod, ask func() int) {
	w.t.Helper()
	w.serveGateway(gateway)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo a > web/a.html; echo "$TIDEWAITER_MODELS_URL" > "$HOME/url.new"; mv "$HOME/url.new" "$HOME/url"; ` +
			`until [ -e ` + filepath.Join(w.dir, "signals", "end") + ` ]; do echo tick >> "$HOME/ticks"; sleep 0.01; done`
	})
	for _, change := range changes {
		w.intake.Order(change)
	}
	run = w.start(1, probe)
	var url string
	w.eventually("the agent knows where models are", func() bool {
		text, err := os.ReadFile(filepath.Join(w.paths.Home, "url"))
		url = strings.TrimSpace(string(text))
		return err == nil
	})
	return run, func() int {
		answer, err := http.Post(url+"/anthropic/v1/messages", "application/json", strings.NewReader(`{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"Add a page."}]}`)) //nolint:noctx // it ends with the watchdog
		if err != nil {
			w.t.Error(err)
			return 0
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body) // what follows it is at its end
		return answer.StatusCode
	}
}

// TestABudgetThatIsUsedUp: the agent is frozen with its call under way, which costs it no retry of its task; people are told, may
// have checkpoints, and when there is more it goes on where it was. The last status has all that was used.
func TestABudgetThatIsUsedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom)
	p := &purse{}
	run, ask := w.withModels(p, nil)
	ticks := func() int64 {
		info, err := os.Stat(filepath.Join(w.paths.Home, "ticks"))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	if status := ask(); status != http.StatusOK {
		t.Fatalf("within the budget: %d", status)
	}
	p.empty.Store(true)
	answered := make(chan int, 1)
	go func() { answered <- ask() }()
	w.eventually("people are told", func() bool {
		s := w.intake.Status()
		return s.State == protocol.StateFrozen && s.Fault != nil && s.BudgetWarning == "it is nearly used"
	})
	want := protocol.Fault{Reason: protocol.ReasonBudgetExceeded, Message: "the budget has nothing left; raise budget.maxCost"}
	if diff := cmp.Diff(want, *w.intake.Status().Fault); diff != "" {
		t.Errorf("fault (-want +got):\n%s", diff)
	}
	run.awaitFrozen()
	still := ticks()
	if c := w.checkpointNow("now"); c.Action != protocol.ActionPromoted {
		t.Errorf("a checkpoint that was asked for: %+v", c)
	}
	if now := ticks(); !run.standsStill() || now != still {
		t.Errorf("after a checkpoint the agent goes on: %d bytes of ticks, %d before", now, still)
	}
	select {
	case status := <-answered:
		t.Errorf("the agent was answered %d", status)
	default:
	}
	p.empty.Store(false)
	if status := <-answered; status != http.StatusServiceUnavailable {
		t.Errorf("the call that was held: %d, want one that clients try again after", status)
	}
	w.eventually("the agent goes on", func() bool { return ticks() > still })
	w.eventually("the fault is gone", func() bool { return w.intake.Status().Fault == nil })
	if status := ask(); status != http.StatusOK {
		t.Errorf("with a raised budget: %d", status)
	}
	w.signal("end")
	wantFinal(t, run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if diff := cmp.Diff(&protocol.Usage{Calls: 2, InputTokens: 200, Cost: "0.5"}, w.intake.Status().Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}
