// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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

// kept keeps the beginning and the end of what a gate writes.
type kept struct {
	mu sync.Mutex
	// head is the beginning. tail is the end of what follows; once it is full, it is a ring, and next is the place of its oldest byte.
	head, tail []byte
	next       int
	size       int64
	taken      bool
}

// Write keeps at most protocol.MaxGateHead and protocol.MaxGateTail bytes.
func (k *kept) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(b)
	if k.taken {
		return n, nil
	}
	k.size += int64(n)
	first := min(protocol.MaxGateHead-len(k.head), n)
	k.head, b = append(k.head, b[:first]...), b[first:]
	b = b[max(0, len(b)-protocol.MaxGateTail):]
	more := min(protocol.MaxGateTail-len(k.tail), len(b))
	k.tail, b = append(k.tail, b[:more]...), b[more:]
	for len(b) > 0 {
		m := copy(k.tail[k.next:], b)
		k.next, b = (k.next+m)%protocol.MaxGateTail, b[m:]
	}
	return n, nil
}

// take gives away what was kept, and how many bytes the gate has written. Nothing is kept any more.
func (k *kept) take() (head, tail []byte, size int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.taken = true
	slices.Reverse(k.tail[:k.next]) // three reversals make the ring a text without a second one
	slices.Reverse(k.tail[k.next:])
	slices.Reverse(k.tail)
	return k.head, k.tail, k.size
}

// collect passes a gate's output on to the container's log, and keeps its beginning and end. The channel is closed when the gate has ended and its output was
// read, or when the time for that is over.
func collect(process *proc.Process, log io.Writer) (*kept, <-chan struct{}) {
	keep, read, ended := &kept{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.MultiWriter(keep, log), process.Output) // it ends with the last process that has the pipe, or with its deadline
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
	return keep, ended
}
