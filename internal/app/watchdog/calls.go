// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"log/slog"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// mostTurns is how often one start of an agent may have it journaled that its calls fail, or are answered again: it decides itself how often
// that is. Beyond it a restarted watchdog may blame the agent for failures that are not its fault.
const mostTurns = 64

// calls follow the results of an agent's model calls. It journals that they begin to fail, or succeed again, before the agent learns it, so
// that a restarted watchdog knows it when the agent ends. It is used from many goroutines.
type calls struct {
	journal *trusted.Journal
	now     func() time.Time
	log     *slog.Logger

	mu     sync.Mutex
	streak failures.Streak
	turns  int
}

// newCalls continue with what the journal knows of the task at hand.
func newCalls(j *trusted.Journal, now func() time.Time, log *slog.Logger) *calls {
	c := &calls{journal: j, now: now, log: log}
	if s := j.State(); s.Working() != "" {
		c.streak = failures.Streak{Failure: s.Tasks[s.Working()].Failing, At: now()}
	}
	return c
}

// begin with an agent that is about to be started.
func (c *calls) begin() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streak, c.turns = failures.Streak{}, 0
}

// heard what came of a call.
func (c *calls) heard(a failures.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.streak.Failure
	c.streak = c.streak.Hear(a, c.now())
	is := c.streak.Failure
	same := was == nil && is == nil || was != nil && is != nil && was.Class == is.Class && was.Cause == is.Cause
	task := c.journal.State().Working()
	if same || task == "" || c.turns >= mostTurns {
		return
	}
	c.turns++
	if err := c.journal.Note(journal.Record{Calls: &journal.Calls{Name: task, Failure: is}}); err != nil {
		c.log.Warn("Cannot journal how the model calls fare", "error", err.Error())
	}
}

// ended is what an agent failed of that has just ended; nil where it is to blame itself, or where there are no calls.
func (c *calls) ended(now time.Time) *protocol.Failure {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streak.Ended(now)
}
