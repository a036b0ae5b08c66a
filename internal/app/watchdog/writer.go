// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

const (
	// tellWithin bounds how long a line waits for the runner's answer, from when the writer has it.
	tellWithin = 5 * time.Second
	// maxMessages bounds the messages that wait for the writer: more than all that can come within tellWithin.
	maxMessages = 256
)

var errManyMessages = errors.New("too many messages wait for the runner")

// message is lines for the agent that belong together: once one is not taken, those after it are not written.
type message struct {
	// checkpoint that it is about; 0 for none.
	checkpoint int64
	lines      []string
	// answered hears of each line that was tried, by its index, whether the agent's input has taken it. It is called from any goroutine.
	answered func(line int, taken bool)

	until time.Time
	// passed is closed where a message without lines is at its turn.
	passed chan struct{}
}

// writer is the only one that writes to the agent's standard input, in a goroutine of its own: line by line, in the order in which it got them.
// Nobody else waits for a runner that does not answer.
type writer struct {
	// input takes a line, or not.
	input   func(ctx context.Context, line string) (taken bool, err error)
	journal *trusted.Journal
	log     *slog.Logger
	within  time.Duration

	messages chan message
}

func newWriter(input func(context.Context, string) (bool, error), j *trusted.Journal, log *slog.Logger) *writer {
	return &writer{input: input, journal: j, log: log, within: tellWithin, messages: make(chan message, maxMessages)}
}

// hand over a message. It waits for nothing.
func (w *writer) hand(m message) {
	m.until = time.Now().Add(w.within)
	select {
	case w.messages <- m:
	default:
		w.note(m, 0, false, errManyMessages)
	}
}

// flush waits until everything that was handed over before was tried, so that no line for a process that has ended reaches the next one.
func (w *writer) flush(ctx context.Context) error {
	passed := make(chan struct{})
	select {
	case w.messages <- message{passed: passed}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run until the context ends.
func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case m := <-w.messages:
			w.write(ctx, m)
		case <-ctx.Done():
		}
	}
}

// drain says of what still waits that it is not taken, when nothing more is handed over.
func (w *writer) drain(ended context.Context) {
	for len(w.messages) > 0 {
		w.write(ended, <-w.messages)
	}
}

func (w *writer) write(ctx context.Context, m message) {
	if m.passed != nil {
		close(m.passed)
	}
	for i, line := range m.lines {
		taken, err := w.try(ctx, line, m.until)
		w.note(m, i, taken, err)
		if !taken {
			return
		}
		m.until = time.Now().Add(w.within)
	}
}

func (w *writer) try(ctx context.Context, line string, until time.Time) (taken bool, err error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return w.input(ctx, line)
}

// note what came of a line: in the log, in the journal, and to who has handed it over.
func (w *writer) note(m message, line int, taken bool, err error) {
	if err != nil {
		w.log.Warn("Cannot send a notice to the agent", "error", err.Error())
	} else {
		w.log.Info("Notice sent to the agent", "checkpoint", m.checkpoint, "delivered", taken)
	}
	noteTold(w.journal, w.log, journal.Told{Checkpoint: m.checkpoint, Delivered: taken, Text: m.lines[line]})
	m.answered(line, taken)
}
