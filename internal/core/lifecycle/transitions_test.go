// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"
	"testing"
)

// legalText is the table of legal transitions.
//
//go:embed testdata/transitions.tsv
var legalText string

// transition of the phase, or of the status of a condition.
type transition struct{ what, from, to string }

func (m transition) String() string { return m.what + "\t" + m.from + "\t" + m.to }

// legal are the rows of the table.
var legal = sync.OnceValue(func() map[transition]bool {
	rows := map[transition]bool{}
	for line := range strings.Lines(legalText) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) >= 3 && !strings.HasPrefix(line, "#") {
			rows[transition{f[0], f[1], f[2]}] = true
		}
	}
	return rows
})

// transitions between two memories.
func transitions(was, is Memory) []transition {
	const none = "-"
	list := []transition{{"Phase", cmp.Or(string(was.Phase), none), string(is.Phase)}}
	for _, c := range is.Conditions {
		list = append(list, transition{c.Type, cmp.Or(string(was.Condition(c.Type).Status), none), string(c.Status)})
	}
	return slices.DeleteFunc(list, func(m transition) bool { return m.from == m.to })
}

// checkTransitions holds that a write of the status makes legal transitions only.
func (s *sim) checkTransitions(m Memory) {
	for _, x := range transitions(s.memory, m) {
		if s.moves != nil {
			s.moves[x] = true
		}
		if !legal()[x] {
			s.fail("this transition is not in testdata/transitions.tsv: %s", x)
		}
	}
}

// interruptions are what may happen at any moment.
var interruptions = []occurrence{
	"0s wait", "0s reports ready running connected", "0s reports ready running disconnected", "0s reports asks", "0s reports BreakerOpen", "0s reports BudgetExceeded",
	"0s checkpoint Valid", "0s checkpoint Invalid x",
	"0s final Delivered Delivered", "0s final ReadyToMerge ApprovalRequired", "0s final Blocked CheckpointInvalid x", "0s final Blocked PushFailed x", //nolint:dupword // an outcome and its reason
	"0s final AgentFailed AgentFailed x", "0s final Suspended Suspended", "0s final Stopped LockLost", "0s pod-ends", "0s pod-lost", "0s problem ImagePullFailed x", //nolint:dupword // an outcome and its reason
	"0s suspend", "0s resume", "0s request retry", "0s request rollback", "0s retries 0", "0s deadline 1s", "0s delete", "0s refuse PolicyInvalid by-user x", "0s refuse Waits by-itself x",
	"0s accept", "0s obstacle Full x", "0s contracts db", "0s lease db shop other", "0s no-lease db", "0s overlap other", "0s waits-for-area other",
	"0s network-opens", "0s network-opens warn", "0s network-closes", "0s full", "0s require-approval", "0s approve 1", "1h wait",
}

// TestTransitions lets each of the interruptions happen after each line of each transcript, and holds that the table says nothing that
// never happens: each of its rows is a transition that was made.
func TestTransitions(t *testing.T) {
	happened := map[transition]bool{}
	n := 0
	var seen worlds // Many transcripts begin in the same way.
	for _, text := range transcripts(t) {
		for _, m := range undisturbed(t, text).moments {
			calls := m.world.names(m.world.look(false))
			if m.round > 0 && !slices.Contains(calls, "create the Job") {
				continue
			}
			// A controller that died before it wrote the status leaves what it made.
			died := m.world.clone()
			died.round(died.reconcile(died.look(false), fate{at: len(calls)}))
			for _, world := range []*sim{m.world, died} {
				if !seen.add(world) {
					continue
				}
				for _, what := range interruptions {
					s := world.clone()
					s.moves = happened
					if what.on(s) != nil {
						continue // no pod may report
					}
					n++
					if s.settle(); s.broken != "" {
						t.Fatalf("%q at line %d of\n%s: %s", what, m.line, text, s.broken)
					}
				}
			}
		}
	}
	t.Logf("%d interruptions", n)
	for row := range legal() {
		if !happened[row] {
			t.Errorf("nothing makes the transition %q of testdata/transitions.tsv: remove the row", row)
		}
	}
}
