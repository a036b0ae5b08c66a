// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// TestAModelIsToldThePlanOfItsRole when its work falls off it.
func TestAModelIsToldThePlanOfItsRole(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		a.policy.Roles = []policy.Role{{Name: "implementor", Alternate: "Use the mirror.", Contingent: "Ask the librarian.", Emergency: "Close the book."}}
		a.policy.Anomalies.CheckEveryTurns = 1
		heard := map[string]int{}
		for turn := 1; turn <= 16; turn++ {
			sent := a.ask()
			for _, plan := range []string{"Alternate plan of your role: Use the mirror.", "Contingent plan of your role: Ask the librarian.", "Emergency plan of your role: Close the book."} {
				if heard[plan] == 0 && strings.Contains(sent, plan) {
					heard[plan] = turn
				}
			}
			a.entries = append(a.entries, a.called("Deploy", `{"to":"web"}`, "Error: cannot")...)
		}
		want := map[string]int{"Alternate plan of your role: Use the mirror.": 4, "Contingent plan of your role: Ask the librarian.": 6, "Emergency plan of your role: Close the book.": 10}
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("turns in which it is told (-want +got):\n%s", diff)
		}
	})
}

// TestAnIdleAgentIsNotSilent: it waits for a person, or is frozen. Its silence begins when it has something to do.
func TestAnIdleAgentIsNotSilent(t *testing.T) {
	a := newAgent(t, "anthropic")
	a.ask()
	a.service.Idle(true)
	if act := a.silent(12 * time.Hour); act != nil || len(a.book.steps) > 0 {
		t.Errorf("%+v, %+v", act, a.book.steps)
	}
	a.service.Idle(false)
	if a.silent(25 * time.Minute); len(a.book.steps) > 0 {
		t.Errorf("%+v", a.book.steps)
	}
	if a.silent(time.Hour); len(a.book.steps) != 1 || a.book.steps[0].Detector != anomaly.Silence {
		t.Errorf("%+v", a.book.steps)
	}
}
