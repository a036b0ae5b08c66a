// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// StopSignals are those by which a container runtime may ask PID 1 to end: SIGTERM, or what the image names as its STOPSIGNAL.
func StopSignals() []os.Signal {
	return []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGQUIT, unix.SIGWINCH, sigRTMin3}
}

// sigRTMin3 is SIGRTMIN+3 of the C library, by which systemd is asked to halt.
const sigRTMin3 = unix.Signal(37)

// lastSignal is the highest signal number of Linux.
const lastSignal = 64

// Harden closes this process to those of its own uid: not dumpable, so that none may trace it or read its memory, environment
// or files; and deaf to the signals with which one could end it. Go's runtime handles every signal, which takes from PID 1 the
// kernel's protection against signals from within the container; with the default action it is back. The price is that a
// fault of this process ends it without a Go stack trace.
func Harden() error {
	if os.Getpid() != 1 {
		return ErrNotInit
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("make this process not dumpable: %w", err)
	}
	for signal := unix.Signal(1); signal <= lastSignal; signal++ {
		if handled(signal) {
			continue
		}
		if err := setDefault(signal); err != nil {
			return fmt.Errorf("protect from signal %d: %w", int(signal), err)
		}
	}
	return nil
}

// handled is true for signals that must go on reaching the runtime: its own preemption, the end of a child, the stop signals;
// and for those that nobody can handle, or that C libraries keep to themselves.
func handled(signal unix.Signal) bool {
	switch signal {
	case unix.SIGURG, unix.SIGCHLD, unix.SIGKILL, unix.SIGSTOP, 32, 33:
		return true
	}
	return slices.Contains(StopSignals(), os.Signal(signal))
}

// kernelAction is struct sigaction of the kernel; all zero is the default action on every architecture.
type kernelAction struct {
	handler, flags, restorer, mask uint64
}

func setDefault(signal unix.Signal) error {
	var action kernelAction
	const maskSize = unsafe.Sizeof(action.mask)
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(&action)), 0, maskSize, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
