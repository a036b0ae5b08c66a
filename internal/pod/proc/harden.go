// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"os"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Harden protects this process from other processes of its uid: it is not dumpable, so that none may trace it or read its memory,
// environment or files. It ignores the signals with which one could end it. The kernel keeps signals without a handler from PID 1, but Go's
// runtime handles them all, some by giving up. The price is that a fault of this process ends it without a Go trace.
func Harden() error {
	if os.Getpid() != 1 {
		return ErrNotInit
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("make this process not dumpable: %w", err)
	}
	// Nobody reads them; to be asked for is what keeps the runtime from ending the process.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGABRT, unix.SIGPIPE)
	for number, action := range deaf() {
		if err := setAction(number, kernelAction{handler: action}); err != nil {
			return fmt.Errorf("protect from signal %d: %w", int(number), err)
		}
	}
	return nil
}

// The actions of sigaction(2) that run no code.
const (
	actionDefault uint64 = iota
	actionIgnore
)

// deaf is what to do with the signals that the runtime does not survive, even with Notify, when they come with a value
// (sigqueue). The default action is enough where it dumps core: the kernel drops those for PID 1 in any case. Any other
// default kills a process of many threads while its first one blocks the signal, as it does to fork; these are ignored, which
// children inherit and no program minds: one has no meaning, the others are set by the C library before their use.
func deaf() map[unix.Signal]uint64 {
	return map[unix.Signal]uint64{
		unix.SIGILL:    actionDefault,
		unix.SIGTRAP:   actionDefault,
		unix.SIGBUS:    actionDefault,
		unix.SIGFPE:    actionDefault,
		unix.SIGSEGV:   actionDefault,
		unix.SIGSYS:    actionDefault,
		unix.SIGSTKFLT: actionIgnore,
		sigCancel:      actionIgnore,
		sigSetXID:      actionIgnore,
		sigSyncCall:    actionIgnore,
	}
}

// The real-time signals that C libraries keep for themselves, to end threads and to have all of them do something. Go's
// runtime leaves them as they are.
const (
	sigCancel   = unix.Signal(32)
	sigSetXID   = unix.Signal(33)
	sigSyncCall = unix.Signal(34)
)

// kernelAction is struct sigaction of the kernel, at its longest.
type kernelAction struct {
	handler, flags, restorer, mask uint64
}

func setAction(number unix.Signal, action kernelAction) error {
	const maskSize = unsafe.Sizeof(action.mask)
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(number), uintptr(unsafe.Pointer(&action)), 0, maskSize, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
