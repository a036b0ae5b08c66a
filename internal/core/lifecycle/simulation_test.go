// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"testing"
)

// clone is a world of its own that is as this one.
func (s *sim) clone() *sim {
	c := *s
	c.spec.Requests = slices.Clone(s.spec.Requests)
	c.memory = s.memory.clone()
	c.jobs, c.pods = slices.Clone(s.jobs), slices.Clone(s.pods)
	c.made = maps.Clone(s.made)
	c.told = slices.Clone(s.told)
	c.leases = s.leases.clone()
	return &c
}

// like reports whether two worlds are the same, but for the events that were sent.
func (s *sim) like(other *sim) bool {
	// Most differences are seen here already, which costs less.
	if s.version != other.version || s.serial != other.serial || len(s.jobs) != len(other.jobs) || len(s.pods) != len(other.pods) || !s.now.Equal(other.now) {
		return false
	}
	a, b := *s, *other
	a.told, b.told = nil, nil
	return reflect.DeepEqual(a, b)
}

// worlds that are all different.
type worlds []*sim

// add reports whether no world is like this one yet.
func (w *worlds) add(s *sim) bool {
	if slices.ContainsFunc(*w, s.like) {
		return false
	}
	*w = append(*w, s.clone())
	return true
}

// kind of object that a cache shows as it was at another time than the rest.
type kind struct {
	name string
	// lag makes a snapshot show objects of this kind as an older one does.
	lag func(now *snapshot, then snapshot)
	// others says that what the Feature does depends on objects that others write: acting on an older one is acting on what they
	// wanted then, so that the Feature may go another way.
	others bool
}

// kinds of objects that the real controller reads from its cache. A Checkpoint reaches it through the status of the Feature.
func kinds() []kind {
	return []kind{
		{name: "Feature", lag: func(now *snapshot, then snapshot) {
			o, t := &now.observed, then.observed
			o.Spec, o.Memory, o.Run, now.version = t.Spec, t.Memory, t.Run, then.version
		}},
		{name: "Job", lag: func(now *snapshot, then snapshot) { now.observed.Jobs = then.observed.Jobs }},
		{name: "Pod", lag: func(now *snapshot, then snapshot) { now.observed.Pods = then.observed.Pods }},
		{name: "PersistentVolumeClaim", lag: func(now *snapshot, then snapshot) { now.observed.Volumes = then.observed.Volumes }},
		{name: "Lease", lag: func(now *snapshot, then snapshot) { now.observed.Locks, now.held = then.observed.Locks, then.held }},
		{name: "NetworkPolicy", lag: func(now *snapshot, then snapshot) { now.observed.Isolation = then.observed.Isolation }},
		{name: "Features of others", lag: func(now *snapshot, then snapshot) { now.observed.Capacity = then.observed.Capacity }},
		{name: "SupervisorPolicy", others: true, lag: func(now *snapshot, then snapshot) {
			o, t := &now.observed, then.observed
			o.Refusal, o.Obstacle, o.Policy, o.Backends = t.Refusal, t.Obstacle, t.Policy, t.Backends
		}},
		{name: "everything", others: true, lag: func(now *snapshot, then snapshot) { *now = then }},
	}
}

// moment is just before a reconcile of a transcript.
type moment struct {
	// line of the transcript that has happened, and round of the reconciles that follow it.
	line, round int
	world       *sim
	// past of the cache: each snapshot until now that shows something else than the one before it.
	past []snapshot
}

// life is a transcript as it goes when nothing is in the way.
type life struct {
	lines   []occurrence
	moments []moment
	// ends are the worlds after each line.
	ends []*sim
	// visited are the worlds that go on to the end of the transcript: what follows from a world is the same each time, so that the tests
	// let each go on once.
	visited map[stage]*worlds
}

// stage of the way to the end of a transcript: while a line settles, or when it has. Worlds that may go another way are held to less.
type stage struct {
	line               int
	settled, mayDiffer bool
}

// firstVisit reports whether no world has gone on from this one at this stage.
func (l life) firstVisit(at stage, s *sim) bool {
	if l.visited[at] == nil {
		l.visited[at] = &worlds{}
	}
	return l.visited[at].add(s)
}

func undisturbed(t *testing.T, text string) life {
	t.Helper()
	l := life{lines: occurrences(text), visited: map[stage]*worlds{}}
	s := newSim()
	var past []snapshot
	see := func() {
		if now := s.look(false); len(past) == 0 || !reflect.DeepEqual(now, past[len(past)-1]) {
			past = append(past, now)
		}
	}
	see()
	for i, line := range l.lines {
		if err := line.on(s); err != nil {
			t.Fatal(err)
		}
		for round := 0; ; round++ {
			if round == maxRounds {
				t.Fatalf("%q: does not settle: %s", line, s.line())
			}
			see()
			l.moments = append(l.moments, moment{i, round, s.clone(), slices.Clone(past)})
			wrote := s.reconcile(s.look(false), fate{})
			see()
			if !s.round(wrote) {
				break
			}
		}
		l.ends = append(l.ends, s.clone())
	}
	if s.broken != "" {
		t.Fatal(s.broken)
	}
	return l
}

// standing is the state without what a Feature that started found about the areas of others: the process that looked at them may have died
// before it wrote that, and they are not looked at again.
func (s *sim) standing() string {
	return overlaps.ReplaceAllString(s.state(), "")
}

var overlaps = regexp.MustCompile(`(?m)\n=>   AreasDisjoint AreasOverlap: .*$`)

// goOn lets a world that was disturbed at a moment go on to the end of the transcript with nothing in the way any more. It says what is
// wrong; nothing where no invariant is broken and, unless it may go another way, it stands after each line where the
// undisturbed one does.
func (l life) goOn(m moment, s *sim, mayDiffer bool) string {
	if !l.firstVisit(stage{line: m.line, mayDiffer: mayDiffer}, s) {
		return ""
	}
	for i := m.line; i < len(l.lines); i++ {
		if i > m.line {
			if l.lines[i].on(s) != nil {
				return "" // no pod may report on this other way
			}
		}
		s.settle()
		if s.broken != "" {
			return fmt.Sprintf("%s (at %q)", s.broken, l.lines[i])
		}
		if s.like(l.ends[i]) {
			return ""
		}
		if got, want := s.standing(), l.ends[i].standing(); got != want && !mayDiffer {
			return fmt.Sprintf("after %q it stands at\n%s\ninstead of\n%s", l.lines[i], got, want)
		}
		if !l.firstVisit(stage{i, true, mayDiffer}, s) {
			return ""
		}
	}
	return ""
}

// forEachLife calls back with each transcript, for several at once, and then prints how many cases there were.
func forEachLife(t *testing.T, try func(t *testing.T, l life) int) {
	texts := transcripts(t)
	var mu sync.Mutex
	total := 0
	t.Run("of", func(t *testing.T) {
		for name, text := range texts {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				n := try(t, undisturbed(t, text))
				mu.Lock()
				defer mu.Unlock()
				total += n
			})
		}
	})
	t.Logf("%d transcripts, %d cases", len(texts), total)
}

// names of the calls of a reconcile.
func (s *sim) names(cached snapshot) []string {
	var names []string
	wrote := false
	for c := range s.clone().calls(cached, &wrote) {
		names = append(names, c.name)
	}
	return names
}

// TestEveryCrash lets the controller die before each call of each reconcile of each transcript, and go on with an error after a call that was done
// and not acknowledged. To die after a call is to die before the next one; after the last it is not to send events. The
// successor gets to where the undisturbed Feature stands.
func TestEveryCrash(t *testing.T) {
	forEachLife(t, func(t *testing.T, l life) int {
		n := 0
		for _, m := range l.moments {
			for at, name := range m.world.names(m.world.look(false)) {
				for _, f := range []fate{{at: at + 1}, {at: at + 1, lost: true}} {
					n++
					s := m.world.clone()
					s.round(s.reconcile(s.look(false), f))
					if wrong := l.goOn(m, s, false); wrong != "" {
						t.Fatalf("%q, reconcile %d, %q (%+v): %s", l.lines[m.line], m.round, name, f, wrong)
					}
				}
			}
		}
		return n
	})
}

// TestEveryLag lets each reconcile of each transcript see each kind of object as it was at each earlier moment.
func TestEveryLag(t *testing.T) {
	forEachLife(t, func(t *testing.T, l life) int {
		n := 0
		for _, m := range l.moments {
			for _, k := range kinds() {
				for cached := range m.older(k) {
					n++
					s := m.world.clone()
					s.round(s.reconcile(cached, fate{}))
					if wrong := l.goOn(m, s, k.others); wrong != "" {
						t.Fatalf("%q, reconcile %d, an older %s: %s", l.lines[m.line], m.round, k.name, wrong)
					}
				}
			}
		}
		return n
	})
}

// older are the different views of a cache that lags for one kind.
func (m moment) older(k kind) iter.Seq[snapshot] {
	part := func(of snapshot) (p snapshot) {
		k.lag(&p, of)
		return p
	}
	return func(yield func(snapshot) bool) {
		tried := []snapshot{part(m.world.look(false))}
		for _, then := range slices.Backward(m.past) {
			older := part(then)
			if slices.ContainsFunc(tried, func(s snapshot) bool { return reflect.DeepEqual(s, older) }) {
				continue
			}
			tried = append(tried, older)
			cached := m.world.look(false)
			k.lag(&cached, then)
			if !yield(cached) {
				return
			}
		}
	}
}
