// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestAHugeNameOfAToolSilencesNobody: a tool whose name is larger than a report may be passes through the proxy, and what is reported of it is
// bounded, so that the last word of the attempt arrives.
func TestAHugeNameOfAToolSilencesNobody(t *testing.T) {
	t.Parallel()
	c := newCircling(t, nil)
	c.tool = strings.Repeat("t", 2<<20)
	for range 3 {
		if err := c.ask(); err != nil {
			t.Fatal(err)
		}
	}
	c.signal("end")
	wantFinal(t, c.run.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	s := c.intake.Status()
	if len(s.Problems) > 0 {
		t.Errorf("problems: %q", s.Problems)
	}
	if s.Conversation == nil || s.Conversation.Turn != 3 || !strings.HasPrefix(s.Conversation.Tool, "tttt") || len(s.Conversation.Tool) > 1<<10 {
		t.Errorf("reported %.200s", fmt.Sprintf("%+v", s.Conversation))
	}
}

// TestWhatIntakeNeverTakesIsTold: the reports behind it arrive, and people are told that something is missing.
func TestWhatIntakeNeverTakesIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command = []string{"sh", "-c", "echo 1 > web/a.html; " + w.waitFor("exit")}
	})
	w.intake.RefuseText(`"checkpoint":{`, http.StatusRequestEntityTooLarge)
	p := w.start(1, nil)
	w.eventually("the agent works", func() bool { return w.intake.Status().AgentRunning })
	w.request(protocol.Request{ID: "now", Kind: protocol.RequestCheckpoint}) // is answered behind the checkpoint's own report
	w.signal("exit")
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if problems := w.intake.Status().Problems; len(problems) != 1 || !strings.Contains(problems[0], "only the trusted volume has ") {
		t.Errorf("problems: %q", problems)
	}
	if taken := w.intake.Checkpoints(); len(taken) > 0 {
		t.Errorf("checkpoints: %+v", taken)
	}
}
