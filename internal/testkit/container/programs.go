// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// programEnv selects the program that the test binary is started as.
const programEnv = "TIDEWAITER_TEST_PROGRAM"

// Main runs the program that the environment names, if any, and does not return then. TestMain calls it first.
func Main() {
	program := os.Getenv(programEnv)
	if program == "" {
		return
	}
	if err := runProgram(program); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Herd is the environment of a program that makes n processes of one thread each, every one of which counts: as fast as it can, or, in a crowd, a thousand
// times a second at most, because a hundred that never wait leave nothing of the machine to other tests.
func Herd(path string, n int) []string {
	return []string{programEnv + "=herd", countersEnv + "=" + path, countEnv + "=" + strconv.Itoa(n)}
}

// Storm is the environment of a program with n chains of processes: each counts a little, forks and ends, and the child continues. Stopping
// one process after the other never catches it.
func Storm(path string, n int) []string {
	return []string{programEnv + "=storm", countersEnv + "=" + path, countEnv + "=" + strconv.Itoa(n)}
}

// Vfork is the environment of a program with many threads of which one waits for its vfork child, which counts. With hidden
// the program is not dumpable, so that the kernel tells nothing of where it sleeps.
func Vfork(path string, hidden bool) []string {
	return []string{programEnv + "=vfork", countersEnv + "=" + path, countEnv + "=1", hiddenEnv + "=" + strconv.FormatBool(hidden)}
}

// Threads is the environment of a program that counts in n threads.
func Threads(path string, n int) []string {
	return []string{programEnv + "=threads", countersEnv + "=" + path, countEnv + "=" + strconv.Itoa(n)}
}

const (
	countersEnv = "TIDEWAITER_TEST_COUNTERS"
	countEnv    = "TIDEWAITER_TEST_COUNT"
	hiddenEnv   = "TIDEWAITER_TEST_HIDDEN"
)

// Counters are numbers in shared memory by which the programs show that they run.
type Counters []uint64

// NewCounters makes a file of n counters.
func NewCounters(t testing.TB, path string, n int) Counters {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, 8*n), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := mapCounters(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mapCounters(path string) (Counters, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), len(memory)/8), nil
}

// Now reads all counters.
func (c Counters) Now() []uint64 {
	now := make([]uint64, len(c))
	for i := range c {
		now[i] = atomic.LoadUint64(&c[i])
	}
	return now
}

// AwaitProgress waits until every counter has moved on. Hundreds that compute share the machine with whatever else runs on it.
func (c Counters) AwaitProgress(t testing.TB) {
	t.Helper()
	start := c.Now()
	for deadline := time.Now().Add(limit - time.Minute); ; time.Sleep(time.Millisecond) {
		now := c.Now()
		stuck := -1
		for i := range now {
			if now[i] == start[i] {
				stuck = i
			}
		}
		if stuck < 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("counter %d does not move", stuck)
		}
	}
}

func runProgram(program string) error {
	counters, err := mapCounters(os.Getenv(countersEnv))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(os.Getenv(countEnv))
	if err != nil {
		return err
	}
	debug.SetGCPercent(-1)
	switch program {
	case "herd":
		for i := range n {
			forkAndCount(&counters[i], n >= crowd)
		}
	case "storm":
		for i := range n {
			forkForever(&counters[i])
		}
	case "threads":
		for i := range n {
			go count(&counters[i])
		}
	case "vfork":
		if os.Getenv(hiddenEnv) == "true" {
			if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
				return err
			}
		}
		go vforkAndCount(&counters[0])
	default:
		return fmt.Errorf("no program %q", program)
	}
	forever := make(chan os.Signal, 1)
	signal.Notify(forever, unix.SIGTERM)
	<-forever
	return nil
}

//go:nosplit
func count(counter *uint64) {
	for {
		atomic.AddUint64(counter, 1)
	}
}

// The functions below fork without Go's runtime knowing: their children may only compute and make raw system calls.

// crowd is how many processes rest between two numbers.
const crowd = 50

// rest of a process in a crowd.
var rest = unix.Timespec{Nsec: int64(time.Millisecond)}

//go:norace
//go:nosplit
func forkAndCount(counter *uint64, rests bool) {
	if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid == 0 {
		for {
			atomic.AddUint64(counter, 1)
			if rests {
				unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&rest)), 0, 0)
			}
		}
	}
}

//go:norace
//go:nosplit
func vforkAndCount(counter *uint64) {
	const flags = unix.CLONE_VFORK | unix.CLONE_VM | uintptr(unix.SIGCHLD)
	if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0); pid == 0 {
		for {
			atomic.AddUint64(counter, 1)
		}
	}
}

// stormWork is how much a process of a chain counts before it forks.
const stormWork = 2000

//go:norace
//go:nosplit
func forkForever(counter *uint64) {
	if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid != 0 {
		return
	}
	for {
		for range stormWork {
			atomic.AddUint64(counter, 1)
		}
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if pid != 0 && errno == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
}
