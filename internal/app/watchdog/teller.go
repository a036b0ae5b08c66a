// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steer"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// maxUntold bounds the violations that are logged because the agent is not told of them: as many as a Checkpoint lists.
const maxUntold = 8

// teller hands the writer notices for the agent. Its memory of earlier notices belongs to the goroutine of the acts; send
// may be called from any.
type teller struct {
	writer  *writer
	journal *trusted.Journal
	log     *slog.Logger
	// post tells an agent that reads no lines of its work, by its model or tool calls; nil for one that reads lines.
	post func(func(*notice.Board) (keep bool))
	// steering keeps what an agent is to acknowledge.
	steering *steer.Service

	told  string // violations in the agent's last notice, as a digest
	noted string // the check whose unreported violations were logged last
}

// violations lets the agent know what it has broken and how to fix it; once, until something else is wrong. What is not
// worth telling is logged.
func (t *teller) violations(ctx context.Context, feature string, taken checkpoint.Taken) {
	told := taken.Judgement.Told()
	sequence := t.journal.State().Sequence
	name := naming.Checkpoint(feature, sequence)
	if t.post != nil {
		t.post(func(b *notice.Board) bool {
			if len(told) > 0 {
				b.Broken(sequence, notice.Broken(name, taken.Snapshot.At, taken.Judgement, nil, taken.Back))
			} else if taken.Snapshot.Settled {
				b.Valid(sequence, name)
			}
			return len(b.Words) > 0
		})
	}
	if t.post == nil {
		if due := t.steering.Checked(); len(due) > 0 {
			t.send(sequence, notice.Remind(due))
		}
	}
	if taken.Intent == nil {
		return
	}
	if t.noted != taken.Intent.Judgement {
		t.noted = taken.Intent.Judgement
		t.logUntold(ctx, taken.Intent.Sequence, taken.Judgement.Violations[len(told):])
	}
	now := checkpoint.Digest(judge.Judgement{Violations: told})
	if t.post != nil || now == t.told && taken.Back == nil {
		return
	}
	t.told = now
	if len(told) == 0 {
		return
	}
	n := notice.Broken(name, taken.Snapshot.At, taken.Judgement, taken.Snapshot.Changes, taken.Back)
	if n.RequiresAcknowledgment { // before it is sent: the answer may be there first
		t.steering.Post(func(b *notice.Board) bool {
			b.Asked(taken.Intent.Sequence, name, notice.Critical(told))
			return true
		})
	}
	t.send(taken.Intent.Sequence, n)
}

// rollback reports one. What is wrong after it is reported again. Steering itself informs an agent that gets notices by its calls.
func (t *teller) rollback(n notice.Rollback, steering bool) {
	t.told = ""
	if t.post == nil {
		t.send(t.journal.State().Sequence, n)
		return
	}
	t.post(func(b *notice.Board) bool {
		b.RolledBack(n, !steering)
		return true
	})
}

// recall tells an agent at work what went back while no watchdog was there to tell it.
func (t *teller) recall(feature string) {
	j := t.journal.State()
	task := j.Tasks[j.Working()]
	if t.post == nil || task.Start == 0 || task.WentBack.Sequence == 0 {
		return
	}
	t.post(func(b *notice.Board) bool {
		b.Recall(task.WentBack.Sequence, naming.Checkpoint(feature, task.WentBack.Sequence), task.WentBack.Objection)
		return len(b.Words) > 0
	})
}

// cutOff tells an agent at work that the watchdog has restarted while its question waited. Most clients give the model an error for that call, and
// make no other. An agent that reads lines is a program, which has that error.
func (t *teller) cutOff(question *protocol.Question) {
	if t.post == nil || question == nil {
		return
	}
	t.post(func(b *notice.Board) bool {
		b.Question = question
		return true
	})
}

func (t *teller) logUntold(ctx context.Context, sequence int64, untold []protocol.Violation) {
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
func (t *teller) failure(s streak, f protocol.Fault, now time.Time) {
	t.send(t.journal.State().Sequence, notice.Failed(f, s.failed+1, s.allowed, now))
}

// send the agent a notice about a checkpoint, one line.
func (t *teller) send(checkpoint int64, n any) { t.sendAll(checkpoint, []any{n}, func(int, bool) {}) }

// sendAll sends notices that belong together, a line each, until one is not taken. Whether one was comes back to answered, by its index.
func (t *teller) sendAll(checkpoint int64, notices []any, answered func(line int, taken bool)) {
	m := message{checkpoint: checkpoint, answered: answered}
	for _, n := range notices {
		line, err := notice.Line(n)
		if err != nil {
			t.log.Warn("Cannot send a notice to the agent", "error", err.Error())
			answered(0, false)
			return
		}
		m.lines = append(m.lines, line)
	}
	t.writer.hand(m)
}

// noteTold journals a message to the agent, for users.
func noteTold(j *trusted.Journal, log *slog.Logger, told journal.Told) {
	told.Text = plain.CutBytes(told.Text, notice.Kept)
	if err := j.Note(journal.Record{Told: &told}); err != nil {
		log.Warn("Cannot journal a notice to the agent", "error", err.Error())
	}
}

// told gets the notices about its work that reached the agent by its model or tool calls.
func (a *attempt) told(text string) {
	a.options.Log.Info("Told the agent of its work")
	noteTold(a.journal, a.options.Log, journal.Told{Checkpoint: a.journal.State().Sequence, Delivered: true, Text: text})
}

// acknowledged reports what the agent has acknowledged, and journals it. It may be repeated after a crash: a checkpoint keeps the first.
func (a *attempt) acknowledged(x protocol.Acknowledgment) error {
	a.options.Log.Info("The agent acknowledges a broken rule", "checkpoint", x.Checkpoint, "rule", x.Rule, "text", x.Text)
	if err := a.reports.Acknowledged(x); err != nil {
		return err
	}
	return a.journal.Note(journal.Record{Acknowledged: &x})
}
