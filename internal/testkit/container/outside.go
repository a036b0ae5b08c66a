// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// View looks at the processes of a container from outside: it asks the kernel, not the code under test.
type View struct {
	first     int
	namespace *os.File // held open: another namespace takes the place of one that nobody holds
}

// Outside is a view of the container whose first process has this pid outside. The first process itself is left out.
func Outside(t testing.TB, first int) View {
	t.Helper()
	namespace, err := os.Open(namespaceOf(strconv.Itoa(first)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespace.Close() })
	return View{first: first, namespace: namespace}
}

func namespaceOf(pid string) string { return filepath.Join("/proc", pid, "ns", "pid") }

// Moving names the processes of the container with a thread that is neither stopped nor dead, by their state in proc_pid_stat(5). A parent that waits in the
// kernel for its vfork child cannot be stopped before the child continues: it counts as stopped when a stop waits for it.
func (v View) Moving(t testing.TB) []string {
	t.Helper()
	ours, err1 := v.namespace.Stat()
	entries, err2 := os.ReadDir("/proc")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	var moving []string
	for _, entry := range entries {
		pid := entry.Name()
		if n, err := strconv.Atoi(pid); err != nil || n == v.first {
			continue
		}
		if theirs, err := os.Stat(namespaceOf(pid)); err != nil || !os.SameFile(ours, theirs) {
			continue // it ended, or is another container's
		}
		tasks, err := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "stat"))
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			stat, err := os.ReadFile(task)
			if err != nil {
				continue // it ended
			}
			state := stat[bytes.LastIndexByte(stat, ')')+2]
			if state == 'D' && stopPending(filepath.Join(filepath.Dir(task), "status")) {
				continue
			}
			if !slices.Contains([]byte("TtZXx"), state) {
				moving = append(moving, fmt.Sprintf("process %s is in state %c", pid, state))
				break
			}
		}
	}
	return moving
}

// stopPending says whether a SIGSTOP waits for a thread or its process, by proc_pid_status(5).
func stopPending(status string) bool {
	const stop = uint64(1) << (uint(syscall.SIGSTOP) - 1)
	text, _ := os.ReadFile(status) // of one that ended there is none
	for line := range strings.Lines(string(text)) {
		name, mask, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "SigPnd" && name != "ShdPnd" {
			continue
		}
		if bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64); err == nil && bits&stop != 0 {
			return true
		}
	}
	return false
}
