// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// meter is a gateway with a budget.
type meter struct {
	mu       sync.Mutex
	exceeded string
	reserved bool
	away     bool
	// wants is what calls want, and fits what there is enough for.
	wants, fits string
	wanted      []string
	tokens      []string
	calls       int64
}

func (m *meter) set(change func(*meter)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.URL.Path == protocol.AllowancePath:
		m.wanted = append(m.wanted, r.URL.Query().Get(protocol.ParamWanted))
		m.tokens = append(m.tokens, r.Header.Get("Authorization")+" "+r.Header.Get("Tidewaiter-Task"))
		if m.away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		a := protocol.Allowance{Usage: protocol.Usage{Calls: m.calls}, Exceeded: m.exceeded, Reserved: m.reserved}
		if wanted := r.URL.Query().Get(protocol.ParamWanted); wanted == m.fits && wanted != "" {
			a.Exceeded = ""
		}
		if err := json.NewEncoder(w).Encode(a); err != nil {
			panic(http.ErrAbortHandler)
		}
	case m.exceeded != "", m.reserved:
		w.Header().Set("Tidewaiter-Reason", map[bool]string{false: "BudgetExceeded", true: "BudgetReserved"}[m.reserved])
		w.Header().Set(protocol.WantedHeader, cmp.Or(m.wants, "1,2,3"))
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("too little is left"))
	default:
		m.calls++
		_, _ = w.Write([]byte("answer"))
	}
}

// next allowance that is told.
func (p *pod) next() protocol.Allowance {
	p.t.Helper()
	select {
	case a := <-p.proxy.Allowances():
		return a
	case <-time.After(time.Minute):
		p.t.Fatal("nothing is told")
		return protocol.Allowance{}
	}
}

// answers of calls that the agent makes.
func (p *pod) answers(n int) <-chan int {
	answers := make(chan int, n)
	for range n {
		go func() {
			answer := p.post("/anthropic/v1/messages", nil)
			if answer.Header.Get(protocol.WantedHeader) != "" {
				p.t.Error("the agent is told what it wanted")
			}
			if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "too little is left" {
				p.t.Errorf("the agent was told %q, %v", text, err)
			}
			answers <- answer.StatusCode
		}()
	}
	return answers
}

// until an allowance is told that is as wanted.
func (p *pod) until(what string, holds func(protocol.Allowance) bool) {
	p.t.Helper()
	for a := p.next(); !holds(a); a = p.next() {
		p.t.Logf("%s: not yet %+v", what, a)
	}
}

func exceeded(a protocol.Allowance) bool { return a.Exceeded != "" }
func free(a protocol.Allowance) bool     { return a.Exceeded == "" }

// TestABudgetThatIsUsedUp: the agent's calls are held until there is more, and people are told at once. Then it gets the refusal,
// which its client tries again after.
func TestABudgetThatIsUsedUp(t *testing.T) {
	m := &meter{exceeded: "nothing is left"}
	p := newMeteredPod(t, m)
	answers := p.answers(2)
	p.until("exceeded", exceeded)
	m.set(func(m *meter) { m.away = true }) // it goes on asking
	for asked, before := 0, -1; asked < before+3; {
		m.set(func(m *meter) { asked = len(m.wanted) })
		if before < 0 {
			before = asked
		}
	}
	select {
	case status := <-answers:
		t.Errorf("the agent was answered %d", status)
	default:
	}
	m.set(func(m *meter) { m.away, m.exceeded = false, "" })
	p.until("free", free)
	for range 2 {
		if status := <-answers; status != http.StatusServiceUnavailable {
			t.Errorf("the agent was answered %d", status)
		}
	}
	m.set(func(m *meter) {
		if !slices.Contains(m.wanted, "1,2,3") || m.tokens[0] != "Bearer first login" {
			t.Errorf("asked for %q with %q", m.wanted, m.tokens[0])
		}
	})
	if answer := p.post("/anthropic/v1/messages", nil); answer.StatusCode != http.StatusOK {
		t.Errorf("once more: %d", answer.StatusCode)
	}
}

// TestWhatIsReserved: a call that only calls under way leave too little for is held as well, and nobody has to be told.
func TestWhatIsReserved(t *testing.T) {
	m := &meter{reserved: true}
	p := newMeteredPod(t, m)
	answers := p.answers(1)
	for asked := 0; asked < 3; {
		m.set(func(m *meter) {
			asked = 0
			for _, wanted := range m.wanted {
				if wanted == "1,2,3" {
					asked++
				}
			}
		})
	}
	if a := p.next(); a.Exceeded != "" {
		t.Errorf("told %+v", a)
	}
	m.set(func(m *meter) { m.reserved = false })
	if status := <-answers; status != http.StatusServiceUnavailable {
		t.Errorf("the agent was answered %d", status)
	}
}

// TestASmallerCallGoesOn: one that fits is not held back by one that does not, and the agent goes on meanwhile.
func TestASmallerCallGoesOn(t *testing.T) {
	m := &meter{exceeded: "nothing is left"}
	p := newMeteredPod(t, m)
	large := p.answers(1)
	p.until("the large one is exceeded", exceeded)
	m.set(func(m *meter) { m.wants = "0,0,1" })
	small := p.answers(1)
	for asked := false; !asked; {
		m.set(func(m *meter) { asked = slices.Contains(m.wanted, "0,0,1") })
	}
	m.set(func(m *meter) { m.fits = "0,0,1" })
	p.until("the small one fits", free)
	if status := <-small; status != http.StatusServiceUnavailable {
		t.Errorf("the small one was answered %d", status)
	}
	p.until("the large one alone is left", exceeded)
	select {
	case status := <-large:
		t.Errorf("the large one was answered %d", status)
	default:
	}
	m.set(func(m *meter) { m.exceeded = "" })
	<-large
}

// TestAnAgentThatGivesUp: nobody waits for a budget any more, whatever it says.
func TestAnAgentThatGivesUp(t *testing.T) {
	m := &meter{exceeded: "nothing is left"}
	p := newMeteredPod(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/anthropic/v1/messages", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	given := make(chan struct{})
	go func() {
		defer close(given)
		if answer, err := http.DefaultClient.Do(request); err == nil {
			answer.Body.Close()
		}
	}()
	p.until("exceeded", exceeded)
	cancel()
	<-given
	p.until("nobody waits", free)
	if a, ok := p.proxy.Latest(t.Context()); !ok || a.Exceeded != "" {
		t.Errorf("a budget that nobody waits for: %+v, %v", a, ok)
	}
}

// TestUsageIsTold: at the start, which need not be that of the Feature, some time after a call, and where somebody asks.
func TestUsageIsTold(t *testing.T) {
	m := &meter{calls: 7, exceeded: "nothing is left"}
	p := newMeteredPod(t, m)
	if a := p.next(); a.Usage.Calls != 7 || a.Exceeded != "" {
		t.Errorf("at the start: %+v", a)
	}
	m.set(func(m *meter) { m.exceeded = "" })
	// The next question is an hour away.
	p.post("/anthropic/v1/messages", nil)
	if a, ok := p.proxy.Latest(t.Context()); !ok || a.Usage.Calls != 8 {
		t.Errorf("%+v, %v", a, ok)
	}
	m.set(func(m *meter) { m.away = true })
	if a, ok := p.proxy.Latest(t.Context()); ok {
		t.Errorf("from a gateway that is away: %+v", a)
	}
}
