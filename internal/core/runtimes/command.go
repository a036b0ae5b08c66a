// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"slices"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// command is any image with a command: it gets everything by its environment, and by lines on its standard input.
type command struct{}

// Launch implements Adapter.
func (command) Launch(t Task) Launch {
	env := append([]string{"HOME=" + t.Home}, t.Env...)
	if text := t.context(); text != "" {
		env = append(env, protocol.EnvTaskContext+"="+text)
	}
	return Launch{Argv: append(slices.Clip(t.Command), t.Args...), Env: env}
}

// Pause implements Adapter.
func (command) Pause(checkpoint string, within time.Duration) (ask, resume any) {
	return notice.Pause(checkpoint, within)
}
