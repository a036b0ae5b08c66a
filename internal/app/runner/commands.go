// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/proc"
)

// killTimeout is how long processes may take to end on SIGKILL; one that hangs inside the kernel takes longer.
const killTimeout = 30 * time.Second

// obey does what the watchdog asks. A command that cannot be carried out is answered with the reason.
func (r *runner) obey(c protocol.RunnerCommand) {
	switch {
	case c.Start != nil:
		r.start(c.ID, *c.Start)
	case c.Freeze != nil:
		r.freeze(c.ID, *c.Freeze)
	case c.Thaw != nil:
		r.thaw(c.ID)
	case c.Kill != nil:
		r.kill(c.ID, c.Kill.Grace)
	case c.Input != nil:
		r.input(c.ID, c.Input.Line)
	case c.Pulse != nil:
		pulse(r, c.ID)
	case c.Session != nil:
		r.nonce = c.Session.Nonce
		r.send(protocol.RunnerEvent{Session: &struct{}{}})
	case c.Exit != nil:
		r.end(c.ID, c.Exit.Code)
	}
}

func (r *runner) refuse(id int64, format string, args ...any) {
	r.send(protocol.RunnerEvent{ID: id, Error: fmt.Sprintf(format, args...)})
}

// do has a job done and its result handled in the loop, if the watchdog that asked for it is still there.
func (r *runner) do(id int64, job func(context.Context) error, report func(err error)) bool {
	session := r.session
	queued := r.enqueue(func() {
		err := job(session)
		r.post(func() {
			if session.Err() == nil {
				report(err)
			}
		})
	})
	if !queued {
		r.refuse(id, "too many commands wait for the processes")
	}
	return queued
}

func (r *runner) start(id int64, start protocol.RunnerStart) {
	r.checkEnd()
	if r.agent != nil {
		r.refuse(id, "an agent runs already: process %d of start %d", r.agent.process.PID, r.agent.start)
		return
	}
	if r.starting {
		r.refuse(id, "an agent is being started already")
		return
	}
	env, err := r.environment(start)
	if err != nil {
		r.refuse(id, "%v", err)
		return
	}
	var process *proc.Process
	r.starting = r.do(id, func(context.Context) error {
		err := lay(start.Home, start.Files)
		if err == nil {
			process, err = r.processes.Start(proc.Command{Argv: start.Argv, Env: env, Dir: start.Dir, Input: start.Input, Output: start.Gate})
		}
		// Whether or not the watchdog is still there: its successor learns of this agent.
		r.post(func() {
			r.starting = false
			if err == nil {
				r.started(id, process)
			}
		})
		return err
	}, func(err error) {
		if err != nil {
			_, bad := errors.AsType[*proc.CommandError](err)
			r.send(protocol.RunnerEvent{ID: id, Error: err.Error(), BadCommand: bad})
			return
		}
		r.send(protocol.RunnerEvent{ID: id, Started: &protocol.RunnerStarted{PID: process.PID}})
	})
}

// environment of a start.
func (r *runner) environment(start protocol.RunnerStart) ([]string, error) {
	if start.Gate {
		env, scratch, err := gateEnv(os.Environ(), start.Env)
		r.scratch = append(r.scratch, scratch)
		return env, err
	}
	replyFD := protocol.EnvReplies + "=" + strconv.Itoa(proc.RepliesFD)
	return proc.MergeEnv(os.Environ(), append(slices.Clone(start.Env), replyFD))
}

func (r *runner) started(id int64, process *proc.Process) {
	r.agent = &agent{start: id, process: process, ended: process.Done()}
	understood := func(u protocol.RunnerUnderstood) { r.post(func() { r.send(protocol.RunnerEvent{Understood: &u}) }) }
	if process.Output != nil {
		r.agent.output, r.agent.ended = collect(process, os.Stdout)
		understood = func(protocol.RunnerUnderstood) {} // a gate is not asked
	}
	r.agent.dialogue = listen(process.Replies, understood)
	r.log.Info("Started", "pid", process.PID, "gate", process.Output != nil)
	ended := r.agent.ended
	go func() {
		<-ended
		r.post(r.checkEnd)
	}()
}

// checkEnd tells of the agent's end, once. It is called wherever an end has to be told before something else.
func (r *runner) checkEnd() {
	if r.agent == nil {
		return
	}
	select {
	case <-r.agent.ended:
	default:
		return
	}
	exit := r.agent.process.Exit()
	r.lastExit = &protocol.RunnerExited{Start: r.agent.start, Code: exit.Code, Signal: exit.Signal}
	if r.agent.output != nil {
		r.lastExit.Gate = true
		r.lastExit.Head, r.lastExit.Tail, r.lastExit.OutputSize = r.agent.output.take()
	}
	r.agent = nil
	r.log.Info("Ended", "code", exit.Code, "signal", exit.Signal)
	r.send(protocol.RunnerEvent{Exited: r.lastExit})
}

func (r *runner) freeze(id int64, f protocol.RunnerFreeze) {
	if f.Timeout <= 0 || f.Limit <= 0 {
		r.refuse(id, "freeze: timeout %v and limit %v must be positive", f.Timeout, f.Limit)
		return
	}
	asked, agent := time.Now(), r.agent
	within, cancel := context.WithCancel(r.session)
	var frozen proc.Frozen
	var pause *protocol.Pause
	r.endFreeze()
	queued := r.do(id, func(context.Context) error {
		defer cancel()
		if pause = agent.ask(within, f.Ask); pause != nil {
			asked = asked.Add(pause.Latency)
		}
		within, done := context.WithDeadline(within, asked.Add(f.Timeout))
		defer done()
		var err error
		frozen, err = r.processes.Freeze(within)
		return err
	}, func(err error) {
		r.swept(err)
		if err != nil {
			r.refuse(id, "%v", err)
			return
		}
		r.send(protocol.RunnerEvent{ID: id, Frozen: &protocol.RunnerFrozen{
			Processes: frozen.Processes,
			Pause:     pause,
			Settled:   frozen.Settled,
			Latency:   time.Since(asked),
			Reason:    frozen.Reason,
		}})
	})
	if !queued {
		cancel()
		return
	}
	r.frozen = true
	r.giveUpFreeze = cancel
	r.stopLimit = r.after(f.Limit, func() {
		r.log.Error("The limit of a freeze has passed; letting the agent continue", "limit", f.Limit)
		r.thaw(0)
	})
}

// endFreeze gives up on a freeze that has not settled and forgets its limit.
func (r *runner) endFreeze() {
	if r.giveUpFreeze != nil {
		r.giveUpFreeze()
		r.stopLimit()
	}
}

// thaw answers a command, or with ID 0 the limit of a freeze.
func (r *runner) thaw(id int64) {
	r.endFreeze()
	var newcomers int
	agent := r.agent
	r.frozen = !r.do(id, func(context.Context) error {
		var err error
		newcomers, err = r.processes.Thaw()
		agent.resume()
		return err
	}, func(err error) {
		r.swept(err)
		switch {
		case err == nil:
			r.send(protocol.RunnerEvent{ID: id, Thawed: &protocol.RunnerThawed{ByLimit: id == 0, Newcomers: newcomers}})
		case id == 0:
			r.log.Error("Cannot let the agent continue", "error", err)
		default:
			r.refuse(id, "%v", err)
		}
	}) && r.frozen
}

func (r *runner) kill(id int64, grace time.Duration) {
	if grace < 0 {
		r.refuse(id, "kill: grace %v is negative", grace)
		return
	}
	r.endFreeze()
	scratch, session := r.scratch, r.session
	r.scratch = nil
	r.frozen = !r.do(id, func(session context.Context) error {
		ctx, cancel := context.WithTimeout(session, grace+killTimeout)
		defer cancel()
		err := r.processes.Kill(ctx, grace)
		for _, folder := range scratch {
			_ = os.RemoveAll(folder) // what a gate makes impossible to remove goes with the pod
		}
		return err
	}, func(err error) {
		r.swept(err)
		if err != nil {
			r.refuse(id, "%v", err)
			return
		}
		r.killed(session, id)
	}) && r.frozen
}

// killed answers a kill once the end of what was started has been told: the output of a gate may still be read.
func (r *runner) killed(session context.Context, id int64) {
	told := func() {
		if session.Err() == nil {
			r.checkEnd()
			r.send(protocol.RunnerEvent{ID: id, Killed: &protocol.RunnerKilled{}})
		}
	}
	if r.agent == nil {
		told()
		return
	}
	ended := r.agent.ended
	go func() {
		<-ended
		r.post(told)
	}()
}

func (r *runner) input(id int64, line string) {
	if strings.ContainsAny(line, "\n\r") {
		r.refuse(id, "input: the line holds a line break")
		return
	}
	if r.agent != nil {
		r.agent.dialogue.sent()
	}
	delivered := r.agent != nil && r.agent.process.Input.Write(line)
	r.send(protocol.RunnerEvent{ID: id, Input: &protocol.RunnerInputAck{Delivered: delivered}})
}

// pulse tells whether anything moves.
func pulse(r *runner, id int64) {
	var p proc.Pulse
	r.do(id, func(context.Context) error {
		var err error
		p, err = r.processes.Pulse()
		return err
	}, func(err error) {
		if err != nil {
			r.refuse(id, "%v", err)
			return
		}
		answer := &protocol.RunnerPulse{CPU: p.CPU, Processes: p.Processes, Written: p.Written}
		for _, one := range p.Running {
			if r.agent != nil && one.PID == r.agent.process.PID {
				answer.Age = one.Age
				continue
			}
			answer.Commands = append(answer.Commands, protocol.RunnerProcess{Name: one.Name, Age: one.Age})
		}
		r.send(protocol.RunnerEvent{ID: id, Pulse: answer})
	})
}

func (r *runner) end(id int64, code int) {
	if code < 0 || code > 255 {
		r.refuse(id, "exit: code %d is not between 0 and 255", code)
		return
	}
	r.log.Info("Ending as the watchdog asks", "code", code)
	r.exit(code)
}
