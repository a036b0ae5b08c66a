// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// asking is a freeze that asks first.
func asking(patience time.Duration) protocol.RunnerFreeze {
	return protocol.RunnerFreeze{Timeout: 10 * time.Second, Limit: time.Minute,
		Ask: &protocol.RunnerAsk{Line: "pause", Resume: "resume", ID: "login-7", Timeout: patience}}
}

// willing says that the agent takes part in pauses, and waits for one.
const willing = `echo '{"type":"capabilities","pause_resume":true}' >&$TIDEWAITER_REPLY_FD; touch up; read -r line; echo "$line" > asked; `

// TestPause: an agent that takes part is asked before it is stopped, and told that it goes on; whatever it answers, it is
// stopped.
func TestPause(t *testing.T) {
	const patient, short = time.Minute, 50 * time.Millisecond
	for name, tc := range map[string]struct {
		script   string
		patience time.Duration
		want     *protocol.Pause
	}{
		"takes no part": {"touch up; ", short, nil},
		"acknowledges": {
			willing + `echo '{"type":"pause_ack","checkpoint_id":"login-7","status":"paused","pending_operations":["go test","a","b","c","d"]}' >&3; `,
			patient, &protocol.Pause{Acknowledged: true, Pending: []string{"go test", "a", "b", "c"}},
		},
		"names no checkpoint":   {willing + `echo '{"type":"pause_ack","status":"paused"}' >&3; `, patient, &protocol.Pause{Acknowledged: true}},
		"says nothing":          {willing, short, &protocol.Pause{}},
		"answers another pause": {willing + `echo '{"type":"pause_ack","checkpoint_id":"login-6","status":"paused"}' >&3; `, short, &protocol.Pause{}},
		"is not paused":         {willing + `echo '{"type":"pause_ack","status":"busy"}' >&3; `, short, &protocol.Pause{}},
		"talks nonsense":        {willing + `echo 'pause_ack' >&3; echo '{"type":7}' >&3; echo >&3; `, short, &protocol.Pause{}},
		"talks too much": {
			willing + `head -c 200000 /dev/zero >&3; echo >&3; echo '{"type":"pause_ack","status":"paused"}' >&3; touch said; `, short, &protocol.Pause{},
		},
		"ends": {willing + "exit 0; ", patient, &protocol.Pause{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, nil)
			p.shell(tc.script + `read -r line; echo "$line" > resumed; sleep 1000`)
			eventually(t, "the script is up", p.has("up"))
			frozen := p.freezeAsking(t, tc.patience, tc.want != nil)
			if diff := cmp.Diff(tc.want, frozen.Pause, cmpopts.IgnoreFields(protocol.Pause{}, "Latency")); diff != "" {
				t.Errorf("pause (-want +got)\n%s", diff)
			}
			p.thaw()
			if tc.want == nil || name == "ends" {
				return
			}
			p.wantLine(t, "asked", "pause")
			p.wantLine(t, "resumed", "resume")
		})
	}
}

// freezeAsking freezes; where the agent is to be asked, once it has been heard that it takes part.
func (p *pod) freezeAsking(t *testing.T, patience time.Duration, asked bool) protocol.RunnerFrozen {
	t.Helper()
	var frozen protocol.RunnerFrozen
	eventually(t, "the agent is frozen", func() bool {
		var err error
		frozen, err = p.watchdog.Freeze(t.Context(), asking(patience))
		if err != nil || !frozen.Settled {
			t.Fatalf("freeze = %+v, %v", frozen, err)
		}
		if asked && frozen.Pause == nil {
			p.thaw()
			return false
		}
		return true
	})
	return frozen
}

func (p *pod) wantLine(t *testing.T, file, want string) {
	t.Helper()
	eventually(t, file, func() bool {
		got, err := os.ReadFile(filepath.Join(p.dir, file))
		return err == nil && strings.TrimSpace(string(got)) == want
	})
}

// A watchdog that crashes between a pause and its end leaves no agent waiting: the next one's thaw tells it.
func TestPauseOverACrash(t *testing.T) {
	p := newPod(t, nil)
	p.shell(willing + `echo '{"type":"pause_ack","status":"paused"}' >&3; read -r line; echo "$line" > resumed; sleep 1000`)
	eventually(t, "the script is up", p.has("up"))
	p.freezeAsking(t, time.Minute, true)
	_ = p.watchdog.Close()
	if hello := p.watch(); !hello.Frozen || hello.Running == 0 {
		t.Errorf("hello = %+v", hello)
	}
	p.thaw()
	p.wantLine(t, "resumed", "resume")
}

// TestAcknowledgments: an agent may say a bounded number of them for each line that it is sent; more are not passed on, and other lines are.
func TestAcknowledgments(t *testing.T) {
	p := newPod(t, nil)
	p.shell(`ack() { echo '{"type":"violation_ack","understood":true,"checkpoint_id":"login-1","constraint":"'$1'","corrective_action":"I write to web"}' >&$TIDEWAITER_REPLY_FD; }
		touch up; read -r line; echo '{"type":"violation_ack","understood":false,"constraint":"areas"}' >&$TIDEWAITER_REPLY_FD
		for i in 1 2 3 4 5 6 7 8 9 10 11 12; do ack rule$i; done; echo '{"type":"capabilities","pause_resume":true}' >&$TIDEWAITER_REPLY_FD
		read -r pause; read -r resume; read -r line; ack $(head -c 3000 /dev/zero | tr '\0' x); sleep 1000`)
	eventually(t, "the script is up", p.has("up"))
	p.send(t)
	for n := range protocol.MaxAcknowledgments {
		want := protocol.RunnerUnderstood{Checkpoint: "login-1", Rule: fmt.Sprintf("rule%d", n+1), Instead: "I write to web"}
		if e := p.event(); e.Understood == nil || *e.Understood != want {
			t.Fatalf("event = %+v, want %+v", e, want)
		}
	}
	p.freezeAsking(t, 50*time.Millisecond, true) // what it has said before it asks to take part is heard
	p.thaw()
	p.send(t)
	if e := p.event(); e.Understood == nil || e.Understood.Rule != strings.Repeat("x", protocol.MaxAcknowledged) {
		t.Errorf("event = %+v, want a long rule that is cut", e)
	}
}

// send the agent a line.
func (p *pod) send(t *testing.T) {
	t.Helper()
	if delivered, err := p.watchdog.Input(t.Context(), "{}"); err != nil || !delivered {
		t.Fatalf("input = %t, %v", delivered, err)
	}
}
