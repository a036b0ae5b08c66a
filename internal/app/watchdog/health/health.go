// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health lists the problems that a watchdog works around: a component, and what is wrong with it now. None of them makes checks
// weaker: the watchdog does not promote what it cannot capture or check.
package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/pod/vitals"
)

// Component of the watchdog that may have a problem.
type Component string

// Components.
const (
	Watcher    Component = "watcher"
	Workspace  Component = "workspace"
	Capture    Component = "capture"
	Judge      Component = "judge"
	Disk       Component = "disk"
	FileEvents Component = "file events"
	Reports    Component = "reports"
)

const (
	// measureEvery is the least time between two looks at the volumes.
	measureEvery = 10 * time.Second
	// maxProblem bounds a problem, in bytes: it becomes part of a condition's message.
	maxProblem = 256
)

// fullness of a volume from which on it is reported, in percent. They are steps, so that a filling volume is reported three times and not always.
var fullness = [...]int64{95, 90, 80}

// Health has the problems that the watchdog works around. Its methods are safe for concurrent use; its zero value has no problems.
type Health struct {
	mu       sync.Mutex
	problems map[Component]string
	measured time.Time
}

// Tell records the problem of a component; empty for none.
func (h *Health) Tell(c Component, problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.problems == nil {
		h.problems = map[Component]string{}
	}
	h.problems[c] = problem
	if problem == "" {
		delete(h.problems, c)
	}
}

// List returns the problems, sorted.
func (h *Health) List() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for _, c := range slices.SortedFunc(maps.Keys(h.problems), cmp.Compare[Component]) {
		list = append(list, plain.CutBytes(string(c)+": "+h.problems[c], maxProblem))
	}
	return list
}

// Measure looks at the volume that is mounted at a path, now and then.
func (h *Health) Measure(path string, now time.Time) {
	h.mu.Lock()
	due := now.Sub(h.measured) >= measureEvery
	if due {
		h.measured = now
	}
	h.mu.Unlock()
	if due {
		h.Tell(Disk, fullProblem(path))
	}
}

func fullProblem(path string) string {
	used, size, err := vitals.Volume(path)
	if err != nil {
		return err.Error()
	}
	for _, percent := range fullness {
		if used*100 > size*percent {
			return fmt.Sprintf("the trusted volume is more than %d %% full; when it is full, the watchdog can neither take checkpoints nor promote work", percent)
		}
	}
	return ""
}
