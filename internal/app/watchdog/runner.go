// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

// heard takes what the runner tells.
func (l *loop) heard(ctx context.Context, e runnerlink.Event) (supervise.Event, error) {
	switch {
	case e.Connected != nil:
		return l.connected(ctx, *e.Connected)
	case e.Lost != nil:
		if l.state.Doing == supervise.Gate { // nobody tells how it ends
			l.cancel()
		}
		l.attempt.options.Log.WarnContext(ctx, "Runner disconnected", "error", e.Lost.Error())
		return supervise.Disconnected{}, nil
	case e.Exited != nil:
		return l.exited(ctx, *e.Exited)
	case e.Signal != nil:
		l.attempt.options.Log.InfoContext(ctx, "Asking the agent's container to end", "signal", e.Signal.Name)
		return l.terminate(), nil
	case e.Understood != nil:
		u := notice.Understood{Rule: e.Understood.Rule, Checkpoint: e.Understood.Checkpoint, Instead: e.Understood.Instead}
		if err := l.steering.Understood(u); err != nil {
			l.attempt.options.Log.InfoContext(ctx, "The agent acknowledges what it was not asked about", "rule", u.Rule, "checkpoint", u.Checkpoint)
		}
	case e.Thawed != nil:
		l.attempt.options.Log.WarnContext(ctx, "A freeze ended by its limit")
		return supervise.Slipped{}, nil
	}
	return nil, nil
}

// connected compares what the runner says with what the journal knows of the current task.
func (l *loop) connected(ctx context.Context, h protocol.RunnerHello) (supervise.Event, error) {
	e := supervise.Connected{Leftovers: h.Running != 0 || h.LastExit != nil, Frozen: h.Frozen}
	task, known := l.current()
	switch {
	case h.Running != 0 && task.Begun && !task.Ended && (task.Start == 0 && h.Running > task.Before || task.Start == h.Running):
		e.Running = true
		l.noteStart(ctx, known, task, h.Running)
	case h.LastExit != nil && !h.LastExit.Gate && task.Begun && !task.Ended && ours(l.attempt.journal.State(), task, *h.LastExit):
		if err := l.attempt.options.Probe.After("agent exited"); err != nil {
			return nil, err
		}
		l.noteStart(ctx, known, task, h.LastExit.Start)
		again, err := l.unfinished(ctx, h.LastExit.Code)
		if err != nil {
			return nil, err
		}
		if again {
			break
		}
		e.Exited, e.Failure = h.LastExit, l.calls.ended(l.now())
		l.note(ctx, journal.Record{TaskEnded: endedOf(l.state, known, h.LastExit.Code, e.Failure)})
	}
	l.attempt.options.Log.InfoContext(ctx, "Runner connected", "running", h.Running, "frozen", h.Frozen)
	return e, nil
}

// noteStart journals a start if a crash came between it and its record. Without that record the exit could later be taken for that of another task.
func (l *loop) noteStart(ctx context.Context, name string, task journal.Task, id int64) {
	if task.Start == 0 {
		l.note(ctx, journal.Record{TaskStarted: &journal.TaskStarted{Name: name, Start: id, Session: l.state.Sessions}})
	}
}

// ours says whether an exit is that of the current task: by the number of its start or, when that was not journaled any
// more, by being newer than every start that was.
func ours(s journal.State, task journal.Task, e protocol.RunnerExited) bool {
	if task.Start != 0 {
		return task.Start == e.Start
	}
	for _, t := range s.Tasks {
		if max(t.Start, t.Before) >= e.Start {
			return false
		}
	}
	return true
}

// current is what the journal knows of the task at hand, and its name.
func (l *loop) current() (journal.Task, string) {
	i := l.state.Current()
	if i < 0 {
		return journal.Task{}, ""
	}
	name := l.state.Tasks[i].Name
	return l.attempt.journal.State().Tasks[name], name
}

// exited takes the end of the agent's process. One that is heard before the start is noted waits for that.
func (l *loop) exited(ctx context.Context, e protocol.RunnerExited) (supervise.Event, error) {
	if l.state.Doing == supervise.Start {
		l.early = &e
		return nil, nil
	}
	if l.state.Doing == supervise.Gate {
		select {
		case l.acts.gateExits <- e:
		default: // only one process runs at a time
		}
		return nil, nil
	}
	l.attempt.options.Log.InfoContext(ctx, "Agent exited", "start", e.Start, "code", e.Code, "signal", e.Signal)
	task, name := l.current()
	stale := task.Start != 0 && task.Start != e.Start || e.Start <= task.Before
	if !task.Begun || task.Ended || stale {
		return nil, nil
	}
	if err := l.attempt.options.Probe.After("agent exited"); err != nil {
		return nil, err
	}
	again, err := l.unfinished(ctx, e.Code)
	if err != nil {
		return nil, err
	}
	failure := l.calls.ended(l.now())
	if !again {
		l.note(ctx, journal.Record{TaskEnded: endedOf(l.state, name, e.Code, failure)})
	}
	return supervise.AgentExited{Code: e.Code, Failure: failure}, nil
}

// unfinished says whether an agent that has ended is started again, because it ended with a turn without tools. That is journaled in place of its end.
func (l *loop) unfinished(ctx context.Context, code int) (bool, error) {
	i := l.state.Current()
	if code != 0 || i < 0 || l.state.Stopped() || !l.state.Tasks[i].Completed.IsZero() || l.state.Tasks[i].Rejected != "" {
		return false, nil
	}
	if task, _ := l.current(); l.state.Measure != nil && (l.state.Measure.ID == task.Restart || l.state.Measure.ID == task.Continued) {
		return false, nil // it was started after that, before a crash
	}
	l.steering.Ended(l.state.Sessions)
	e, err := l.measure(ctx)
	if err != nil {
		return false, err
	}
	l.after(ctx, e)
	m := l.state.Measure
	return m != nil && !m.Over && (m.Rung == policy.RungNoTools || m.Rung == policy.RungRestart), nil
}

// rejected fails the task at hand because of what a model has answered. What cannot be journaled ends the process: the agent has got it,
// and a restarted watchdog must not count its task as done.
func (l *loop) rejected(ctx context.Context, r modelproxy.Rejection) (supervise.Event, error) {
	task, name := l.current()
	if !task.Begun || task.Over() || task.Aborting != nil || r.Task != name {
		return nil, nil
	}
	l.attempt.options.Log.WarnContext(ctx, "The task fails: the gateway does not accept an answer of its model", "task", name, "message", r.Message)
	if err := l.attempt.journal.Note(journal.Record{TaskRejected: &journal.TaskRejected{Name: name, Message: r.Message}}); err != nil {
		return nil, fmt.Errorf("journal that task %q has failed: %w", name, err)
	}
	return supervise.AnswerRejected{Message: r.Message}, nil
}

// endedOf is the record of an agent that has: by itself, or because the watchdog ended it.
func endedOf(s supervise.State, task string, code int, failure *protocol.Failure) *journal.TaskEnded {
	return &journal.TaskEnded{Name: task, ExitCode: code, Stopped: s.Stopped(), Failure: failure}
}

// note journals what the runner could tell again: a failure does not stop the watchdog.
func (l *loop) note(ctx context.Context, record journal.Record) {
	if err := l.attempt.journal.Note(record); err != nil {
		l.attempt.options.Log.WarnContext(ctx, "Cannot journal a message of the runner", "error", err.Error())
	}
}
