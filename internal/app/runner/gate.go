// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/proc"
)

// drainTime is how long the runner reads a gate's output after the gate has ended: a process that it left behind may write for ever.
const drainTime = time.Second

// gateEnv makes folders for HOME and TMPDIR below a new one, and returns the environment of a gate. Nothing of it comes from the agent: neither
// its home, nor the variables of its container, of which only PATH stays.
func gateEnv(container, more []string) (env []string, scratch string, err error) {
	if scratch, err = os.MkdirTemp("", "gate-"); err != nil {
		return nil, "", fmt.Errorf("make a folder for the gate: %w", err)
	}
	home, tmp := filepath.Join(scratch, "home"), filepath.Join(scratch, "tmp")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Mkdir(tmp, 0o700)); err != nil {
		return nil, scratch, fmt.Errorf("make a folder for the gate: %w", err)
	}
	base := []string{"HOME=" + home, "TMPDIR=" + tmp, "LANG=C.UTF-8", "CI=true"}
	for _, variable := range container {
		if strings.HasPrefix(variable, "PATH=") {
			base = append(base, variable)
		}
	}
	env, err = proc.MergeEnv(base, more)
	return env, scratch, err
}

// tail keeps the end of what a gate writes.
type tail struct {
	mu   sync.Mutex
	kept []byte
	size int64
}

// Write keeps the last protocol.MaxGateOutput bytes, and holds at most twice as much.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size += int64(len(b))
	n := len(b)
	b = b[max(0, n-protocol.MaxGateOutput):]
	if len(t.kept)+len(b) > 2*protocol.MaxGateOutput {
		t.kept = t.kept[:copy(t.kept, t.kept[max(0, len(t.kept)-protocol.MaxGateOutput):])]
	}
	t.kept = append(t.kept, b...)
	return n, nil
}

// end is what the gate wrote last, and how many bytes it wrote in all.
func (t *tail) end() (last []byte, size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.kept[max(0, len(t.kept)-protocol.MaxGateOutput):]), t.size
}

// collect passes a gate's output on to the container's log, and keeps its end. The channel is closed when the gate has ended and its output was
// read, or when the time for that is over.
func collect(process *proc.Process, log io.Writer) (*tail, <-chan struct{}) {
	kept, read, ended := &tail{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.MultiWriter(kept, log), process.Output) // it ends with the last process that has the pipe, or with its deadline
		_ = process.Output.Close()
	}()
	go func() {
		defer close(ended)
		<-process.Done()
		_ = process.Output.SetReadDeadline(time.Now().Add(drainTime))
		select {
		case <-read:
		case <-time.After(2 * drainTime): // the container's log takes nothing
		}
	}()
	return kept, ended
}
