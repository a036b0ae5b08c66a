// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// DefaultSilence of a remote: a server counts the objects of a large repository, or runs a slow hook, for minutes.
	DefaultSilence = 5 * time.Minute
	// looks at a command within the time that it may be silent.
	looks = 8
	// working is the share of the time that a command has to compute for, to count as one that works: 1/working. One that waits
	// for a server uses about a thousandth.
	working = 50
	// clockTick is the unit of the times in /proc (USER_HZ, which is 100 for all programs on Linux).
	clockTick = 10 * time.Millisecond
	// traceFile is the first file that a command inherits in addition to its standard ones.
	traceFile = "3"
)

// vigil ends a command whose server says nothing for too long. A packet of the server is a sign of life, an empty one that only
// keeps the connection too: git's own bound (http.lowSpeedLimit) counts bytes, and takes a server for dead that sends five of them
// every five seconds. So is what git prints of its progress, and computing, for git is quiet while it checks what it has received.
type vigil struct {
	silence time.Duration
	signs   atomic.Int64
	// trace of the packets, and the end of it that the command gets; nil where nothing is watched.
	trace, give *os.File
	done        chan struct{}
}

// silentError: the server was silent for this time.
type silentError struct{ silence time.Duration }

// Error says how long.
func (e *silentError) Error() string { return fmt.Sprintf("the server was silent for %s", e.silence) }

// watch prepares the command to be watched; a silence of 0 is never too long.
func watch(cmd *exec.Cmd, silence time.Duration) (*vigil, error) {
	v := &vigil{silence: silence, done: make(chan struct{})}
	if silence <= 0 {
		return v, nil
	}
	var err error
	if v.trace, v.give, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("trace of packets: %w", err)
	}
	cmd.ExtraFiles = []*os.File{v.give}
	// Git traces each packet of the protocol but the content of packs, whose progress it prints.
	cmd.Env = append(cmd.Env, "GIT_TRACE_PACKET="+traceFile)
	return v, nil
}

// Write counts a sign of life.
func (v *vigil) Write(b []byte) (int, error) {
	v.signs.Add(1)
	return len(b), nil
}

// begin watches the command, if it was started, and calls silent once if it is too quiet.
func (v *vigil) begin(ctx context.Context, cmd *exec.Cmd, silent context.CancelCauseFunc) {
	if v.trace == nil {
		close(v.done)
		return
	}
	_ = v.give.Close() // the trace ends with the last process that has this file
	if cmd.Process != nil {
		go v.keep(ctx, cmd.Process.Pid, silent)
	}
	go func() {
		defer close(v.done)
		buffer := make([]byte, 32<<10)
		for {
			n, err := v.trace.Read(buffer)
			if err != nil {
				return
			}
			_, _ = v.Write(buffer[:n])
		}
	}()
}

// end of the watch. What is left in the trace does not matter.
func (v *vigil) end() {
	if v.trace != nil {
		_ = v.trace.Close()
	}
	<-v.done
}

func (v *vigil) keep(ctx context.Context, group int, silent context.CancelCauseFunc) {
	between := v.silence / looks
	ticker := time.NewTicker(max(between, time.Millisecond))
	defer ticker.Stop()
	// It has not computed yet: to look is work that grows with the processes of the machine, and most commands end before the first look.
	signs, spent := v.signs.Load(), time.Duration(0)
	for quiet := 0; quiet < looks; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		nowSigns, nowSpent := v.signs.Load(), computed(group)
		quiet++
		if nowSigns != signs || nowSpent < spent || nowSpent-spent > between/working {
			quiet = 0
		}
		signs, spent = nowSigns, nowSpent
	}
	silent(&silentError{silence: v.silence})
}

// computed is the time that the processes of a group have computed for. One that has ended takes its time away.
func computed(group int) time.Duration {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	var ticks int64
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// After the name, which may hold anything: state, parent, group and, from the 12th on, times in user and system mode, the children's last
		// (proc_pid_stat(5)).
		fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
		if len(fields) < 15 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		for _, field := range fields[11:15] {
			n, _ := strconv.ParseInt(string(field), 10, 64)
			ticks += n
		}
	}
	return time.Duration(ticks) * clockTick
}
