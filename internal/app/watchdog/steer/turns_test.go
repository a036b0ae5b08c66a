// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"strings"
	"testing"
)

// TestTurnsAreCountedOnce for people: what is said of an anomaly counts the turns of the run, as its report does, also for an agent that began anew,
// for another task, and where the file with what is remembered is lost.
func TestTurnsAreCountedOnce(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		last := int64(0)
		trouble := func(what string, turn func()) {
			t.Helper()
			noted := len(a.book.steps)
			for n := 0; ; n++ {
				turn()
				if c := a.service.Conversation(); c != nil && len(c.Anomalies) > 0 && strings.Contains(c.Anomalies[0].Message, "; in turn ") {
					now := c.Turn
					x := a.book.steps[len(a.book.steps)-1]
					if c.Anomalies[0].Turn <= last || c.Anomalies[0].Turn > now || !strings.Contains(c.Anomalies[0].Message, fmt.Sprintf("; in turn %d ", x.Turn)) {
						t.Errorf("%s: in turn %d people read %+v", what, now, c.Anomalies[0])
					}
					if x.Turn != now || !strings.Contains(x.Message, fmt.Sprintf("Turn %d: ", now)) {
						t.Errorf("%s: in turn %d a step is noted as %+v", what, now, x)
					}
					last = now
					return
				}
				if n > 40 {
					t.Fatalf("%s: nothing is said in %d steps", what, len(a.book.steps)-noted)
				}
			}
		}
		works := func() {
			a.ask()
			a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
		}
		begins := func() { a.entries = []string{a.says("user", "Add a form.")} }
		begins()
		trouble("the first agent", works)
		a.service.Anew()
		begins()
		trouble("an agent that began anew", works)
		a.task = "tests"
		begins()
		trouble("another task", works)
		a.shelf.data = nil
		a.begin()
		begins()
		trouble("a watchdog that has lost its file", works)
	})
}
