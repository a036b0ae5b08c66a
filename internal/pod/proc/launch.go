// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A program is started through this program itself: what is forked executes this program once more, which installs the
// filter of system calls on itself and then executes the command. Between fork and exec no Go code may run, so the
// filter cannot be installed there.

const (
	// launcherName is the name by which this program knows that it has been started for that.
	launcherName = "tidewaiter-launcher"
	// ownProgram is this very program, whatever became of its path.
	ownProgram = "/proc/self/exe"
	// verdictFD is where the launcher tells why it could not execute the command. It closes with the exec.
	verdictFD = RepliesFD + 1
	// launchTimeout bounds the launcher's work, which takes milliseconds.
	launchTimeout = 30 * time.Second
	// maxVerdict bounds what it tells, in bytes.
	maxVerdict = 4 << 10
)

// Words that begin a launcher's verdict.
const (
	verdictExec    = "exec "
	verdictConfine = "confine "
)

// launcherFailed is the exit code of a launcher that could not execute the command (EX_OSERR).
const launcherFailed = 71

// Launch has to be the first thing that a program does that uses Start. When the program has been started as a launcher it
// does not return.
func Launch() {
	if len(os.Args) < 3 || os.Args[0] != launcherName {
		return
	}
	runtime.LockOSThread()
	unix.CloseOnExec(verdictFD)
	verdict := os.NewFile(verdictFD, "verdict")
	if err := confineSelf(); err != nil {
		fmt.Fprint(verdict, verdictConfine, err)
		os.Exit(launcherFailed) //nolint:forbidigo // this process is to become another program and has nothing to return to
	}
	err := unix.Exec(os.Args[1], os.Args[2:], os.Environ())
	var errno unix.Errno
	errors.As(err, &errno)
	fmt.Fprint(verdict, verdictExec, int(errno))
	os.Exit(launcherFailed) //nolint:forbidigo // the same
}

// confineSelf also closes this process to what runs under its uid until it executes the command: a process that traced it
// before it has the filter would have a program without one.
func confineSelf() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("make the launcher not dumpable: %w", err)
	}
	return confine()
}

// awaitLaunch waits until a launcher has executed its command, and returns why it could not.
func awaitLaunch(verdict *os.File, path string) error {
	if err := verdict.SetReadDeadline(time.Now().Add(launchTimeout)); err != nil {
		return fmt.Errorf("set deadline of the launch: %w", err)
	}
	said, err := io.ReadAll(io.LimitReader(verdict, maxVerdict))
	if err != nil {
		return fmt.Errorf("execute %q: the launcher did not answer within %s: %w", path, launchTimeout, err)
	}
	if len(said) == 0 {
		return nil
	}
	if number, ok := strings.CutPrefix(string(said), verdictExec); ok {
		errno, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("execute %q: the launcher said %q", path, said)
		}
		return explain(path, unix.Errno(errno))
	}
	return fmt.Errorf("confine %q: %s", path, strings.TrimPrefix(string(said), verdictConfine))
}
