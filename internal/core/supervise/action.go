// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Kind of an act.
type Kind string

// Kinds of acts.
const (
	// Wait until something happens, or until Action.Until.
	Wait Kind = ""
	// Plan asks a model to divide the work, for Action.Request if a user wants another plan.
	Plan Kind = "plan"
	// Consult asks Action.Reviewer to look at the work.
	Consult Kind = "consult"
	// Direct gives the agent another task before the next one, because a reviewer has given a Critical directive.
	Direct Kind = "direct"
	// Polish gives the agent another task, because directives of reviewers are open after the last one.
	Polish Kind = "polish"
	// ApprovePlan notes that a user has approved the plan: Action.Request, with Action.Answer.
	ApprovePlan Kind = "approvePlan"
	// Start the agent for Action.Task.
	Start Kind = "start"
	// Checkpoint takes one, with Action.Trigger.
	Checkpoint Kind = "checkpoint"
	// Gate runs Action.Gate on the tree of the closing checkpoint of Action.Task or, without a task, on that of the delivery head.
	Gate Kind = "gate"
	// Patch checks the patch that has waited longest, and applies it to the workspace if it is valid.
	Patch Kind = "patch"
	// Kill every process of the agent.
	Kill Kind = "kill"
	// Freeze the agent until a user has acted.
	Freeze Kind = "freeze"
	// Thaw the agent after that.
	Thaw Kind = "thaw"
	// Release a held agent after the maximum time.
	Release Kind = "release"
	// Answer a request that needs no other act: Action.Answer.
	Answer Kind = "answer"
	// AddTask gives an agent another task, because gates before the delivery have failed.
	AddTask Kind = "addTask"
	// Park notes that the attempt ends because Action.Question of the agent of Action.Task waits.
	Park Kind = "park"
	// Abort notes that Action.Task cannot be done, and that its changes leave the workspace.
	Abort Kind = "abort"
	// Drop Action.Task, which the orders do not list any more and whose agent has ended.
	Drop Kind = "drop"
	// Rollback restores the workspace as Action.Request says.
	Rollback Kind = "rollback"
	// Review checks base…head under the policy in effect now.
	Review Kind = "review"
	// Push the head.
	Push Kind = "push"
	// Cancel breaks off a review, push or gate in progress.
	Cancel Kind = "cancel"
	// Finish reports Action.Final, waits until it is acknowledged, and ends the pod.
	Finish Kind = "finish"
	// Leave ends without a final report: another attempt continues.
	Leave Kind = "leave"
)

// Action is what to do next.
type Action struct {
	Kind Kind
	// Until is the latest time for the next call of Next, for Wait; zero if only an event can change the answer.
	Until time.Time
	// Task is the name of the task at hand, for Start, Checkpoint, Gate, Patch, Park, Rollback, Abort and Drop; empty for none.
	Task string
	// Gate to run.
	Gate protocol.Gate
	// Question that waits, for Park.
	Question protocol.Question
	// Reviewer to ask, for Consult.
	Reviewer string
	// Trigger of a Checkpoint.
	Trigger string
	// Closes: the Checkpoint closes the task, whose process has ended.
	Closes bool
	// Aborts: the Rollback takes the changes of an aborted task out of the workspace, or the Checkpoint proves that they have left.
	Aborts bool
	// Hold: freeze the agent before reading anything; there may be no time for a second capture.
	Hold bool
	// Requests that the Checkpoint answers.
	Requests []string
	// Reason of a Rollback that steering wants: what is wrong with the agent, in words. For Abort, one of the contract's reasons, and Message says why
	// the task cannot be done.
	Reason, Message string
	// Request for Rollback, Plan and ApprovePlan.
	Request protocol.Request
	// Answer to one request, for Answer and ApprovePlan.
	Answer protocol.RequestReport
	// Final report, for Finish. EndFirst ends the agent's container before intake acknowledges the report: nothing else stops it.
	Final    protocol.FinalReport
	EndFirst bool
}
