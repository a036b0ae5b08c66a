// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"iter"
	"path"
	"slices"
	"strings"
	"testing"
)

// contested are transcripts with every kind of call of a controller.
var contested = []string{"happy", "lost_pod", "suspend", "agent_failure", "errand", "lock_reclaimed", "lock_freed", "delete_in_order", "ttl"}

// TestTwoLeaders lets a leader that lost its lease go on beside its successor: at each moment of the contested transcripts, two reconciles, of
// which the old one sees the cache as it was at this moment or at the one before, take their calls in every order, and Job
// controller and kubelet act after each call or at the end.
func TestTwoLeaders(t *testing.T) {
	forEachLife(t, func(t *testing.T, l life) int {
		n := 0
		if !slices.Contains(contested, path.Base(t.Name())) {
			return 0
		}
		for _, m := range l.moments {
			for _, old := range m.past[max(len(m.past)-2, 0):] {
				for _, quick := range []bool{false, true} {
					everyOrder(func(choose func() bool) {
						s := m.world.clone()
						order := s.interleave(old, choose, quick)
						if order == "" {
							return
						}
						n++
						s.round(true)
						if wrong := l.goOn(m, s, false); wrong != "" {
							t.Fatalf("%q, reconcile %d, %s: %s", l.lines[m.line], m.round, order, wrong)
						}
					})
				}
			}
		}
		return n
	})
}

// everyOrder calls back for each sequence of answers to choose, as long as that asks.
func everyOrder(try func(choose func() bool)) {
	var path []bool
	for {
		at := 0
		try(func() bool {
			if at == len(path) {
				path = append(path, false)
			}
			at++
			return path[at-1]
		})
		for len(path) > 0 && path[len(path)-1] {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return
		}
		path[len(path)-1] = true
	}
}

// maxSwitches between two leaders are tried, each at any call: the old one is stopped, the new one works, the old one goes on, and
// the new one after it.
const maxSwitches = 3

// turn is a reconcile that takes its turns with another.
type turn struct {
	name string
	next func() (*call, bool)
	// call that it makes when it is resumed; nil when it is done.
	call *call
}

// interleave lets an old leader and a new one reconcile at the same time, and returns the calls in their order. Two reads that follow each other
// tell the same in either order: only the one with the old leader first is tried.
func (s *sim) interleave(old snapshot, choose func() bool, quick bool) string {
	wrote := false
	var order []string
	a, b := &turn{name: "old"}, &turn{name: "new"}
	for t, seen := range map[*turn]snapshot{a: old, b: s.look(false)} {
		next, stop := iter.Pull(s.calls(seen, &wrote))
		defer stop()
		t.next = next
		t.call, _ = next() // it makes no call before this one
	}
	resume := func(t *turn) (read bool) {
		was := *t.call
		order = append(order, t.name+": "+was.name)
		t.call, _ = t.next()
		if quick && was.writes {
			s.round(true)
		}
		return !was.writes
	}
	newRead, switches, now := false, 0, a
	for a.call != nil || b.call != nil {
		other := map[*turn]*turn{a: b, b: a}[now]
		if now.call == nil || other.call != nil && switches < maxSwitches && choose() {
			now = other
			switches++
		}
		if now == a && newRead && !a.call.writes {
			return "" // tried with the reads the other way round
		}
		read := resume(now)
		newRead = read && now == b
	}
	return strings.Join(order, ", ")
}
