// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"slices"
	"time"
)

// worker is the program of that name in Tidewaiter's own image. Where models and tools are it finds in its environment.
type worker struct{}

// workerProgram in the image.
const workerProgram = "/usr/local/bin/worker"

// Launch implements Adapter.
func (worker) Launch(t Task) Launch {
	program := t.Command
	if len(program) == 0 {
		program = []string{workerProgram}
	}
	t.ReadOnly = false // it has no tools of its own, and tells its model so
	text := t.Text()
	return Launch{Argv: slices.Concat(program, t.Args), Env: append([]string{"HOME=" + t.Home}, t.Env...), Input: &text}
}

// Pause implements Adapter: it never writes to the workspace.
func (worker) Pause(string, time.Duration) (ask, resume any) { return nil, nil }
