// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// book is a journal, which fails once for each error.
type book struct {
	steps []protocol.SteeringStep
	bytes int64
	fails []error
	// torn: the error comes after the step was written down. Pull is called with each error.
	torn bool
	pull func()
}

func (b *book) Recorded() journal.Steered {
	s := journal.Steered{Bytes: b.bytes, Steps: b.steps}
	if n := len(b.steps); n > 0 {
		s.Sequence = b.steps[n-1].Sequence
	}
	return s
}

func (b *book) Steered(x protocol.SteeringStep) error {
	if len(b.fails) > 0 {
		if b.pull != nil {
			b.pull()
		}
		err := b.fails[0]
		b.fails = b.fails[1:]
		if b.torn {
			b.steps = append(b.steps, x)
		}
		return err
	}
	b.steps = append(b.steps, x)
	return nil
}

// TestEachStepIsWrittenDown: what the model is told, with the request that it was told in, and that the anomaly is over.
func TestEachStepIsWrittenDown(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		requests := a.loop(12)
		told := requests[len(requests)-1]
		if len(a.book.steps) != 1 {
			t.Fatalf("%+v", a.book.steps)
		}
		first := a.book.steps[0]
		digest := sha256.Sum256([]byte(told))
		want := protocol.SteeringStep{
			Sequence: 1, Time: first.Time, Attempt: 2, Task: "form", Thread: first.Thread, Turn: int64(len(requests)), Request: hex.EncodeToString(digest[:]),
			Anomaly: "AgentLooping", Detector: "same-result", Evidence: first.Evidence, Rung: "Nudge", Message: first.Message, Channel: protocol.ChannelRequest,
		}
		if diff := cmp.Diff(want, first); diff != "" || first.Time.IsZero() || first.Evidence == "" || !strings.HasPrefix(first.Message, supervisor) {
			t.Errorf("%q (-want +got):\n%s", first.Message, diff)
		}
		for i := range 6 { // it does something else
			a.entries = append(a.entries, a.called("Edit", fmt.Sprintf(`{"file_path":"/workspace/%d.go","old_string":"a%d","new_string":"b%d"}`, i, i, i), fmt.Sprintf("done %d", i))...)
			a.service.Moved()
			a.ask()
		}
		if len(a.book.steps) != 2 {
			t.Fatalf("%+v", a.book.steps)
		}
		over := a.book.steps[1]
		want = protocol.SteeringStep{Sequence: 2, Attempt: 2, Task: "form", Thread: first.Thread, Anomaly: "AgentLooping", Detector: "same-result", Evidence: first.Evidence, Rung: "Nudge", Over: true}
		if diff := cmp.Diff(want, over, cmpopts.IgnoreFields(protocol.SteeringStep{}, "Time", "Turn", "Request")); diff != "" || len(over.Request) != 64 || over.Request == first.Request {
			t.Errorf("%+v (-want +got):\n%s", over, diff)
		}
	})
}

// TestObservationsAreWrittenDown: where the agent is not told, people see that, too; and so are decisions of the clock, in no request.
func TestObservationsAreWrittenDown(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.policy.Anomalies.Ladder = steering.Observe
	for range 6 {
		a.ask()
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
	}
	if len(a.book.steps) != 1 || a.book.steps[0].Rung != "Observe" || a.book.steps[0].Message != "" || a.book.steps[0].Channel != "" || a.book.steps[0].Request == "" {
		t.Errorf("%+v", a.book.steps)
	}
	a = newAgent(t, "anthropic")
	for range 30 {
		a.now = a.now.Add(time.Minute)
		a.service.Pulse(protocol.RunnerPulse{Processes: 1})
	}
	if len(a.book.steps) != 1 || a.book.steps[0].Anomaly != "AgentStalled" || a.book.steps[0].Request != "" || a.book.steps[0].Turn != 0 || a.book.steps[0].Rung != "Observe" {
		t.Errorf("%+v", a.book.steps)
	}
}

// TestACrashBetweenJournalAndCache: wherever it comes, a watchdog that begins anew writes each step down once, and tells the model.
func TestACrashBetweenJournalAndCache(t *testing.T) {
	turns := len(newAgent(t, "anthropic").loop(12)) // it is told in the last of them
	for _, torn := range []bool{false, true} {
		a := newAgent(t, "anthropic")
		for range turns - 1 {
			a.ask()
			a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
		}
		a.service.keepDirty()
		a.book.fails, a.book.torn = slices.Repeat([]error{errors.New("pulled")}, 100), torn // until the next process
		a.book.pull = func() { a.shelf.pulled = true }
		a.ask()
		if n := len(a.book.steps); n != 0 && !torn {
			t.Fatalf("%d steps", n)
		}
		a.book.fails = nil
		for range 2 { // the agent has had no answer
			a.begin()
			if sent := a.ask(); strings.Count(sent, supervisor) != 1 {
				t.Errorf("torn %t: told %d times: %s", torn, strings.Count(sent, supervisor), sent)
			}
			if len(a.book.steps) != 1 || a.book.steps[0].Rung != "Nudge" || a.book.steps[0].Channel != protocol.ChannelRequest {
				t.Fatalf("torn %t: %+v", torn, a.book.steps)
			}
		}
		// Of what was remembered nothing is left: the numbers go on.
		a.shelf.data = []byte("{")
		a.begin()
		a.loop(12)
		if n := len(a.book.steps); n != 2 || a.book.steps[1].Sequence != 2 {
			t.Errorf("torn %t: %+v", torn, a.book.steps)
		}
	}
}

// TestTurnsAfterAStaleCache: where the cache is some turns older than the journal, turns continue where the
// journal is, the model is told, and the request that tells it has the turn of its step.
func TestTurnsAfterAStaleCache(t *testing.T) {
	turns := len(newAgent(t, "anthropic").loop(12))
	for stale := range 4 {
		a := newAgent(t, "anthropic")
		read := func() {
			a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
		}
		for i := range turns - 1 {
			a.ask()
			read()
			if i == turns-2-stale {
				a.service.keepDirty()
			}
		}
		a.book.fails, a.book.torn = slices.Repeat([]error{errors.New("pulled")}, 100), true
		a.book.pull = func() { a.shelf.pulled = true }
		a.ask()
		a.book.fails = nil
		a.begin()
		told := 0
		for range 4 {
			if strings.Contains(a.ask(), supervisor) && told == 0 {
				told = int(a.service.state.Turns)
			}
			read()
		}
		seen, last := map[int64]bool{}, int64(0)
		for _, x := range a.book.steps {
			if seen[x.Turn] || x.Turn < last {
				t.Errorf("%d turns stale: turns of the steps are not in order, or twice: %+v", stale, a.book.steps)
			}
			seen[x.Turn], last = true, x.Turn
		}
		if told == 0 || !seen[int64(told)] {
			t.Errorf("%d turns stale: the model is told in turn %d; steps: %+v", stale, told, a.book.steps)
		}
		// The first of the four requests is the one that had no answer.
		if now := a.service.state.Turns; now != int64(turns)+3 {
			t.Errorf("%d turns stale: turn %d after turn %d and three more", stale, now, turns)
		}
	}
}

// TestAReleasedRequestKeepsItsTurn: a request that was held belongs to the turn in which it was heard, whatever was heard since.
func TestAReleasedRequestKeepsItsTurn(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.policy.Anomalies.Ladder = steering.Hold
	s := &a.service.state
	hear := func() session.Reply {
		body := fmt.Sprintf(`{"model":"m","%s":[%s],"tools":[%s],"stream":true}`, a.dialect.History, strings.Join(a.entries, ","), a.tool("Read"))
		r, err := a.dialect.ReadRequest([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		a.now = a.now.Add(10 * time.Second)
		reply, e := s.Request(a.service.facts(), r)
		a.service.write(e.Steps)
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
		return reply
	}
	for range 80 {
		reply := hear()
		if reply.Held == nil {
			continue
		}
		heard := s.Turns
		s.Settle(a.service.facts(), s.Act.ID, true)
		next := hear()
		released, _ := s.Released(a.service.facts(), reply.Held)
		if step := a.book.steps[len(a.book.steps)-1]; step.Turn != heard || released.Exchange.Turn() != heard || next.Exchange.Turn() != heard+1 {
			t.Errorf("heard in turn %d, its step has turn %d, it is sent on in turn %d, and the next one in turn %d", heard, step.Turn, released.Exchange.Turn(), next.Exchange.Turn())
		}
		return
	}
	t.Fatal("no request was held")
}

// TestAJournalThatCannotBeWritten: steps wait for it, and not without end.
func TestAJournalThatCannotBeWritten(t *testing.T) {
	a := newAgent(t, "anthropic")
	for range 3 * maxUnwritten {
		a.book.fails = append(a.book.fails, errors.New("full"))
	}
	for i := range 2 * maxUnwritten {
		a.service.write([]protocol.SteeringStep{{Sequence: int64(i + 1), Rung: string(steering.Observe), Anomaly: string(anomaly.AgentLooping)}})
	}
	if n := len(a.service.steps.list); n != maxUnwritten {
		t.Errorf("%d steps wait", n)
	}
	if n := a.service.facts().Recorded.Sequence; n != 2*maxUnwritten {
		t.Errorf("the newest step has the number %d", n)
	}
	a.book.fails = nil
	a.service.write(nil)
	if n := len(a.book.steps); n != maxUnwritten || a.book.steps[n-1].Sequence != 2*maxUnwritten || len(a.service.steps.list) != 0 {
		t.Errorf("%d steps", n)
	}
}
