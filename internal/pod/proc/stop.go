// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A container runtime asks PID 1 to end by a signal, and a process of the container can send the same signal. The kernel tells
// the two apart: a sender outside of the pid namespace has the number 0 in it. Go's runtime keeps that from programs (it
// unblocks these signals in every thread, so no signalfd sees them either), so the handler of these signals is not Go's. It is
// written in assembly, looks at the sender, and writes the number of a signal from outside to a pipe.

// StopSignals are the signals by which a container runtime may ask PID 1 to end: SIGTERM, or what the image names as its STOPSIGNAL.
// Real-time signals are not among them. An agent can fill the queue of a user's signals, and the kernel then delivers such a signal without
// its sender, as if it came from outside.
func StopSignals() []unix.Signal {
	return []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGQUIT, unix.SIGWINCH}
}

// stopPipe is where the handler writes. It is set before the handler is.
var stopPipe int32 //nolint:unused // the handler reads it

// handleStop is the handler, and restoreSignal what it returns to: neither may be called.
func handleStop()    //nolint:unused // assembly takes its address
func restoreSignal() //nolint:unused // the same

// handlerAddresses returns where these two begin.
func handlerAddresses() (handler, restorer uintptr)

// Flags of sigaction(2) in linux/signal.h, which x/sys does not have.
const (
	flagInfo     = 0x4        // SA_SIGINFO
	flagOnStack  = 0x08000000 // SA_ONSTACK: a goroutine's stack has no room for a signal
	flagRestart  = 0x10000000 // SA_RESTART
	flagRestorer = 0x04000000 // SA_RESTORER
)

// sizeNumber is the size of a signal's number in the pipe, in bytes.
const sizeNumber = 4

var stops = sync.OnceValues(func() (<-chan unix.Signal, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make a pipe for stop signals: %w", err)
	}
	stopPipe = int32(ends[1])
	handler, restorer := handlerAddresses()
	action := kernelAction{
		handler:  uint64(handler),
		flags:    flagInfo | flagOnStack | flagRestart | flagRestorer,
		restorer: uint64(restorer),
		mask:     ^uint64(0),
	}
	for _, number := range StopSignals() {
		if err := setAction(number, action); err != nil {
			return nil, fmt.Errorf("handle %s: %w", unix.SignalName(number), err)
		}
	}
	heard := make(chan unix.Signal, 1)
	go readStops(os.NewFile(uintptr(ends[0]), "stop signals"), heard)
	return heard, nil
})

// Stops returns the requests to end that come from outside of this container, as signals. A request that waits in the channel represents
// later ones. It is the same channel in each call.
func Stops() (<-chan unix.Signal, error) {
	if os.Getpid() != 1 {
		return nil, ErrNotInit
	}
	return stops()
}

func readStops(pipe *os.File, heard chan<- unix.Signal) {
	var number [sizeNumber]byte
	for {
		if _, err := pipe.Read(number[:]); err != nil { // the write of so few bytes is never split
			return
		}
		select {
		case heard <- unix.Signal(binary.NativeEndian.Uint32(number[:])):
		default:
		}
	}
}
