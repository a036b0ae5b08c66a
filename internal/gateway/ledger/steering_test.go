// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	core "github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
)

// steered is a step of surgery, with a request of its own.
func steered(sequence int64) protocol.SteeringStep {
	return protocol.SteeringStep{
		Sequence: sequence, Time: began.Add(time.Duration(sequence-100) * time.Second), Attempt: 2, Task: "form", Thread: 1, Turn: 7, Request: name("request", sequence),
		Anomaly: "AgentLooping", Detector: "same-failure", Evidence: "it has failed 3 times", Rung: "Surgery", Over: sequence%2 == 0, Message: "[SUPERVISOR] Stop.",
		Channel: protocol.ChannelRequest, Before: `[{"role":"user"}]`, After: "It was tried three times.", Missing: "the rest",
	}
}

func (w *world) steer(l *ledger.Ledger, o ledger.Owner, s protocol.SteeringStep) (missing string) {
	w.Helper()
	fresh, missing, err := l.Steering().Record(w.Context(), o, s)
	if err != nil || !fresh {
		w.Fatalf("step %d: fresh %t, %v", s.Sequence, fresh, err)
	}
	return missing
}

// TestSteering: every field comes back as it was given, once, and with the call in whose request the step was decided.
func TestSteering(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		replicas := w.replicas()
		other := ledger.Owner{FeatureUID: "other", Namespace: "shop", Feature: "other"}
		for n := range int64(5) {
			w.steer(replicas[n%2], login, steered(n+1))
		}
		w.steer(replicas[0], other, steered(9))
		again := steered(2)
		again.Evidence = "something else"
		if fresh, _, err := replicas[1].Steering().Record(t.Context(), login, again); fresh || err != nil {
			t.Errorf("recorded again: %v", err)
		}
		// The calls of steps 2 and 3: one that ended long before has the same request, and so has one of another Feature.
		for _, c := range []struct {
			uid, id string
			step    int64
			after   time.Duration
		}{{"uid", "early", 3, -time.Hour}, {"uid", "second", 2, time.Minute}, {"uid", "third", 3, time.Second}, {"uid", "repeated", 3, 2 * time.Second}, {"other", "foreign", 1, time.Second}} {
			i := call(c.id)
			i.FeatureUID, i.At, i.RequestDigest = c.uid, steered(c.step).Time.Add(c.after), steered(c.step).Request
			w.must(replicas[0].Settle(t.Context(), "", i))
		}
		var want []protocol.SteeringStep
		for n := range int64(5) {
			s := steered(n + 1)
			s.Before, s.After, s.Call = "", "", map[int64]int64{2: 2, 3: 3}[n+1]
			want = append(want, s)
		}
		for _, limit := range []int{1, 2, 100} {
			var got []protocol.SteeringStep
			for after := int64(0); ; after = got[len(got)-1].Sequence {
				page, err := replicas[1].Steering().List(t.Context(), "uid", after, limit)
				w.must(err)
				if len(page) > limit {
					t.Fatalf("%d of at most %d", len(page), limit)
				}
				if got = append(got, page...); len(page) == 0 {
					break
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d at a time (-want +got):\n%s", limit, diff)
			}
		}
		whole := steered(3)
		whole.Call = 3
		got, err := replicas[0].Steering().Step(t.Context(), "uid", 3)
		if diff := cmp.Diff(whole, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		for _, asked := range []struct {
			uid  string
			step int64
		}{{"uid", 6}, {"uid", 0}, {"nobody", 1}} {
			if _, err := replicas[0].Steering().Step(t.Context(), asked.uid, asked.step); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%v: %v", asked, err)
			}
		}
		for _, o := range []ledger.Owner{{}, login} {
			if _, _, err := replicas[0].Steering().Record(t.Context(), o, protocol.SteeringStep{}); err == nil || !strings.Contains(err.Error(), "give the UID") {
				t.Errorf("%v: %v", o, err)
			}
		}
	})
}

// TestHostileSteering: whatever is given is bounded and text that both engines store.
func TestHostileSteering(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		hostile := strings.Repeat("\x00\xffü", 1<<20)
		w.steer(l, login, protocol.SteeringStep{
			Sequence: 1, Time: began.AddDate(100, 0, 0), Thread: -1 << 31, Turn: -1 << 63, Attempt: 1<<63 - 1, Task: hostile, Request: hostile, Anomaly: hostile, Detector: hostile,
			Evidence: hostile, Rung: hostile, Message: hostile, Channel: hostile, Before: hostile, After: hostile, Missing: hostile,
		})
		got, err := l.Steering().Step(t.Context(), "uid", 1)
		w.must(err)
		if !got.Time.Equal(began) {
			t.Errorf("kept from %s", got.Time)
		}
		for what, field := range map[string]struct {
			text string
			most int
		}{
			"task": {got.Task, 512}, "request": {got.Request, 512}, "anomaly": {got.Anomaly, 64}, "detector": {got.Detector, 64}, "rung": {got.Rung, 64}, "channel": {got.Channel, 64},
			"evidence": {got.Evidence, protocol.MaxSteeringEvidence}, "message": {got.Message, protocol.MaxSteeringMessage}, "missing": {got.Missing, 1024},
			"before": {got.Before, protocol.MaxSteeringBefore}, "after": {got.After, protocol.MaxSteeringAfter},
		} {
			if field.text == "" || len(field.text) > field.most || !utf8.ValidString(field.text) || strings.Contains(field.text, "\x00") {
				t.Errorf("%s: %d bytes of at most %d", what, len(field.text), field.most)
			}
		}
	})
}

// TestRoomOfSteering: what surgery takes out has the room of diffs; where there is none, the step is recorded without it. When it has passed,
// there is room again, and a Feature of which nothing else is left is forgotten.
func TestRoomOfSteering(t *testing.T) {
	noise := make([]byte, protocol.MaxSteeringBefore/2)
	_, _ = rand.Read(noise)
	before := hex.EncodeToString(noise)
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		var whole int64
		for n := range int64(200) {
			s := steered(n + 1)
			s.Before, s.Time = before, began
			missing := w.steer(l, login, s)
			got, err := l.Steering().Step(t.Context(), "uid", n+1)
			w.must(err)
			switch {
			case got.Before == before && missing == "" && got.Missing == s.Missing:
				whole++
			case got.Before != "" || got.After != "" || missing == "" || got.Missing != missing || got.Evidence != s.Evidence:
				t.Fatalf("step %d: %d bytes, %q, %q", n+1, len(got.Before), got.Missing, missing)
			}
		}
		if most := int64(core.MaxPatches / len(noise)); whole < most*2/5 || whole > most { // digits in hexadecimal take a little more than half
			t.Errorf("%d of at most %d", whole, most)
		}
		w.now.Store(began.Add(2 * time.Hour).UnixNano())
		if n, err := l.Expire(t.Context(), "uid", 100); err != nil || n != 100 {
			t.Fatalf("%d, %v", n, err)
		}
		s := steered(201)
		s.Before, s.Time = before, began.Add(2*time.Hour)
		if missing := w.steer(l, login, s); missing != "" {
			t.Errorf("after records have passed: %s", missing)
		}
		w.now.Store(began.Add(4 * time.Hour).UnixNano())
		for n := 1; n > 0; {
			var err error
			n, err = l.Expire(t.Context(), "uid", 1000)
			w.must(err)
		}
		if owners, err := l.Owners(t.Context(), ""); err != nil || len(owners) > 0 {
			t.Errorf("%+v, %v", owners, err)
		}
	})
}
