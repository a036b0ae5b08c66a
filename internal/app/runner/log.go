// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"io"
)

// maxLogLines is how many lines wait for a container log that is slow.
const maxLogLines = 64

// logWriter writes to the container's log without ever waiting for it: the agent shares that pipe and must not be able to
// hold up a freeze by filling it. What does not fit is dropped.
type logWriter struct {
	lines chan []byte
}

func newLogWriter(to io.Writer) *logWriter {
	w := &logWriter{lines: make(chan []byte, maxLogLines)}
	go func() {
		for line := range w.lines {
			_, _ = to.Write(line) // there is no other place to complain
		}
	}()
	return w
}

// Write implements io.Writer.
func (w *logWriter) Write(line []byte) (int, error) {
	select {
	case w.lines <- bytes.Clone(line):
	default:
	}
	return len(line), nil
}
