// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Input is the standard input of a process: lines go in whole or not at all, and nobody waits for them to be read.
type Input struct {
	pipe *os.File
	raw  syscall.RawConn

	mu sync.Mutex
	// finishing is true while the rest of a line that did not fit waits for the process to read.
	finishing bool
}

func newInput(fd int) (*Input, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("make input non-blocking: %w", err)
	}
	pipe := os.NewFile(uintptr(fd), "input")
	raw, err := pipe.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("reach input: %w", err)
	}
	return &Input{pipe: pipe, raw: raw}, nil
}

// Write hands a line and its end to the process. It returns false when the line was dropped: the process has ended, has
// closed its input, or has not read what came before.
func (in *Input) Write(line string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.finishing {
		return false
	}
	data := []byte(line + "\n")
	n := in.try(data)
	if n <= 0 {
		return false
	}
	if n < len(data) {
		in.finishing = true
		go in.finish(data[n:])
	}
	return true
}

// only makes a text all of the input: nothing is taken after it.
func (in *Input) only(text string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.finishing = true
	go func() {
		_, _ = in.pipe.WriteString(text) // the process may end without having read it
		in.close()
	}()
}

// try writes what fits now; -1 when nothing does.
func (in *Input) try(data []byte) int {
	n := -1
	err := in.raw.Write(func(fd uintptr) bool {
		var err error
		for n, err = unix.Write(int(fd), data); err == unix.EINTR; n, err = unix.Write(int(fd), data) {
		}
		return true // whatever came of it: do not wait
	})
	if err != nil {
		return -1
	}
	return n
}

// finish writes the rest of a line as the process reads; close ends it.
func (in *Input) finish(rest []byte) {
	_, _ = in.pipe.Write(rest) // the process may end without having read it
	in.mu.Lock()
	defer in.mu.Unlock()
	in.finishing = false
}

func (in *Input) close() { _ = in.pipe.Close() }
