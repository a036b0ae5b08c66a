// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runnerlink is the connection between watchdog and runner: one JSON object a line over a unix socket that only one
// runner ever gets hold of. Runner is the watchdog's end, Conn the runner's.
package runnerlink

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// writeTimeout bounds one write: the other side reads all the time, so a full socket means that it hangs.
const writeTimeout = 30 * time.Second

// errLineTooLong breaks the connection: what follows such a line cannot be made sense of.
var errLineTooLong = fmt.Errorf("a line is longer than %d bytes", protocol.MaxRunnerLine)

// lines frames messages on a connection. Writes may come from any goroutine, reads from one.
type lines struct {
	conn net.Conn
	in   *bufio.Reader

	writing sync.Mutex
}

func newLines(conn net.Conn) *lines {
	return &lines{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
}

// read returns the next line without its end. The slice is the caller's own.
func (l *lines) read() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		if len(line)+len(part) > protocol.MaxRunnerLine {
			return nil, errLineTooLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// write sends one message. After an error the connection is of no use: a part of the line may have been sent.
func (l *lines) write(message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if len(line)+1 > protocol.MaxRunnerLine {
		return errLineTooLong
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("set write deadline: %w", err)
	}
	if _, err := l.conn.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}

// decodeCommand accepts what a runner may be asked: an ID and exactly one request.
func decodeCommand(line []byte) (protocol.RunnerCommand, error) {
	var c protocol.RunnerCommand
	if err := json.Unmarshal(line, &c); err != nil {
		return protocol.RunnerCommand{}, fmt.Errorf("decode command: %w", err)
	}
	if c.ID <= 0 && c.Session == nil {
		return protocol.RunnerCommand{}, fmt.Errorf("decode command: id %d is not positive", c.ID)
	}
	n := count(c.Start != nil, c.Freeze != nil, c.Thaw != nil, c.Kill != nil, c.Input != nil, c.Pulse != nil, c.Exit != nil, c.Session != nil)
	if n != 1 {
		return protocol.RunnerCommand{}, fmt.Errorf("decode command: %d requests in command %d, want exactly one", n, c.ID)
	}
	return c, nil
}

// decodeEvent accepts what a runner may tell: exactly one thing, and an ID where it is an answer.
func decodeEvent(line []byte) (protocol.RunnerEvent, error) {
	var e protocol.RunnerEvent
	if err := json.Unmarshal(line, &e); err != nil {
		return protocol.RunnerEvent{}, fmt.Errorf("decode event: %w", err)
	}
	if e.ID < 0 {
		return protocol.RunnerEvent{}, fmt.Errorf("decode event: id %d is negative", e.ID)
	}
	answers := count(e.Started != nil, e.Frozen != nil, e.Thawed != nil, e.Killed != nil, e.Input != nil, e.Pulse != nil, e.Error != "")
	news := count(e.Hello != nil, e.Session != nil, e.Exited != nil, e.Signal != nil, e.Understood != nil)
	if answers+news != 1 {
		return protocol.RunnerEvent{}, fmt.Errorf("decode event: it tells %d things, want exactly one", answers+news)
	}
	if news == 1 && e.ID != 0 {
		return protocol.RunnerEvent{}, fmt.Errorf("decode event: id %d on an event that answers nothing", e.ID)
	}
	if answers == 1 && e.ID == 0 && e.Thawed == nil {
		return protocol.RunnerEvent{}, errors.New("decode event: an answer without an id")
	}
	return e, nil
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
