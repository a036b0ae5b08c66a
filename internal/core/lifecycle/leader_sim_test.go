// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/locks"
)

// call is one call of a controller to the API server.
type call struct {
	// name says what it does.
	name string
	// writes is true for one that may change something.
	writes bool
	// lost says that the call is done and the controller hears an error instead of an answer. Who resumes the reconcile
	// sets it.
	lost bool
}

// fate says at which of its calls, from 1, a controller dies; 0 is never. Where the call is lost it is done, and the
// controller goes on with an error.
type fate struct {
	at   int
	lost bool
}

// leader is a reconcile under way. It does what the real one does in the same order: see Reconciler.Reconcile.
type leader struct {
	*sim
	seen  snapshot
	d     Decision
	yield func(*call) bool
	wrote *bool
	// dead is set when the process is not there any more, unmet when a need could not be met, failed when a step has ended with an
	// error, and gone when the Feature may not be there any more.
	dead, unmet, failed, gone bool
}

// calls is a reconcile that stops before each of its calls. Whoever ranges over it may let others act before it goes on,
// and lets the process die by not going on. wrote is set when something was written.
func (s *sim) calls(cached snapshot, wrote *bool) iter.Seq[*call] {
	return func(yield func(*call) bool) {
		if s.released {
			return
		}
		l := &leader{sim: s, seen: cached, yield: yield, wrote: wrote}
		l.settle()
		l.act()
		l.write()
	}
}

// read makes a call that changes nothing.
func (l *leader) read(name string, do func()) bool { return l.make(&call{name: name}, do) }

// make makes a call, and reports whether it is answered.
func (l *leader) make(c *call, do func()) bool {
	if l.dead {
		return false
	}
	if l.dead = !l.yield(c); l.dead {
		return false
	}
	do()
	return !c.lost
}

// change makes a call that writes. The server refuses it where do says so.
func (l *leader) change(name string, do func() bool) bool {
	done := false
	acknowledged := l.make(&call{name: name, writes: true}, func() {
		done = do()
		*l.wrote = *l.wrote || done
	})
	return acknowledged && done
}

// settle decides until nothing is needed any more, or a need cannot be met.
func (l *leader) settle() {
	asked := map[Need]bool{}
	for {
		l.d = Next(l.seen.observed, l.now)
		d, alone := l.d, l.d
		alone.Needs = ""
		switch {
		case d.Needs.Outdates() && acts(alone):
			l.fail("a decision that needs %s acts: %+v", d.Needs, d)
		case !d.Needs.Outdates() && acts(d) && !l.seen.observed.Live:
			l.fail("acts on a cache: %+v", d)
		case asked[d.Needs]:
			l.fail("%s is asked for again: %+v", d.Needs, d)
			l.unmet = true
			return
		case d.Needs == "":
			return
		}
		asked[d.Needs] = true
		if l.unmet = !l.gather(d); l.unmet {
			return
		}
	}
}

// gather gets what a decision needs.
func (l *leader) gather(d Decision) bool {
	switch o := &l.seen.observed; d.Needs {
	case NeedLive:
		return l.readLive()
	case NeedAdmission:
		return l.read("look at other Features", func() {
			areas := l.areas
			o.Areas, o.Capacity = &areas, l.capacity
		})
	case NeedLocks:
		return l.takeLocks()
	default:
		return l.change("create the Job", func() bool { return l.createJob(*d.Start) }) && o.JobMade
	}
}

// readLive reads Jobs and pods before the Feature, and the Leases after it. Policy and backends are read from the cache alone.
func (l *leader) readLive() bool {
	var live snapshot
	o := l.seen.observed
	ok := l.read("read Jobs", func() { o.Jobs = l.look(true).observed.Jobs }) &&
		l.read("read pods", func() {
			now := l.look(true).observed
			o.Pods, o.Volumes, o.Isolation = now.Pods, now.Volumes, now.Isolation
		})
	stray := func(p Pod) bool {
		return !slices.ContainsFunc(o.Jobs, func(j Job) bool { return j.UID == p.JobUID })
	}
	if ok && slices.ContainsFunc(o.Pods, stray) {
		ok = l.read("read Jobs again", func() { o.Jobs = l.look(true).observed.Jobs })
	}
	ok = ok &&
		l.read("read the Feature", func() { live = l.look(true) })
	if !ok || live.observed.Memory.Attempt != o.Memory.Attempt || live.observed.Memory.podUID() != o.Memory.podUID() || live.observed.Spec.Generation != o.Spec.Generation {
		return false
	}
	o.Live, o.Spec, o.Memory, o.Run = true, live.observed.Spec, live.observed.Memory, live.observed.Run
	l.seen.version = live.version
	ok = l.read("read Leases", func() { o.Locks, l.seen.held = l.lookAtLocks(), l.heldVersions() })
	if ok {
		l.seen.observed = o
	}
	return ok
}

// podUID of the pod that speaks for the attempt; empty while none does.
func (m Memory) podUID() string {
	if m.Job == nil {
		return ""
	}
	return m.Job.PodUID
}

// takeLocks takes all wanted locks or none. Each write is bound to the Lease that was seen.
func (l *leader) takeLocks() bool {
	var take []locks.Wanted
	versions := map[string]int{}
	ok := l.read("look at Leases", func() {
		take, _ = locks.Choose(l.survey())
		for _, w := range take {
			versions[w.Contract] = l.leases.version(w.Contract)
		}
	})
	for _, w := range take {
		ok = ok && l.change("take the lock of "+w.Contract, func() bool {
			free := l.leases.version(w.Contract) == versions[w.Contract]
			if free {
				l.leases.write(w.Contract, l.holder(), l.now)
			}
			return free
		})
	}
	return ok && l.read("look at Leases again", func() {
		l.seen.observed.Locks, l.seen.held = l.lookAtLocks(), l.heldVersions()
		l.seen.observed.Locks.Taken = true
	})
}

// createJob makes a Job, unless there is one of its name, which will do unless it is being deleted. It reports whether the
// call did not fail; where JobMade is not set then, the attempt waits.
func (l *leader) createJob(start Start) bool {
	name := fmt.Sprintf("login-%d", start.Attempt)
	o := &l.seen.observed
	if i := slices.IndexFunc(l.jobs, func(j Job) bool { return j.Name == name }); i < 0 {
		o.Jobs = append(slices.Clone(o.Jobs), l.makeJob(start))
	} else if l.jobs[i].Deleting {
		return false
	} else {
		o.Jobs = append(slices.Clone(o.Jobs), l.jobs[i])
	}
	o.JobMade = true
	return true
}

// act does what was decided, up to the first error.
func (l *leader) act() {
	for _, o := range l.d.DeleteJobs {
		l.then("delete Job "+o.Name, func() bool { return l.deleteJob(o.UID) })
	}
	for _, o := range l.d.DeletePods {
		l.then("delete pod "+o.Name, func() bool { return l.deletePod(o.UID) })
	}
	if l.d.RenewLocks {
		for _, contract := range slices.Sorted(maps.Keys(l.seen.held)) {
			l.then("renew the lock of "+contract, func() bool {
				return l.ifHeld(contract, func() { l.leases.write(contract, l.holder(), l.now) })
			})
		}
	}
	for _, contract := range l.d.Unlock {
		if !l.unmet {
			l.then("free the lock of "+contract, func() bool { return l.ifHeld(contract, func() { l.freeLock(contract) }) })
		}
	}
	switch {
	case l.d.Release:
		l.gone = true
		l.then("remove the finalizer", func() bool { return l.ifCurrent(l.release) })
	case l.d.DeleteFeature:
		l.gone = true
		l.then("delete the Feature", func() bool { return l.ifCurrent(func() { l.spec.DeletedAt = l.now }) })
	}
}

// then makes a call unless one before it failed.
func (l *leader) then(name string, do func() bool) {
	l.failed = l.failed || !l.change(name, do)
}

// ifHeld writes a Lease that is as it was seen.
func (l *leader) ifHeld(contract string, do func()) bool {
	is := l.leases.version(contract) == l.seen.held[contract]
	if is {
		do()
	}
	return is
}

// ifCurrent writes a Feature that is as it was seen.
func (l *leader) ifCurrent(do func()) bool {
	is := l.seen.version == l.resourceVersion()
	if is {
		do()
	}
	return is
}

// deleteJob and deletePod ask for the end of an object; one that is gone, or is another of the same name, is no error.
func (s *sim) deleteJob(uid string) bool {
	for i := range s.jobs {
		s.jobs[i].Deleting = s.jobs[i].Deleting || s.jobs[i].UID == uid
	}
	return true
}

func (s *sim) deletePod(uid string) bool {
	for i := range s.pods {
		s.pods[i].Deleting = s.pods[i].Deleting || s.pods[i].UID == uid
	}
	return true
}

// release lets the Feature go.
func (s *sim) release() {
	if held := s.lookAtLocks().Held; len(held) > 0 {
		s.fail("the Feature is let go with locks: %v", held)
	}
	if s.working() > 0 {
		s.fail("the Feature is let go while pods work: %+v", s.pods)
	}
	s.released = true
}

// write writes the status if it changed, once, and sends the events after that.
func (l *leader) write() {
	if l.gone || l.d.Needs.Outdates() || l.d.Memory.same(l.seen.observed.Memory) {
		return
	}
	if l.change("write the status", func() bool { return l.ifCurrent(func() { l.note(l.d.Memory) }) }) {
		l.told = append(l.told, l.d.Events...)
	}
}

// note is a write of the status.
func (s *sim) note(m Memory) {
	s.checkMemory(m)
	s.memory = m
	s.version++
}
