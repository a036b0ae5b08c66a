// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelproxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// askTime bounds a question to the gateway.
	askTime = 10 * time.Second
	// maxAllowance bounds its answer in bytes.
	maxAllowance = 64 << 10
)

// Allowances delivers the use of models and the rest of the budgets after each question for them. The next one replaces one that nobody has received.
func (p *Proxy) Allowances() <-chan protocol.Allowance { return p.allowances.told }

// Latest asks the gateway for the usage; ok is false if the gateway does not answer before the context ends.
func (p *Proxy) Latest(ctx context.Context) (a protocol.Allowance, ok bool) {
	return p.allowances.latest(ctx)
}

// hold an answer that a budget leaves too little for the call, until there is more or the agent gives up. The agent tries again
// after it, so that a budget that is raised costs it one try.
func (p *Proxy) hold(answer *http.Response) error {
	switch answer.Header.Get(protocol.ReasonHeader) {
	case protocol.ReasonBudgetExceeded, protocol.RefusalReserved:
	default:
		return nil
	}
	wanted := answer.Header.Get(protocol.WantedHeader)
	answer.Header.Del(protocol.WantedHeader)
	// The gateway need not be there any more when the agent gets it.
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAllowance))
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	answer.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return p.allowances.wait(answer.Request.Context(), wanted)
}

// ask the gateway.
func (p *Proxy) ask(ctx context.Context, wanted string) (protocol.Allowance, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	u := p.target.JoinPath(protocol.AllowancePath)
	u.RawQuery = url.Values{protocol.ParamWanted: {wanted}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return protocol.Allowance{}, err
	}
	token, err := p.link.ReadToken()
	if err != nil {
		return protocol.Allowance{}, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if task := p.options.Task(); task != "" {
		request.Header.Set(dialect.TaskHeader, task)
	}
	answer, err := p.transport.RoundTrip(request)
	if err != nil {
		return protocol.Allowance{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAllowance))
	if err != nil {
		return protocol.Allowance{}, err
	}
	if answer.StatusCode != http.StatusOK {
		return protocol.Allowance{}, fmt.Errorf("the gateway answers with status %d", answer.StatusCode)
	}
	var a protocol.Allowance
	return a, json.Unmarshal(text, &a)
}

// maxWanted bounds how many held calls one question names: the ones that have waited longest.
const maxWanted = 8

// allowances ask what is left, for held calls and for users.
type allowances struct {
	ask func(ctx context.Context, wanted string) (protocol.Allowance, error)
	// told has the last answer that nobody has taken.
	told chan protocol.Allowance
	// changed: a call has ended, a hold has begun, or a call is given up.
	changed chan struct{}

	mu sync.Mutex
	// unseen calls have ended since the last question; of calls before this process nobody knows.
	unseen bool
	// held calls, the oldest first.
	held []*heldCall
}

// heldCall waits until it may be made.
type heldCall struct {
	wanted string
	// asked: a question has begun after its hold.
	asked bool
	freed chan struct{}
}

func newAllowances(ask func(context.Context, string) (protocol.Allowance, error)) *allowances {
	return &allowances{ask: ask, told: make(chan protocol.Allowance, 1), changed: make(chan struct{}, 1), unseen: true}
}

// used says that a call has ended.
func (a *allowances) used() {
	a.see(true)
	a.change()
}

func (a *allowances) see(unseen bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unseen = unseen
}

func (a *allowances) change() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// wait until a call may be made that wants an amount.
func (a *allowances) wait(ctx context.Context, wanted string) error {
	call := &heldCall{wanted: wanted, freed: make(chan struct{})}
	a.mu.Lock()
	a.held = append(a.held, call)
	a.mu.Unlock()
	a.change()
	select {
	case <-call.freed:
		return nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	a.held = slices.DeleteFunc(a.held, func(other *heldCall) bool { return other == call })
	a.mu.Unlock()
	a.change()
	return ctx.Err()
}

// follow asks at once for a held call and then with pauses, and for what calls have used every now and then, until the
// context ends.
func (a *allowances) follow(ctx context.Context, pause, usageEvery time.Duration) {
	var last time.Time
	exceeded := false // the last delivered answer says that a budget is exceeded
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.changed:
		case <-timer.C:
		}
		wanted, more, unseen := a.state()
		due := last.Add(pause)
		switch {
		case more, len(wanted) == 0 && exceeded: // at once: a hold has begun, or the last has been given up, which may be while its question was under way
			due = time.Time{}
		case len(wanted) == 0 && unseen:
			due = last.Add(usageEvery)
		case len(wanted) == 0:
			continue
		}
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			continue
		}
		last = time.Now()
		answer, ok := a.question(ctx, wanted)
		if ok {
			a.tell(answer)
			exceeded = answer.Exceeded != ""
		}
		if ok || len(wanted) > 0 || exceeded {
			timer.Reset(pause)
			continue
		}
		timer.Reset(usageEvery)
	}
}

// state gives what is wanted by the calls that wait longest, each amount once, and whether there are more holds than at the last call.
func (a *allowances) state() (wanted []string, more, unseen bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, call := range a.held {
		more, call.asked = more || !call.asked, true
		if !slices.Contains(wanted, call.wanted) && len(wanted) < maxWanted {
			wanted = append(wanted, call.wanted)
		}
	}
	return wanted, more, a.unseen
}

// question asks what was used, and whether the budget allows held calls; it frees the allowed ones. A budget is exceeded if it allows none
// of them and a user has to act.
func (a *allowances) question(ctx context.Context, wanted []string) (last protocol.Allowance, ok bool) {
	if len(wanted) == 0 {
		a.see(false)
		answer, err := a.ask(ctx, "")
		if err != nil {
			a.see(true)
		}
		answer.Exceeded = "" // nobody waits for it
		return answer, err == nil
	}
	exceeded, freed := "", false
	for _, amount := range wanted {
		answer, err := a.ask(ctx, amount)
		switch {
		case err != nil:
			return protocol.Allowance{}, false
		case answer.Exceeded != "":
			exceeded = cmp.Or(exceeded, answer.Exceeded)
		case !answer.Reserved:
			a.free(amount)
			freed = true
		}
		last = answer
	}
	if last.Exceeded = exceeded; freed {
		last.Exceeded = ""
	}
	return last, true
}

// free the calls that want an amount: each learns again whether the budget allows it.
func (a *allowances) free(wanted string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = slices.DeleteFunc(a.held, func(call *heldCall) bool {
		if call.wanted == wanted {
			close(call.freed)
		}
		return call.wanted == wanted
	})
}

// tell the last answer.
func (a *allowances) tell(answer protocol.Allowance) {
	select {
	case <-a.told:
	default:
	}
	a.told <- answer // there is room: nobody else puts anything in
}

// latest asks once more; ok is false where the gateway does not answer.
func (a *allowances) latest(ctx context.Context) (answer protocol.Allowance, ok bool) {
	return a.question(ctx, nil)
}
