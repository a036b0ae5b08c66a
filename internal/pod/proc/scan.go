// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// procRoot is where the kernel shows the processes of this pid namespace.
const procRoot = "/proc"

// task is one thread, as its status file tells.
type task struct {
	id int
	// state is the letter of proc_pid_status(5).
	state byte
	// stopPending is true when a SIGSTOP waits for the task.
	stopPending bool
	// switches counts how often the task left a CPU: a task that was stopped twice with the same count did not run between.
	switches uint64
}

// process is one process with all of its threads.
type process struct {
	pid, parent int
	tasks       []task
	// inFork is true when every thread that sleeps uninterruptibly waits for the child that it made by vfork.
	inFork bool
}

// snapshot is every process of the pid namespace but this one, by rising pid.
type snapshot []process

// scanner reads snapshots. Only its owner's goroutine may use it.
type scanner struct {
	self int
	buf  []byte
}

func newScanner() *scanner {
	return &scanner{self: os.Getpid(), buf: make([]byte, 8<<10)}
}

// scan looks at every process once. Those that end meanwhile are left out.
func (s *scanner) scan() (snapshot, error) {
	pids, err := numbers(procRoot)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	found := make(snapshot, 0, len(pids))
	for _, pid := range pids {
		if pid == s.self {
			continue
		}
		p, err := s.process(pid)
		switch {
		case gone(err):
		case err != nil:
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		default:
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b process) int { return a.pid - b.pid })
	for i := range found {
		found[i].inFork = s.inFork(found[i], found)
	}
	return found, nil
}

func (s *scanner) process(pid int) (process, error) {
	dir := procRoot + "/" + strconv.Itoa(pid)
	leader, err := s.status(dir)
	if err != nil {
		return process{}, err
	}
	p := process{pid: pid, parent: leader.parent, tasks: []task{leader.task}}
	if leader.threads <= 1 {
		return p, nil
	}
	ids, err := numbers(dir + "/task")
	if err != nil {
		return process{}, err
	}
	p.tasks = p.tasks[:0]
	for _, id := range ids {
		thread, err := s.status(dir + "/task/" + strconv.Itoa(id))
		switch {
		case gone(err):
		case err != nil:
			return process{}, err
		default:
			p.tasks = append(p.tasks, thread.task)
		}
	}
	slices.SortFunc(p.tasks, func(a, b task) int { return a.id - b.id })
	return p, nil
}

func (s *scanner) status(dir string) (status, error) {
	text, err := s.read(dir + "/status")
	if err != nil {
		return status{}, err
	}
	return parseStatus(text)
}

// read returns the contents of a small file, valid until the next read. It spares the cost of os.ReadFile, which counts
// here: the agent is frozen while its processes are looked at.
func (s *scanner) read(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for n := 0; ; {
		got, err := unix.Read(fd, s.buf[n:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case got == 0:
			return s.buf[:n], nil
		default:
			if n += got; n == len(s.buf) {
				s.buf = append(s.buf, make([]byte, len(s.buf))...)
			}
		}
	}
}

// numbers lists the entries of a directory that are numbers.
func numbers(dir string) ([]int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	found := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			found = append(found, n)
		}
	}
	return found, nil
}

// gone is true for the errors of a process that ended while it was looked at.
func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
}
