// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"strconv"
	"strings"
)

// inFork is true when every thread of a process that sleeps uninterruptibly waits for its vfork child. Such a thread cannot
// be stopped before the child ends or executes something, and the child is stopped; it writes to no file meanwhile.
func (s *scanner) inFork(p process, all snapshot) bool {
	asleep := p.count(task.uninterruptible)
	if asleep == 0 {
		return false
	}
	for _, t := range p.tasks {
		if !t.uninterruptible() {
			continue
		}
		switch s.sleepsIn(p.pid, t.id) {
		// The names of fork's own function through the years, into which the wait for the child is compiled.
		case "kernel_clone", "_do_fork", "do_fork", "wait_for_vfork_done":
		case "":
			if asleep > 1 || !s.sharesMemory(p.pid, all.children(p.pid)) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// sleepsIn asks the kernel in which of its functions a task sleeps; "" where it does not tell, as for a process that is
// not dumpable.
func (s *scanner) sleepsIn(pid, id int) string {
	where, err := s.read(procRoot + "/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(id) + "/wchan")
	if err != nil || string(where) == "0" {
		return ""
	}
	return string(where)
}

// sharesMemory stands in where the kernel does not tell: a child of vfork has the memory of its parent, to the page.
func (s *scanner) sharesMemory(pid int, children []int) bool {
	own := s.memory(pid)
	if own == "" {
		return false
	}
	for _, child := range children {
		if s.memory(child) == own {
			return true
		}
	}
	return false
}

// memory is a process's memory in numbers, "" if it has none left.
func (s *scanner) memory(pid int) string {
	text, err := s.read(procRoot + "/" + strconv.Itoa(pid) + "/statm")
	if err != nil || strings.HasPrefix(string(text), "0 ") {
		return ""
	}
	return string(text)
}
