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
	w := newWorld(t, "echo 1 > web/a.html", seldom)
	w.intake.RefuseText(`"checkpoint":{`, http.StatusRequestEntityTooLarge)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if problems := w.intake.Status().Problems; len(problems) != 1 || !strings.HasPrefix(problems[0], "reports: 1 reports are kept in the trusted volume only") {
		t.Errorf("problems: %q", problems)
	}
	if taken := w.intake.Checkpoints(); len(taken) > 0 {
		t.Errorf("checkpoints: %+v", taken)
	}
}
