// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// stopped is true for states in which a task runs nothing: stopped, traced, zombie, dead.
func (t task) stopped() bool {
	switch t.state {
	case 'T', 't', 'Z', 'X', 'x':
		return true
	}
	return false
}

func (t task) dead() bool { return t.state == 'Z' || t.state == 'X' || t.state == 'x' }

func (t task) uninterruptible() bool { return t.state == 'D' }

func (p process) count(is func(task) bool) int {
	n := 0
	for _, t := range p.tasks {
		if is(t) {
			n++
		}
	}
	return n
}

// dead is true when nothing of the process can ever run again.
func (p process) dead() bool { return p.count(task.dead) == len(p.tasks) }

// freezeState is how far a process is from being still.
type freezeState int

const (
	// still: no thread can run user code or change a file.
	still freezeState = iota
	// inKernel: no thread can run user code, but one is inside a system call that may still write.
	inKernel
	// moving: a thread can run user code.
	moving
)

// freezeState checks a process. A thread in uninterruptible sleep runs no user code again once a stop waits for it: either the
// signal itself is pending, or a sibling has taken it and is stopped, which binds the whole process.
func (p process) freezeState() freezeState {
	groupStop := p.stopping()
	result := still
	for _, t := range p.tasks {
		switch {
		case t.stopped():
		case !t.uninterruptible() || !groupStop:
			return moving
		case !p.inFork:
			result = inKernel
		}
	}
	return result
}

// stopping is true when the process is stopped or a stop waits for it.
func (p process) stopping() bool {
	return p.count(func(t task) bool { return t.state == 'T' || t.state == 't' || t.stopPending }) > 0
}

// escaped is true when the process runs without a stop that waits for it.
func (p process) escaped() bool { return p.freezeState() == moving && !p.stopping() }

// escaped is true when one of the processes has.
func (s snapshot) escaped() bool { return slices.ContainsFunc(s, process.escaped) }

// worst is the freezeState of the whole snapshot.
func (s snapshot) worst() freezeState {
	result := still
	for _, p := range s {
		result = max(result, p.freezeState())
	}
	return result
}

// alive counts the processes that are more than zombies.
func (s snapshot) alive() int {
	n := 0
	for _, p := range s {
		if !p.dead() {
			n++
		}
	}
	return n
}

// children lists the pids of a process's children.
func (s snapshot) children(pid int) []int {
	var found []int
	for _, p := range s {
		if p.parent == pid {
			found = append(found, p.pid)
		}
	}
	return found
}

func (s snapshot) find(pid int) (process, bool) {
	i, ok := slices.BinarySearchFunc(s, pid, func(p process, pid int) int { return cmp.Compare(p.pid, pid) })
	if !ok {
		return process{}, false
	}
	return s[i], true
}

// disturbed counts the processes of this snapshot that have run since an earlier one: processes that were not there, and processes with a
// thread that was not there or left a CPU since. Two snapshots of only still processes with none disturbed prove that there was an instant
// at which all of them stood still: a single snapshot could miss two processes that wake each other in turn, out of the scan's sight.
func (s snapshot) disturbed(since snapshot) int {
	n := 0
	for _, p := range s {
		if before, ok := since.find(p.pid); !p.dead() && (!ok || p.ranSince(before)) {
			n++
		}
	}
	return n
}

func (p process) ranSince(before process) bool {
	for _, t := range p.tasks {
		i := slices.IndexFunc(before.tasks, func(b task) bool { return b.id == t.id })
		if !t.dead() && (i < 0 || before.tasks[i].switches != t.switches) {
			return true
		}
	}
	return false
}

// maxNamed bounds how many processes a message lists.
const maxNamed = 5

// moving describes the first thread that can run user code: its state, as proc_pid_status(5) has it, and whether a stop waits
// for it.
func (p process) moving() string {
	for _, t := range p.tasks {
		if t.stopped() || t.uninterruptible() && p.stopping() {
			continue
		}
		if t.stopPending {
			return fmt.Sprintf("state %c, a stop is pending", t.state)
		}
		return fmt.Sprintf("state %c, no stop is pending", t.state)
	}
	return "no thread was seen"
}

// unsettled says what does not stand still, for people.
func (s snapshot) unsettled() string {
	var named []string
	rest := 0
	for _, p := range s {
		at := p.freezeState()
		switch {
		case at == still:
		case len(named) == maxNamed:
			rest++
		case at == inKernel:
			named = append(named, fmt.Sprintf("process %d is inside a system call", p.pid))
		default:
			named = append(named, fmt.Sprintf("process %d still runs (%s)", p.pid, p.moving()))
		}
	}
	if rest > 0 {
		named = append(named, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(named, ", ")
}
