// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/checkpoint"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/deliver"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/faults"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/library"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steer"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
	"github.com/tidewaiter/tidewaiter/internal/pod/tools"
)

const (
	// startWithin bounds the runner's answer to a start, and what its other answers take beyond the time they are given.
	startWithin = 30 * time.Second
	// farewell bounds what is reported before a pod that was asked to end is left.
	farewell = 10 * time.Second
	// killWithin bounds the runner's answer to a kill beyond the grace that it gives: it waits 30 s by itself.
	killWithin = 45 * time.Second
	// resistedPause is the pause after processes could not be stopped.
	resistedPause = time.Second
	// endWithin bounds the end of an agent's container whose processes could not be stopped, before it is reported.
	endWithin = 10 * time.Second
	// retryLink is the pause after the runner was out of reach.
	retryLink = 200 * time.Millisecond
	// maxResistance bounds the reason for which processes could not be stopped, in bytes.
	maxResistance = 512
)

// acts are carried out one at a time, each in a goroutine of its own. They change nothing of the loop's state: what came of
// an act is told by its event.
type acts struct {
	attempt  *attempt
	services *services
	agent    *runnerlink.Runner // nil without an agent
	teller   *teller
	steering *steer.Service // nil without an agent
	// modelsURL, toolsURL and proxyURL are where the agent finds them; empty where it has none.
	modelsURL, toolsURL, proxyURL string

	ending chan struct{} // closed when the pod is asked to end
	// spoilt: a gate may have changed the workspace since the last checkpoint, and nothing was put back.
	spoilt bool
	// gateExits are the ends of processes while a gate runs.
	gateExits chan protocol.RunnerExited
	// library is the knowledge of the team that was read last.
	library library.Library
	// away: the model of reviewers has not answered when one asked it last.
	away bool
}

func (x *acts) log() *slog.Logger { return x.attempt.options.Log }

// start pins the policy for the task, and starts the agent. One that is corrected goes on under the policy that it began with.
func (x *acts) start(ctx context.Context, o protocol.Orders, task, correction string) (supervise.Event, error) {
	if err := x.mend(ctx); err != nil { // before the agent works: afterwards its work would go back
		return x.unstarted(ctx, task, err)
	}
	begun := journal.Record{TaskBegun: &journal.TaskBegun{Name: task, Policy: o.Policy, Plan: o.Plan, From: x.attempt.journal.State().Promoted.Tree}}
	if protocol.Extra(task) && x.attempt.journal.State().Complements(o) { // work that is done does not wait for an answer
		begun.TaskBegun.Policy.Questions = o.Policy.Questions.WithoutWaiting()
	}
	switch {
	case correction != "" && sessions(x.attempt.options.Runtimes, o.Agent.Runtime):
		begun = journal.Record{TaskCorrected: &journal.TaskCorrected{Name: task, Text: correction}}
	case correction != "":
		begun = journal.Record{TaskRestarted: &journal.TaskRestarted{Name: task, Text: correction}}
	}
	have := x.attempt.journal.State().Tasks[task]
	noted := have.Restarts() || have.Begun && !have.Ended && have.Start == 0 && have.Correction != "" // the watchdog ended after it had noted it
	pinned, plan := have.Policy, have.Plan
	if !noted && begun.TaskBegun != nil {
		pinned, plan = o.Policy, o.Plan
	}
	learned, err := x.learn(ctx, o, task, pinned, plan)
	if err != nil {
		return x.unstarted(ctx, task, err)
	}
	if begun.TaskBegun != nil {
		begun.TaskBegun.Knowledge = toldOf(learned)
	}
	if !noted {
		if err := x.note(begun, "task begun"); err != nil {
			return nil, err
		}
		have = x.attempt.journal.State().Tasks[task]
	}
	how, err := x.launch(o, task, have, x.remains(ctx, o, have), learned.Lines)
	if err != nil {
		return supervise.NotStarted{Message: fmt.Sprintf("task %q: %v", task, err)}, nil
	}
	if begins(have) {
		x.steering.Anew()
	}
	if have.Correction != "" && have.Continued == "" { // it says all that its work is told of
		x.steering.Post(func(b *notice.Board) bool {
			b.Forget(x.attempt.journal.State().Sequence)
			return true
		})
	}
	within, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := x.teller.writer.flush(within); err != nil {
		return x.unreachable(ctx, err)
	}
	id, started, err := x.agent.Start(within, how)
	if refused, is := errors.AsType[*runnerlink.RefusedError](err); is {
		return supervise.NotStarted{Message: fmt.Sprintf("task %q: %s", task, refused.Reason)}, nil
	}
	if err != nil {
		return x.unreachable(ctx, err)
	}
	if err := x.attempt.options.Probe.After("agent launched"); err != nil {
		return nil, err
	}
	// A crash before this leaves them Pending: the agent gets them once more.
	x.services.directives.Instructed(func(mark string) bool { return shows(how, mark) })
	x.log().InfoContext(ctx, "Agent started", "task", task, "pid", started.PID, "policy", have.Policy.Hash, "corrections", have.Corrections)
	return supervise.Started{Rules: supervise.RulesOf(have.Policy)},
		x.note(journal.Record{TaskStarted: &journal.TaskStarted{Name: task, Start: id, Session: sessions(x.attempt.options.Runtimes, o.Agent.Runtime)}}, "task started")
}

// unstarted says what keeps an agent from its start although its command is not wrong: it is tried again.
func (x *acts) unstarted(ctx context.Context, task string, err error) (supervise.Event, error) {
	switch {
	case steps.Fatal(err):
		return nil, err
	case errors.Is(err, runnerlink.ErrDisconnected), errors.Is(err, runnerlink.ErrLost):
		return x.unreachable(ctx, err)
	}
	fault := faults.Of(err, protocol.ReasonCheckpointFailed)
	x.log().ErrorContext(ctx, "Cannot start the agent", "task", task, "reason", fault.Reason, "error", err.Error())
	return supervise.Missed{Action: supervise.Action{Kind: supervise.Start, Task: task}, Fault: fault, Unbegun: !x.attempt.journal.State().Tasks[task].Begun}, nil
}

// begins says whether the agent begins a conversation: it continues no session.
func begins(have journal.Task) bool { return !have.Interrupted && have.Correction == "" }

// park notes that the attempt ends because a question waits.
func (x *acts) park(ctx context.Context, task string, q protocol.Question) (supervise.Event, error) {
	x.log().InfoContext(ctx, "Ending the pod: the agent waits for the answer to its question", "task", task, "question", q.ID)
	return supervise.ParkedNow{}, x.note(journal.Record{TaskParked: &journal.TaskParked{Name: task}}, "task parked")
}

// drop forgets that a task was begun.
func (x *acts) drop(ctx context.Context, task string) (supervise.Event, error) {
	x.log().InfoContext(ctx, "Dropping the task: the orders do not list it any more", "task", task)
	return supervise.Dropped{Task: task}, x.note(journal.Record{TaskDropped: &journal.TaskDropped{Name: task}}, "task dropped")
}

// abort notes that a task cannot be done, and that its changes leave the workspace.
func (x *acts) abort(ctx context.Context, a supervise.Action) (supervise.Event, error) {
	j := x.attempt.journal.State()
	aborted := journal.TaskAborted{Name: a.Task, ID: fmt.Sprintf("%sabort/%d/%d", protocol.SteeringRequests, j.Epoch, j.Sequence),
		Reason: a.Reason, Message: plain.CutBytes(a.Message, faults.MaxMessage)}
	x.log().WarnContext(ctx, "Aborting the task: it cannot be done", "task", a.Task, "reason", a.Reason, "message", a.Message)
	return supervise.GivenUp{Task: a.Task, ID: aborted.ID}, x.note(journal.Record{TaskAborted: &aborted}, "task aborted")
}

// note journals a record. A crash may come before it and after it.
func (x *acts) note(r journal.Record, step string) error {
	if err := x.attempt.options.Probe.After("before " + step); err != nil {
		return err
	}
	if err := x.attempt.journal.Note(r); err != nil {
		return err
	}
	return x.attempt.options.Probe.After(step)
}

// remains tells an agent that was interrupted which of its files are not there any more: those in which the workspace that it left differs from the one
// that its new container began with.
func (x *acts) remains(ctx context.Context, o protocol.Orders, have journal.Task) string {
	j := x.attempt.journal.State()
	if !have.Interrupted || have.Correction != "" || j.Workspace.Tree == j.Start {
		return ""
	}
	left, err := objects.ParseID(j.Workspace.Tree)
	if err != nil {
		return ""
	}
	now, err := objects.ParseID(j.Start)
	if err != nil {
		return ""
	}
	changes, err := x.services.repository.Diff(ctx, left, now)
	if err != nil {
		x.log().WarnContext(ctx, "Cannot tell the agent which of its files went back", "error", err.Error())
		return ""
	}
	return notice.Remains(naming.Checkpoint(o.Feature.Name, j.Chain.Sequence), changes)
}

// reply tells an agent that continues its session what became of its question: the answer, if it has not heard it. After a
// pod that ended for the question, reply repeats an answer: the process that got it may have ended before it read it. Without an answer the agent has to
// guess, if its pod had ended for the question, or to ask again.
func (x *acts) reply(have journal.Task) string {
	if have.Asked == nil || !have.Interrupted || have.Correction != "" {
		return ""
	}
	answer := x.services.directives.Reply(have.Asked.ID, have.Parked)
	switch {
	case answer != "":
		return answer
	case have.Parked:
		return notice.Unanswered(*have.Asked)
	case x.services.directives.Waits(have.Asked.ID) && !have.Policy.Questions.Guess(have.Asked.At, x.attempt.options.Now()):
		return notice.CutOff(*have.Asked)
	}
	return ""
}

// factsOf are what the agent is told at the start of a task, as orders and journal have it.
func factsOf(o protocol.Orders, j journal.State, task, bounds string) instructions.Facts {
	works := j.Works()
	return instructions.Of(o, task, bounds, func(name string) instructions.Task {
		have := j.Tasks[name]
		is := instructions.Task{Done: have.Done, Aborted: have.Aborted, Work: works[name]}
		if is.Aborted && is.Work != nil {
			is.Message = have.Aborting.Message
		}
		return is
	})
}

// launch is how the agent is started for a task.
func (x *acts) launch(o protocol.Orders, task string, have journal.Task, remains string, learned []string) (protocol.RunnerStart, error) {
	adapter := x.attempt.options.adapter(o.Agent.Runtime)
	if adapter == nil {
		return protocol.RunnerStart{}, fmt.Errorf("this version cannot start the runtime %q: choose another spec.agent.runtime", o.Agent.Runtime)
	}
	var t protocol.Task
	for _, have := range o.Tasks {
		if have.Name == task {
			t = have
		}
	}
	env := slices.Concat(o.Agent.Env, runtimes.ProxyEnv(x.proxyURL), []string{protocol.EnvModels + "=" + x.modelsURL})
	if x.toolsURL != "" {
		env = append(env, protocol.EnvMCP+"="+x.toolsURL)
	}
	model := ""
	if i := slices.IndexFunc(have.Policy.Models, func(r policy.ModelRef) bool { return r.Role == policy.RolePrimary }); i >= 0 {
		model = have.Policy.Models[i].Model
	}
	bounds := notice.Bounds(have.Plan, have.Policy, o.Agent.Role, o.Locks)
	facts := factsOf(o, x.attempt.journal.State(), task, bounds)
	facts.Knowledge = learned
	if begins(have) { // a conversation that continues has its directives, or gets them
		facts.Directives = x.services.directives.Given().Instructions()
	}
	how := adapter.Launch(runtimes.Task{Facts: facts, Remains: remains, Reply: x.reply(have), NoQuestions: have.Policy.Questions.Asking == policy.AskOff, Command: o.Agent.Command, Args: o.Agent.Args, Home: x.attempt.options.Paths.Home,
		Prompt: o.Prompt, Instructions: t.Instructions, Model: model, Window: x.attempt.options.Window, Models: x.modelsURL, Tools: x.toolsURL, ReadOnly: o.Mode == policy.ModeDeterministic, Interrupted: have.Interrupted, Correction: have.Correction, Before: have.RestartText, Env: append(env,
			protocol.EnvFeature+"="+o.Feature.Namespace+"/"+o.Feature.Name,
			protocol.EnvAttempt+"="+strconv.FormatInt(o.Attempt, 10),
			protocol.EnvTask+"="+t.Name,
			protocol.EnvPrompt+"="+o.Prompt,
			instructionsVariable(have.RestartText, strings.TrimSpace(t.Instructions+"\n\n"+bounds)))})
	start := protocol.RunnerStart{Argv: how.Argv, Env: how.Env, Dir: x.attempt.options.Paths.Workspace, Input: how.Input}
	if len(how.Files) > 0 {
		start.Files, start.Home = how.Files, x.attempt.options.Paths.Home
	}
	return start, nil
}

// shows says whether a text stands in what a process begins with.
func shows(s protocol.RunnerStart, text string) bool {
	has := func(x string) bool { return strings.Contains(x, text) }
	return slices.ContainsFunc(s.Argv, has) || slices.ContainsFunc(s.Env, has) || s.Input != nil && has(*s.Input) || slices.ContainsFunc(slices.Collect(maps.Values(s.Files)), has)
}

// instructionsVariable is the variable with which an agent gets its instructions, after a text for its restart. The text is cut if both do not fit.
func instructionsVariable(restart, text string) string {
	const name, between = protocol.EnvInstructions + "=", "\n\n"
	restart = plain.CutBytes(restart, protocol.MaxArgumentBytes-len(name)-len(between)-len(text))
	return name + strings.TrimSpace(restart+between+text)
}

// checkpoint takes one, and tells the agent while it runs.
func (x *acts) checkpoint(ctx context.Context, a supervise.Action, o checkpoint.Occasion, running bool, s streak) (supervise.Event, error) {
	t, err := x.services.checkpoint.Take(ctx, o)
	if err != nil {
		e, err := x.missed(ctx, a, err)
		if m, is := e.(supervise.Missed); is && running {
			x.teller.failure(s, m.Fault, x.attempt.options.Now())
		}
		return e, err
	}
	x.steering.Captured(t.Snapshot.Tree.String(), string(t.Judgement.Verdict))
	if running {
		x.teller.violations(ctx, o.Orders.Feature.Name, t)
	}
	if running && !t.Snapshot.Settled {
		fault := protocol.Fault{Reason: protocol.ReasonCheckpointFailed, Message: supervise.Unsettled(t.Snapshot.Reason)}
		x.teller.failure(s, fault, x.attempt.options.Now())
	}
	if err := x.services.retain.Shed(ctx, o.Orders); err != nil {
		return nil, err
	}
	j := x.attempt.journal.State()
	e := supervise.Taken{Action: a, Settled: t.Snapshot.Settled, Unsettled: t.Snapshot.Reason, TreeVerdict: t.Judgement.Verdict,
		Head: j.Head().Commit, HeadTree: j.Head().Tree, Changed: j.Promoted.Tree != j.Base.Tree, Objection: checkpoint.Objection(t.Judgement),
		Place: supervise.Place{Files: int64(len(t.Snapshot.Changes)), Directory: checkpoint.Directory(t.Snapshot.Changes)}}
	e.Completes = t.Intent != nil && t.Intent.Completes != ""
	if e.Completes {
		e.Gates, e.Tree, e.Results = j.Orders.GatesOf(o.Task), j.Workspace.Tree, j.Results
	}
	e.Aborted = j.Tasks[o.Task].Aborted
	if t.Intent != nil {
		name := naming.Checkpoint(o.Orders.Feature.Name, t.Intent.Sequence)
		e.Told = notice.Correction(name, t.Judgement.Violations, t.Back)
		if a.Closes {
			x.steering.Post(func(b *notice.Board) bool {
				b.Asked(t.Intent.Sequence, name, notice.Critical(t.Judgement.Violations))
				return true
			})
		}
	}
	if task := j.Tasks[o.Task]; a.Closes && t.Judgement.Verdict == protocol.Valid && task.Empty(j.Promoted.Tree) {
		name := naming.Checkpoint(o.Orders.Feature.Name, task.WentBack.Sequence)
		e.Told = notice.Undone(name, task.WentBack.Objection)
		e.Objection = plain.CutBytes(fmt.Sprintf("work of the agent went back at checkpoint %s, and the agent did nothing instead: %s", name, task.WentBack.Objection), faults.MaxMessage)
	}
	return e, nil
}

// missed says what a checkpoint failed of. Those who asked for it are told.
func (x *acts) missed(ctx context.Context, a supervise.Action, err error) (supervise.Event, error) {
	if steps.Fatal(err) {
		return nil, err
	}
	fault := faults.Of(err, protocol.ReasonCheckpointFailed)
	x.log().ErrorContext(ctx, "Checkpoint failed", "trigger", a.Trigger, "reason", fault.Reason, "error", err.Error())
	if err := x.attempt.reports.Failed(protocol.CheckpointFailure{Trigger: a.Trigger, Reason: fault.Reason, Message: fault.Message}); err != nil {
		x.log().WarnContext(ctx, "Cannot report the failure", "error", err.Error())
	}
	requests := a.Requests
	if x.attempt.journal.State().Pending != nil { // completed before the next checkpoint, and answered then
		requests = nil
	}
	for _, id := range requests {
		if err := x.attempt.reports.Answer(protocol.RequestReport{ID: id, Message: "the checkpoint failed: " + fault.Message}); err != nil {
			x.log().WarnContext(ctx, "Cannot report the failure", "request", id, "error", err.Error())
		}
	}
	return supervise.Missed{Action: a, Fault: fault}, nil
}

// rollback takes the workspace back as a person asked, and tells the agent while it runs.
func (x *acts) rollback(ctx context.Context, a supervise.Action, o checkpoint.Occasion, running bool) (supervise.Event, error) {
	o.Reason = a.Reason
	n, refused, err := x.services.checkpoint.RollBack(ctx, o, a.Request)
	if n != nil && running && !steps.Fatal(err) {
		x.teller.rollback(*n, a.Trigger == protocol.TriggerSteering)
	}
	e := supervise.RolledBack{ID: a.Request.ID, Refusal: x.attempt.journal.State().Requests[a.Request.ID].Message}
	switch {
	case refused:
		return e, err
	case err != nil:
		return x.missed(ctx, a, err)
	}
	j := x.attempt.journal.State()
	// One that was refused before a crash has its result already.
	e.Went, e.Head, e.HeadTree, e.Changed = j.Requests[a.Request.ID].OK, j.Head().Commit, j.Head().Tree, j.Promoted.Tree != j.Base.Tree
	return e, nil
}

// patch judges a patch, and lays it into the workspace if it is valid. The failure is for the agent.
func (x *acts) patch(ctx context.Context, a supervise.Action, o checkpoint.Occasion, p checkpoint.Patch) (result tools.PatchResult, e supervise.Event, failure, err error) {
	result, err = x.services.checkpoint.Patch(ctx, o, p)
	failure = err
	if err != nil {
		if !steps.Fatal(err) {
			err = errors.Join(errors.New("the watchdog could not check the patch: send it again with the same operation_id"), err)
			failure = err
		}
		e, err = x.missed(ctx, a, err)
		return result, e, failure, err
	}
	x.log().InfoContext(ctx, "Patch", "operation", result.OperationID, "status", result.Status, "checkpoint", result.Checkpoint,
		"violations", len(result.Violations))
	j := x.attempt.journal.State()
	if result.Status == tools.Applied {
		x.steering.Captured(j.Workspace.Tree, string(j.Workspace.TreeVerdict))
	}
	return result, supervise.Laid{Head: j.Head().Commit, HeadTree: j.Head().Tree, Changed: j.Promoted.Tree != j.Base.Tree}, nil, nil
}

// review judges what is to be delivered under the policy in effect now.
func (x *acts) review(ctx context.Context, o protocol.Orders) (supervise.Event, error) {
	e, err := x.services.delivery.Review(ctx, o)
	switch {
	case steps.Fatal(err):
		return nil, err
	case ctx.Err() != nil:
		return supervise.CalledOff{}, nil //nolint:nilerr // an act that was called off is an event, not an error
	case err != nil:
		return supervise.Undelivered{Fault: faults.Of(err, protocol.ReasonCheckpointFailed)}, nil
	}
	return e, nil
}

// push delivers the head; never by force. It may have been done before.
func (x *acts) push(ctx context.Context, o protocol.Orders) (supervise.Event, error) {
	head, err := x.services.delivery.Push(ctx, o)
	var refused *deliver.NotAllowedError
	switch {
	case err == nil: // called off too late, perhaps: what is done is told
		x.log().InfoContext(ctx, "Pushed", "branch", o.Delivery.Branch, "commit", head)
		return supervise.Pushed{Commit: head}, nil
	case steps.Fatal(err):
		return nil, err
	case ctx.Err() != nil:
		return supervise.CalledOff{}, nil //nolint:nilerr // an act that was called off is an event, not an error
	case errors.As(err, &refused):
		x.log().WarnContext(ctx, "The policy does not allow the delivery", "branch", o.Delivery.Branch, "reason", refused.Fault.Reason)
		return supervise.Refused{Fault: refused.Fault}, nil
	case git.Definite(err):
		x.log().WarnContext(ctx, "The server refuses the branch", "branch", o.Delivery.Branch, "error", err.Error())
		fault := faults.Of(err, protocol.ReasonPushFailed)
		fault.Message = plain.CutBytes(fault.Message+"; the watchdog keeps the work as commit "+head, faults.MaxMessage)
		return supervise.Refused{Fault: fault, Overtaken: errors.Is(err, git.ErrConflict) && x.overtaken(ctx, o)}, nil
	}
	x.log().WarnContext(ctx, "Push failed", "branch", o.Delivery.Branch, "error", err.Error())
	return supervise.Undelivered{Fault: faults.Of(err, protocol.ReasonPushFailed)}, nil
}

// overtaken says whether another review makes a commit that the server takes.
func (x *acts) overtaken(ctx context.Context, o protocol.Orders) bool {
	is, err := x.services.delivery.Overtaken(ctx, o)
	switch {
	case err != nil:
		x.log().WarnContext(ctx, "Cannot see whether the branch has an earlier commit of the Feature", "branch", o.Delivery.Branch, "error", err.Error())
	case is:
		x.log().InfoContext(ctx, "The branch has an earlier commit of the Feature since the review: reviewing again", "branch", o.Delivery.Branch)
	}
	return is && err == nil
}
