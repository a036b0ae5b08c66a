// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

// TestAnAcknowledgmentIsKept with its Checkpoint: the first word about a rule, bounded. One about a Checkpoint that is gone stops nothing.
func TestAnAcknowledgmentIsKept(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	says := func(sequence, checkpoint int64, rule, text string) protocol.Report {
		return reports.New(1, sequence, protocol.Acknowledgment{Checkpoint: checkpoint, Rule: rule, Turn: 3, Text: text})
	}
	var ack protocol.ReportAck
	r.post(t, login.Token, reports.New(1, 1, reports.Taken(1, protocol.Invalid)), says(2, 1, "areas", "I write to web\x1b."), says(3, 9, "areas", "gone")).decode(t, &ack)
	r.post(t, login.Token, says(4, 1, "areas", "other words"), says(5, 1, "secrets", strings.Repeat("x", 4000))).decode(t, &ack)
	if ack.Sequence != 5 {
		t.Errorf("acknowledged %+v", ack)
	}
	kept := checkpoints(t, login.Feature)[0].Status.Acknowledged
	if len(kept) != 2 || kept[0].Rule != "areas" || kept[0].Text != "I write to web\uFFFD." || kept[0].Turn != 3 || !kept[0].AcknowledgmentTime.Time.Equal(reports.Time(2)) || len([]rune(kept[1].Text)) != 512 {
		t.Errorf("kept %+v", kept)
	}
}
