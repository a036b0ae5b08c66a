// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// askClosed sends the conversation with the beginning of an answer behind it, which is another one each time: nothing can be said there.
func (a *agent) askClosed() string {
	a.t.Helper()
	a.entries = append(a.entries, a.says("assistant", fmt.Sprintf("Well, %d", a.calls)))
	sent := a.ask()
	a.entries = a.entries[:len(a.entries)-1]
	return sent
}

// TestEarlierWordsInARequestWithoutAPlace: what was said before stands there all the same, also where something new cannot be said.
func TestEarlierWordsInARequestWithoutAPlace(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.loop(12)
	steps := len(a.book.steps)
	for len(a.book.steps) == steps && a.calls < 40 {
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
		if sent := a.askClosed(); strings.Count(sent, supervisor) != 1 {
			t.Fatalf("said %d times: %s", strings.Count(sent, supervisor), sent)
		}
	}
	if sent := a.ask(); len(a.book.steps) == steps || strings.Count(sent, supervisor) != 2 {
		t.Errorf("said %d times: %s", strings.Count(sent, supervisor), sent)
	}
}

// TestWhatAltersTheRequestWaitsForAPlace: neither a turn without tools nor what is left out is taken for done in a request in which that cannot be said.
func TestWhatAltersTheRequestWaitsForAPlace(t *testing.T) {
	for rung, mark := range map[policy.Rung]string{policy.RungNoTools: "This turn has no tools", policy.RungSurgery: leftOut} {
		fails := func(calls int) (a *agent, sent string) {
			a = newAgent(t, "anthropic")
			if a.policy.Anomalies.CheckEveryTurns = 1; rung == policy.RungSurgery {
				a.policy.Anomalies.Ladder = rung
			}
			a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
			for range calls {
				a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: the host cannot be reached")...)
				if sent = a.ask(); strings.Contains(sent, mark) {
					break
				}
			}
			return a, sent
		}
		done := func(a *agent) (steps []protocol.Steering) {
			return slices.DeleteFunc(slices.Clone(a.book.steps), func(x protocol.Steering) bool { return x.Rung != string(rung) })
		}
		a, sent := fails(40)
		if !strings.Contains(sent, mark) {
			t.Fatalf("%s is never tried: %s", rung, sent)
		}
		a, _ = fails(a.calls - 2)
		for range 2 {
			a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: the host cannot be reached")...)
			if sent := a.askClosed(); strings.Contains(sent, "tool_choice") || strings.Contains(sent, mark) || len(done(a)) > 0 {
				t.Errorf("%s in a request without a place: %+v: %s", rung, done(a), sent)
			}
		}
		a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: the host cannot be reached")...)
		sent = a.ask()
		digest := sha256.Sum256([]byte(sent))
		if steps := done(a); len(steps) != 1 || steps[0].Request != hex.EncodeToString(digest[:]) || strings.Count(sent, mark) != 1 ||
			rung == policy.RungNoTools && !strings.Contains(sent, `"tool_choice":{"type":"none"}`) || rung == policy.RungSurgery && steps[0].Before == "" {
			t.Errorf("%s: %+v: %s", rung, steps, sent)
		}
		a.entries = append(a.entries, a.called("Edit", `{"file_path":"/workspace/b.go","old_string":"a","new_string":"b"}`, "done")...)
		if next := a.ask(); strings.Count(next, mark) != 1 || strings.Contains(next, "tool_choice") {
			t.Errorf("the request after %s: %s", rung, next)
		}
	}
}
