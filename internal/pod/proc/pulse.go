// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Pulse has signs of activity in a container.
type Pulse struct {
	// CPU is the CPU time of all processes since the container began, including ended ones.
	CPU time.Duration
	// Processes that there are.
	Processes int
	// Written is how many bytes they have written in all: to files, to pipes and to connections. It falls when one ends.
	Written int64
	// Running are the processes, the youngest first, at most maxRunning of them.
	Running []Running
}

// Running is a process as in proc_pid_stat(5).
type Running struct {
	PID int
	// Name that the process has given itself: at most 15 bytes, of any kind.
	Name string
	// Age since it was started.
	Age time.Duration
}

// maxRunning bounds the list of processes: an agent may have thousands.
const maxRunning = 32

// tick is the unit of times in proc_pid_stat(5): the kernel shows 100 a second on every architecture.
const tick = time.Second / 100

// Pulse takes the pulse of the container.
func (c *Container) Pulse() (Pulse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids, err := numbers(procRoot)
	if err != nil {
		return Pulse{}, fmt.Errorf("list processes: %w", err)
	}
	var boot unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil {
		return Pulse{}, fmt.Errorf("read the time since boot: %w", err)
	}
	var p Pulse
	for _, pid := range pids {
		text, err := c.scan.read(procRoot + "/" + strconv.Itoa(pid) + "/stat")
		switch {
		case gone(err):
			continue
		case err != nil:
			return Pulse{}, fmt.Errorf("look at process %d: %w", pid, err)
		}
		own, ended, ok := cpuTime(text)
		if !ok {
			return Pulse{}, fmt.Errorf("look at process %d: its stat is not what proc_pid_stat(5) says", pid)
		}
		p.CPU += ended
		if pid != c.scan.self { // which looks at the others
			p.CPU += own
			p.Processes++
			if name, started, lives := startedAt(text); lives {
				p.Running = append(p.Running, Running{PID: pid, Name: name, Age: max(time.Duration(boot.Nano())-started, 0)})
			}
			p.Written += c.written(pid) // which reads into the same buffer
		}
	}
	slices.SortStableFunc(p.Running, func(a, b Running) int { return cmp.Compare(a.Age, b.Age) })
	p.Running = slices.Clip(p.Running[:min(len(p.Running), maxRunning)])
	return p, nil
}

// startedAt reads a process's name and when it was started, since boot; lives is false where it has ended and nobody has asked for its code.
func startedAt(stat []byte) (name string, since time.Duration, lives bool) {
	_, rest, ok := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(") "))
	fields := bytes.Fields(rest)
	const state, starttime = 0, 22 - 3
	if !ok || len(fields) <= starttime || fields[state][0] == 'Z' {
		return "", 0, false
	}
	ticks, err := strconv.ParseInt(string(fields[starttime]), 10, 64)
	if err != nil || ticks < 0 {
		return "", 0, false
	}
	_, named, _ := bytes.Cut(stat, []byte(" ("))
	return string(named[:bytes.LastIndexByte(named, ')')]), time.Duration(ticks) * tick, true
}

// written is how many bytes a process has written; 0 where it does not let itself be looked at (PR_SET_DUMPABLE).
func (c *Container) written(pid int) int64 {
	text, err := c.scan.read(procRoot + "/" + strconv.Itoa(pid) + "/io")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if number, is := bytes.CutPrefix(line, []byte("wchar: ")); is {
			n, _ := strconv.ParseInt(string(bytes.TrimSpace(number)), 10, 64) // proc_pid_io(5) has no other form
			return n
		}
	}
	return 0
}

// cpuTime reads what a process and its ended children have used.
func cpuTime(stat []byte) (own, ended time.Duration, ok bool) {
	// The second field is a name that may have anything in it.
	_, rest, ok := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(") "))
	fields := bytes.Fields(rest)
	const utime, cstime = 14 - 3, 17 - 3
	if !ok || len(fields) <= cstime {
		return 0, 0, false
	}
	var n [4]time.Duration
	for i := range n {
		ticks, err := strconv.ParseInt(string(fields[utime+i]), 10, 64)
		if err != nil || ticks < 0 {
			return 0, 0, false
		}
		n[i] = time.Duration(ticks) * tick
	}
	return n[0] + n[1], n[2] + n[3], true
}
