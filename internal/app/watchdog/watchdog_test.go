// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
)

func wantFinal(t *testing.T, got contract.FinalReport, outcome, reason string) {
	t.Helper()
	if got.Outcome != outcome || got.Reason != reason {
		t.Errorf("final %+v, want %s/%s", got, outcome, reason)
	}
}

func TestValidWorkIsDelivered(t *testing.T) {
	w := newWorld(t, `git status --porcelain | grep -q . && exit 9
		echo "<form>" > web/login.html; rm web/index.html; echo noise > web/x.log`)
	wantFinal(t, w.start(1, nil).finish(), contract.OutcomeDelivered, contract.ReasonDelivered)
	if got := w.delivered("web/login.html"); got != "<form>" {
		t.Errorf("delivered %q", got)
	}
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", "tidewaiter/login"); got != "D\tweb/index.html\nA\tweb/login.html" {
		t.Errorf("branch changes %q", got)
	}
	checkpoints := w.intake.Checkpoints()
	last := checkpoints[len(checkpoints)-1]
	if last.Trigger != contract.TriggerFinal || last.Verdict == judge.Invalid || !last.Settled {
		t.Errorf("last checkpoint %+v", last)
	}
	s := w.intake.Status()
	if s.State != contract.StateComplete || s.Head != w.branch() || s.Tasks[0].State != contract.TaskDone || *s.Tasks[0].ExitCode != 0 {
		t.Errorf("status %+v", s)
	}
}
