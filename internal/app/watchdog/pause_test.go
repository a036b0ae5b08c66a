// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// courteous takes part in pauses: it finishes what it does before it answers, and goes on when it is told.
const courteous = `exec 4<&0; await() { line=; until case "$line" in *"$1"*) true;; *) false;; esac; do read -r line <&4; done; echo "$line" >> "$HOME/told"; }
	echo '{"type":"capabilities","pause_resume":true}' >&$TIDEWAITER_REPLY_FD
	echo good > web/good.html; echo evil > web/legacy/evil.html; %WRITTEN%
	await pause_request; echo last > web/last.html
	echo '{"type":"pause_ack","status":"paused","pending_operations":["run the tests"]}' >&$TIDEWAITER_REPLY_FD
	await resume; await checkpoint_violation; echo better > web/good.html`

// Where a freeze is needed, an agent that takes part in pauses is asked first. What it finishes until it answers is in the
// checkpoint, which keeps what it said.
func TestTheAgentIsAskedToPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom, shadow)
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = strings.Replace(courteous, "%WRITTEN%", w.signalled("written"), 1)
	})
	p := w.start(1, nil)
	w.waitSignal("written")
	first := w.checkpointNow("look")
	if !first.Frozen || first.Pause == nil || !first.Pause.Acknowledged || !slices.Equal(first.Pause.Pending, []string{"run the tests"}) {
		t.Errorf("frozen %v, pause %+v", first.Frozen, first.Pause)
	}
	if got := w.files(first.Tree)["web/last.html"]; got == "" {
		t.Error("the checkpoint lacks what was finished before the answer")
	}
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	w.wantTold(`{"type":"pause_request","checkpoint_id":"login-1","reason":"checkpoint_validation","timeout_ms":10000}`,
		`{"type":"resume","checkpoint_id":"login-1"}`)
	if got := w.delivered("web/good.html"); got != "better" {
		t.Errorf("delivered %q", got)
	}
}
