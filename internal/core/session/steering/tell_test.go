// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestChannel: an agent that asks models is told in its requests alone; any other by its tools, or by a line.
func TestChannel(t *testing.T) {
	for n := range 16 {
		r := Reach{Alone: n&1 > 0, Tools: n&2 > 0, Lines: n&4 > 0}
		f := anomaly.Finding{Mute: n&8 > 0}
		want := ""
		switch {
		case !r.Alone:
		case r.Tools && !f.Mute:
			want = protocol.ChannelTools
		case r.Lines:
			want = protocol.ChannelInput
		}
		if got := r.Channel(f); got != want {
			t.Errorf("%+v, %+v: %q, want %q", r, f, got, want)
		}
	}
}

// lonely is an agent that asks no model.
type lonely struct {
	*session

	reach Reach
	told  []string
}

func newLonely(t *testing.T, ladder Rung, reach Reach) *lonely {
	l := &lonely{session: &session{t: t, rules: Defaults(), now: epoch, turns: map[int]int{}}, reach: reach}
	l.rules.Ladder = ladder
	return l
}

// tick takes the pulse every 30 seconds for a while.
func (l *lonely) tick(during time.Duration) {
	l.t.Helper()
	for end := l.now.Add(during); l.now.Before(end); {
		l.now = l.now.Add(30 * time.Second)
		l.seen.Pulse(anomaly.Pulse{Processes: 2, CPU: l.now.Sub(epoch)}, l.now) // it computes
		l.check()
	}
}

// check what is wrong.
func (l *lonely) check() {
	l.t.Helper()
	for _, x := range l.decide(TurnContext{Now: l.now, Clock: true, Reach: l.reach}) {
		l.told = append(l.told, strings.TrimSpace(fmt.Sprint(x.Rung, " ", x.Channel)))
		if text, err := json.Marshal(x); err != nil || x.Over && x.Message != "" || (x.Channel != "") != (x.Rung == Nudge && !x.Over || x.Rung == Directive && !x.Over) {
			l.t.Errorf("%s, %v", text, err)
		}
	}
}

// swing between two trees.
func (l *lonely) swing(times int) {
	l.t.Helper()
	for n := range times {
		l.now = l.now.Add(10 * time.Second)
		l.seen.Work(anomaly.Work{Tree: fmt.Sprint("tree", n%2), Changed: true, Verdict: "Valid"}, l.now)
		l.check()
	}
}

// TestAnAgentThatAsksNoModel is told of a workspace that goes back and forth by the channel that it has, again after a while, and then what
// the ladder allows is done. It ends when it is over.
func TestAnAgentThatAsksNoModel(t *testing.T) {
	for name, tc := range map[string]struct {
		ladder Rung
		reach  Reach
		want   []string
	}{
		"by its tools":        {Nudge, Reach{Alone: true, Tools: true, Lines: true}, []string{"Nudge Tools", "Nudge Tools", "Nudge"}},
		"by a line":           {Nudge, Reach{Alone: true, Lines: true}, []string{"Nudge Input", "Nudge Input", "Nudge"}},
		"to the directive":    {Directive, Reach{Alone: true, Lines: true}, []string{"Nudge Input", "Directive Input", "Directive"}},
		"nobody hears":        {Nudge, Reach{Alone: true}, []string{"Observe", "Observe"}},
		"nobody is told":      {Observe, Reach{Alone: true, Lines: true}, []string{"Observe", "Observe"}},
		"to the rollback":     {Rollback, Reach{Alone: true}, []string{"Rollback", "Rollback"}},
		"it asks models":      {Block, Reach{Tools: true, Lines: true}, []string{"Observe"}}, // it is told with its next request
		"a ladder of nothing": {Hold, Reach{Alone: true}, []string{"Observe", "Observe"}},
	} {
		l := newLonely(t, tc.ladder, tc.reach)
		l.swing(8)
		l.tick(15 * time.Minute)
		l.seen.Work(anomaly.Work{Tree: "another", Changed: true, Verdict: "Valid"}, l.now)
		l.tick(time.Minute)
		if !slices.Equal(l.told, tc.want) {
			t.Errorf("%s: %q, want %q", name, l.told, tc.want)
		}
		for _, x := range l.steps {
			if x.Channel != "" && (!strings.HasPrefix(x.Message, Tag+" the workspace went back to an earlier state ") || strings.Contains(x.Message, "Turn") || !strings.Contains(x.Message, "Find out which of the two versions is right")) {
				t.Errorf("%s: %q", name, x.Message)
			}
		}
		if last := l.steps[len(l.steps)-1]; !last.Over {
			t.Errorf("%s: it is not over: %+v", name, last)
		}
	}
	l := newLonely(t, Directive, Reach{Alone: true, Lines: true})
	l.swing(8)
	l.tick(15 * time.Minute)
	if got := l.steps[len(l.steps)-1].Message; !strings.Contains(got, "first seen 10m ago). The supervisor told you so 10m ago. Before anything else, do this: ") {
		t.Errorf("%q", got)
	}
}

// TestRefusedCheckpoints are told of by the plan of a role.
func TestRefusedCheckpoints(t *testing.T) {
	l := newLonely(t, Nudge, Reach{Alone: true, Lines: true})
	l.rules.Role, l.rules.Plan = true, Plan{Alternate: "Ask for another area."}
	for n := range 8 {
		l.now = l.now.Add(10 * time.Second)
		l.seen.Work(anomaly.Work{Tree: fmt.Sprint("tree", n), Changed: true, Verdict: "Invalid"}, l.now)
		l.check()
	}
	if !slices.Equal(l.told, []string{"Nudge Input"}) || !strings.Contains(l.steps[0].Message, "6 checkpoints in a row were not valid") || !strings.Contains(l.steps[0].Message, "Ask for another area.") {
		t.Errorf("%q %+v", l.told, l.steps)
	}
}

// TestASilentAgent is told by a line, since it calls no tool, and is started anew where the ladder goes as far.
func TestASilentAgent(t *testing.T) {
	for name, tc := range map[string]struct {
		ladder Rung
		reach  Reach
		want   []string
	}{
		"a line":    {Nudge, Reach{Alone: true, Tools: true, Lines: true}, []string{"Nudge Input", "Nudge Input", "Nudge Input", "Nudge"}},
		"tools":     {Nudge, Reach{Alone: true, Tools: true}, []string{"Observe", "Observe"}},
		"restart":   {Restart, Reach{Alone: true, Tools: true}, []string{"Restart", "Restart"}},
		"all of it": {Block, Reach{Alone: true, Lines: true}, []string{"Nudge Input", "Directive Input", "Restart", "Restart"}},
	} {
		l := newLonely(t, tc.ladder, tc.reach)
		for range 80 {
			l.now = l.now.Add(30 * time.Second)
			l.seen.Pulse(anomaly.Pulse{Processes: 3}, l.now)
			l.check()
		}
		l.seen.Work(anomaly.Work{Changed: true}, l.now)
		l.check()
		if !slices.Equal(l.told, tc.want) {
			t.Errorf("%s: %q, want %q", name, l.told, tc.want)
		}
	}
}
