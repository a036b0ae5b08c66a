// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
)

// reachEnv makes the test binary a program that tries to have PID 1 asked to end: with "all", by each system call, each in
// a process of its own; with a number, by that call.
const reachEnv = "TIDEWAITER_TEST_REACH"

const (
	// lastCall is above the highest number of a system call in Linux 6.18.
	lastCall = 480
	// callLimit ends a call that does not return.
	callLimit = 3 * time.Second
	// callsAtOnce is how many processes try a call at the same time.
	callsAtOnce = 8
	// maxProcesses bounds what wild calls make of themselves, beside what else the same uid runs on the machine.
	maxProcesses = 4096
	// The numbers of fork(2) and vfork(2) on amd64. On arm64 they are close(2) and vhangup(2).
	sysFork, sysVfork = 57, 58
)

func reach(text string) error {
	if text == "all" {
		return reachByAll()
	}
	call, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	threads, err := threadsOfInit()
	if err != nil {
		return err
	}
	for _, thread := range threads {
		for _, arguments := range waysToReach(thread) {
			_, _, _ = unix.RawSyscall6(uintptr(call), arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5])
		}
	}
	return nil
}

// leftOut names the calls that are not tried. What fork(2) and its like make would make the calls behind them as well, and so on. With the number of a
// thread for a request, ptrace(2) may attach to the program that tries all calls: the attaching process ends, and the kernel leaves the program stopped
// for good. TestHardenClosesThisProcess attaches to PID 1.
func leftOut(call int) bool {
	return slices.Contains([]int{sysFork, sysVfork, unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_PTRACE}, call)
}

func reachByAll() error {
	var calls sync.WaitGroup
	slots, failed := make(chan struct{}, callsAtOnce), make(chan error, lastCall)
	for call := range lastCall {
		if leftOut(call) {
			continue
		}
		slots <- struct{}{}
		calls.Go(func() {
			failed <- reachInProcess(call)
			<-slots
		})
	}
	calls.Wait()
	close(failed)
	var all error
	for err := range failed {
		all = errors.Join(all, err)
	}
	return all
}

// reachInProcess tries a call in a process of its own. What a wild call makes of that process is no matter.
func reachInProcess(call int) error {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), reachEnv+"="+strconv.Itoa(call))
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true} // some of them signal their own group
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) && ctx.Err() == nil {
		return fmt.Errorf("call %d: %w", call, err)
	}
	return nil
}

// waysToReach are arguments by which a call that sends signals may be meant: its process, its thread, its signal and what
// comes with it, in each order that such calls have.
func waysToReach(thread int) (all [][6]uintptr) {
	const signal = uintptr(unix.SIGTERM)
	forged := func(code int32) uintptr { return pointer(&[32]int32{0: int32(signal), 2: code}) } // siginfo_t of the sender 0
	handle := func(path string) uintptr {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return math.MaxUint32
		}
		fd, _ = unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 900) // or kill(2) would take it for one of these programs
		return uintptr(fd)
	}
	// struct sigevent with SIGEV_THREAD_ID, which names a thread.
	event := &struct {
		value              uint64
		signal, kind, name int32
		padding            [12]int32
	}{signal: int32(signal), kind: 4, name: int32(thread)}
	number, process := uintptr(thread), handle("/proc/1")
	return [][6]uintptr{
		{number, signal},
		{1, number, signal},
		{number, number, signal},
		{number, signal, forged(0)},
		{number, signal, forged(-1)},
		{1, number, signal, forged(0)},
		{1, number, signal, forged(-1)},
		{process, signal},
		{process, signal, forged(0)},
		{process, unix.F_SETSIG, signal},
		{0, uintptr(unsafe.Pointer(event)), pointer(new([16]uint64))},
	}
}

// TestNobodyInsideAsksToEnd tries the system calls of the kernel, those that later kernels may have too, with what would name
// a thread of PID 1. It looks at the effect alone: which of them the filter denies is TestFilter's matter.
func TestNobodyInsideAsksToEnd(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		limit := &unix.Rlimit{Cur: maxProcesses, Max: maxProcesses}
		if err := errors.Join(unix.Setrlimit(unix.RLIMIT_NPROC, limit), container.BecomeUser()); err != nil {
			t.Fatal(err)
		}
		stops, err := Stops()
		if err != nil {
			t.Fatal(err)
		}
		c := newTestContainer(t)
		if err := Harden(); err != nil {
			t.Fatal(err)
		}
		p := start(t, c, []string{reachEnv + "=all"}, os.Args[0])
		<-p.Done()
		if got := p.Exit(); got.Code != 0 {
			t.Errorf("the program that tries every call: %+v", got)
		}
		select {
		case s := <-stops:
			t.Errorf("a process inside has asked PID 1 to end by %s", unix.SignalName(s))
		default:
		}
	})
}

func threadsOfInit() (all []int, err error) {
	threads, err := os.ReadDir("/proc/1/task")
	if err != nil {
		return nil, err
	}
	for _, entry := range threads {
		thread, err := strconv.Atoi(entry.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, thread)
	}
	return all, nil
}
