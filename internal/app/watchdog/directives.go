// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// maxRefused is how often a process may not take a line before it is written no more.
const maxRefused = 3

// lines are directives that are written to the standard input of the agent's process.
type lines struct {
	// process that they are written to, and how often it did not take one.
	process string
	refused atomic.Int32
	// busy while some are being written.
	busy atomic.Bool
}

// direct writes directives that are new to the standard input of an agent that takes lines there and has called no model, by which it would
// get them. It writes to each process once, also after a restart of the watchdog.
func (x *lines) direct(l *loop) {
	s := l.services.directives
	j := l.attempt.journal.State()
	task := l.state.AtWork()
	if l.agent == nil || l.early != nil || task == "" || !l.state.Agent.Running || j.Tasks[task].Start == 0 || x.busy.Load() || l.steering.Talks() || !takesLines(l.attempt.options.adapter(l.latest.Agent.Runtime)) {
		return
	}
	process := fmt.Sprintf("%d/%d", j.Epoch, j.Tasks[task].Start)
	if x.process != process {
		x.process = process
		x.refused.Store(0)
	}
	due := slices.DeleteFunc(s.Given().Unwritten(process), func(d directives.Directive) bool {
		return d.Inform && l.state.Mode == policy.ModeDeterministic // it asks for answers itself
	})
	if len(due) == 0 || x.refused.Load() >= maxRefused {
		return
	}
	x.busy.Store(true)
	notices := make([]any, len(due))
	for i, d := range due {
		notices[i] = notice.Directed(d)
	}
	l.acts.teller.sendAll(0, notices, func(i int, taken bool) { // one that is not taken is written at the next occasion
		if taken {
			s.Written([]string{due[i].ID}, process, "the watchdog wrote it to the agent's standard input; nobody knows whether the agent has read it")
		} else {
			x.refused.Add(1)
		}
		if !taken || i == len(due)-1 {
			x.busy.Store(false)
		}
	})
}
