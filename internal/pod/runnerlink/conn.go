// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runnerlink

import (
	"context"
	"fmt"
	"net"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Conn is the runner's end of one connection.
type Conn struct {
	lines *lines
}

// Dial tries once to reach the watchdog at a socket path. The first thing to send is a Hello.
func Dial(ctx context.Context, path string) (*Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("dial watchdog: %w", err)
	}
	return &Conn{lines: newLines(conn)}, nil
}

// Send sends an event to the watchdog. It is safe for concurrent use; after an error the connection is lost.
func (c *Conn) Send(event protocol.RunnerEvent) error {
	return c.lines.write(event)
}

// Receive waits for the next command. Every error means that the connection is lost or has to be given up.
func (c *Conn) Receive() (protocol.RunnerCommand, error) {
	line, err := c.lines.read()
	if err != nil {
		return protocol.RunnerCommand{}, fmt.Errorf("read command: %w", err)
	}
	return decodeCommand(line)
}

// Close breaks the connection and ends a waiting Receive.
func (c *Conn) Close() error {
	return c.lines.conn.Close()
}
