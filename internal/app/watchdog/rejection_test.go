// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const rejection = "the model's answer breaks the rules: the section \"Summary\" is missing"

// rejecting is a gateway that says of every answer that its task fails, behind an answer that has begun.
func rejecting(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		tunnel(w, r.Host)
	case r.URL.Path == protocol.AllowancePath:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		w.Header().Set(http.TrailerPrefix+protocol.FailsHeader, url.QueryEscape(rejection))
	}
}

// TestSUP7ATaskFailsWhenItsAnswerIsRejected: the agent is ended at once, what it wrote is captured and not delivered, and people are told why.
func TestSUP7ATaskFailsWhenItsAnswerIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom)
	run, ask := w.withModels(http.HandlerFunc(rejecting), nil)
	ask()
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonAnswerRejected)
	if f.Message != rejection {
		t.Errorf("message %q", f.Message)
	}
	if last := w.intake.Checkpoints()[len(w.intake.Checkpoints())-1]; last.Trigger != protocol.TriggerFinal || last.Action != protocol.ActionPromoted {
		t.Errorf("the last checkpoint: %+v", last)
	}
	if out := w.ask("log"); !strings.Contains(out, "taskRejected") {
		t.Errorf("the journal does not say so: %s", out)
	}
}

// TestARejectionOutlivesAWatchdog: what was journaled counts when the watchdog starts anew.
func TestARejectionOutlivesAWatchdog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom)
	run, ask := w.withModels(http.HandlerFunc(rejecting), pullAt("captured", 1))
	ask()
	if err := run.wait(); !errors.Is(err, errPulled) {
		t.Fatalf("the watchdog ended with %v", err)
	}
	run.watch(nil)
	f := run.finish()
	wantFinal(t, f, protocol.OutcomeBlocked, protocol.ReasonAnswerRejected)
}
