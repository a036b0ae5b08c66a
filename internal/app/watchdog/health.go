// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/host/vitals"
)

// component of the watchdog that something may be wrong with. None of it ever leads to less judging: what cannot be
// captured or judged is not promoted.
type component string

const (
	watcherHealth   component = "watcher"
	workspaceHealth component = "workspace"
	captureHealth   component = "capture"
	judgeHealth     component = "judge"
	diskHealth      component = "disk"
	eventsHealth    component = "file events"
)

const (
	// slowJudging is from when on a judgement is told as slow: the time that the requirements give it. Judging goes on
	// to its end all the same.
	slowJudging = 5 * time.Second
	// measureEvery is the least time between two looks at the volumes.
	measureEvery = 10 * time.Second
)

// fullness of a volume that is told, in percent. They are steps, so that a volume that fills is told thrice and not always.
var fullness = [...]int64{95, 90, 80}

// health is what the watchdog works around. Its methods may be called from any goroutine.
type health struct {
	mu       sync.Mutex
	problems map[component]string
	measured time.Time
}

// tell notes what is wrong with a component; empty for nothing.
func (h *health) tell(c component, problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.problems == nil {
		h.problems = map[component]string{}
	}
	h.problems[c] = problem
	if problem == "" {
		delete(h.problems, c)
	}
}

// list gives what is wrong, in a stable order.
func (h *health) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for _, c := range slices.SortedFunc(maps.Keys(h.problems), cmp.Compare[component]) {
		list = append(list, clip(string(c)+": "+h.problems[c], maxProblem))
	}
	return list
}

// maxProblem bounds a problem, in bytes: it becomes part of a condition's message.
const maxProblem = 256

// repeated is how many checkpoints in a row have to fail, or stay unsettled, before that is told: one alone is what a busy
// workspace does now and then, and the next one makes up for it.
const repeated = 2

// checkCaptures tells when checkpoints fail again and again.
func (r *run) checkCaptures() {
	problem := ""
	if c := r.state.Checkpoints; c.Failures >= repeated {
		problem = "checkpoints fail repeatedly, and nothing is promoted until one succeeds: " + c.Failure.Message
	}
	r.health.tell(captureHealth, problem)
}

// measure looks at the trusted volume, now and then.
func (h *health) measure(p Paths, now time.Time) {
	h.mu.Lock()
	due := now.Sub(h.measured) >= measureEvery
	if due {
		h.measured = now
	}
	h.mu.Unlock()
	if due {
		h.tell(diskHealth, fullProblem(p.Trusted))
	}
}

func fullProblem(path string) string {
	used, size, err := vitals.Volume(path)
	if err != nil {
		return err.Error()
	}
	for _, percent := range fullness {
		if used*100 > size*percent {
			return fmt.Sprintf("the trusted volume is more than %d %% full; when it is full no checkpoint can be taken and nothing is promoted", percent)
		}
	}
	return ""
}

// checkPace counts slow checkpoints in a row.
func (w *workshop) checkPace(r *contract.CheckpointReport) {
	if r.CaptureTime+r.SyncTime+r.JudgeTime+r.ActTime <= contract.SlowCheckpoint {
		w.slow = 0
		return
	}
	w.slow++
	r.Vitals.SlowInARow = w.slow
}

// vitals are the figures of this moment; what cannot be measured is zero.
func (w *workshop) vitals() contract.Vitals {
	var v contract.Vitals
	v.Memory, _ = vitals.Memory()
	v.Trusted.Used, v.Trusted.Size, _ = vitals.Volume(w.Paths.Trusted)
	v.Workspace.Used, v.Workspace.Size, _ = vitals.Volume(w.Paths.Workspace)
	v.Reports = w.spool.Pending()
	return v
}
