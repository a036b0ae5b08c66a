// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/core/clip"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/host/runnerlink"
	"github.com/tidewaiter/tidewaiter/internal/host/trusted"
)

const (
	// tellWithin bounds the runner's answer to a line for the agent.
	tellWithin = 5 * time.Second
	// maxUntold bounds the violations that are logged because the agent is not told of them: as many as a Checkpoint lists.
	maxUntold = 8
)

// teller sends the agent notices, and journals that it did. What was told before belongs to the goroutine of the acts; send
// may be called from any.
type teller struct {
	agent   *runnerlink.Runner
	journal *trusted.Journal
	log     *slog.Logger

	told  string // violations that the agent was told of last, as a digest
	noted string // judgement whose untold violations were logged last
}

// violations lets the agent know what it has broken and how to fix it; once, until something else is wrong. What is not
// worth telling is logged.
func (t *teller) violations(ctx context.Context, feature string, taken checkpoint.Taken) {
	if taken.Intent == nil {
		return
	}
	told := taken.Judgement.Told()
	if t.noted != taken.Intent.Judgement {
		t.noted = taken.Intent.Judgement
		t.logUntold(ctx, taken.Intent.Sequence, taken.Judgement.Violations[len(told):])
	}
	now := checkpoint.Digest(judge.Judgement{Violations: told})
	if now == t.told {
		return
	}
	t.told = now
	if len(told) == 0 {
		return
	}
	t.send(ctx, taken.Intent.Sequence, notice.Broken(naming.Checkpoint(feature, taken.Intent.Sequence), taken.Snapshot.At, taken.Judgement,
		taken.Snapshot.Changes, taken.Intent.Restore != ""))
}

// forget what was told, so that what is still wrong is told again.
func (t *teller) forget() { t.told = "" }

func (t *teller) logUntold(ctx context.Context, sequence int64, untold []judge.Violation) {
	for _, v := range untold[:min(len(untold), maxUntold)] {
		t.log.InfoContext(ctx, "Broken rule of severity Info", "checkpoint", sequence,
			"rule", v.Rule, "path", judge.Escape(v.Path), "message", v.Message)
	}
}

// streak is how many checkpoints in a row had failed before the one that is taken, and how many may.
type streak struct{ failed, allowed int }

func streakOf(s supervise.State) streak {
	return streak{failed: s.Checkpoints.Failures, allowed: s.Rules.MaxFailures}
}

// failure tells the agent that a checkpoint failed, and why.
func (t *teller) failure(ctx context.Context, s streak, f protocol.Fault, now time.Time) {
	t.send(ctx, t.journal.State().Sequence, notice.Failed(f, s.failed+1, s.allowed, now))
}

// send the agent a notice about a checkpoint, one line, and journal that it was sent. It says whether the agent's input has taken it.
func (t *teller) send(ctx context.Context, checkpoint int64, n any) (delivered bool) {
	line, err := notice.Line(n)
	if err != nil {
		t.log.WarnContext(ctx, "Cannot send a notice to the agent", "error", err.Error())
		return false
	}
	short, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	delivered, err = t.agent.Input(short, line)
	if err != nil {
		t.log.WarnContext(ctx, "Cannot send a notice to the agent", "error", err.Error())
	} else {
		t.log.InfoContext(ctx, "Notice sent to the agent", "checkpoint", checkpoint, "delivered", delivered)
	}
	told := journal.Told{Checkpoint: checkpoint, Delivered: delivered, Text: clip.Bytes(line, notice.Kept)}
	if err := t.journal.Note(journal.Record{Told: &told}); err != nil {
		t.log.WarnContext(ctx, "A notice to the agent cannot be journaled", "error", err.Error())
	}
	return delivered
}
