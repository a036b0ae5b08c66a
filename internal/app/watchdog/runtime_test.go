// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// abacus is a runtime that only this test knows: it starts the command its own way and knows of no pauses.
type abacus struct{}

func (abacus) Launch(t runtimes.Task) runtimes.Launch {
	return runtimes.Launch{Argv: append([]string{"env", "BEADS=10"}, t.Command...), Env: append(t.Env, "HOME="+t.Home+"/abacus")}
}

func (abacus) Pause(string, time.Duration) (ask, resume any) { return nil, nil }

// A runtime is an adapter and a line of the table. One that knows of no pauses is not asked, whatever its agent says.
func TestARuntimeIsAnAdapter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom, shadow, func(o *protocol.Orders) { o.Agent.Runtime = "abacus" })
	w.runtimes = []runtimes.Record{{Name: "abacus", Available: true, Interactive: true, Adapter: abacus{}}}
	w.intake.Order(func(o *protocol.Orders) {
		o.Agent.Command[2] = `echo '{"type":"capabilities","pause_resume":true}' >&$TIDEWAITER_REPLY_FD
			echo evil > web/legacy/evil.html; ` + w.signalled("written") + untilTold + `echo "$BEADS $HOME $TIDEWAITER_TASK" > web/good.html`
	})
	p := w.start(1, nil)
	w.waitSignal("written")
	if first := w.checkpointNow("look"); !first.Frozen || first.Pause != nil {
		t.Errorf("frozen %v, pause %+v", first.Frozen, first.Pause)
	}
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got, want := w.delivered("web/good.html"), "10 "+w.paths.Home+"/abacus login"; got != want {
		t.Errorf("delivered %q, want %q", got, want)
	}
}

// An agent whose runtime has no adapter is not started, and the end says why.
func TestAnUnknownRuntimeIsNotStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "echo one > web/one.html", func(o *protocol.Orders) { o.Agent.Runtime = "gemini-cli" })
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeAgentFailed, protocol.ReasonAgentNotStarted)
	if !strings.Contains(f.Message, `this version cannot start the runtime "gemini-cli": choose another spec.agent.runtime`) {
		t.Errorf("message %q", f.Message)
	}
}
