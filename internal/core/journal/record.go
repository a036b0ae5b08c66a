// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package journal is the memory of a Feature's attempts on the trusted volume: append-only records, and the state that results from them. A
// record is one JSON object a line, which names the line before it. The watchdog journals every important effect before it happens. After a
// crash between two effects it compares journal and world and repairs the difference.
package journal

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Version of the records that are written. Records of a later version are refused: what they mean is not known.
const Version = 1

// Record is one line. Exactly one of the pointers is set.
type Record struct {
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
	// Previous is the Sum of the line before; empty in the first line.
	Previous string `json:"previous"`
	// Sum of this line, SHA-256 in hexadecimal, as it was read; Encode computes it.
	Sum string `json:"-"`

	// Attempt: an attempt took over the volume.
	Attempt *Attempt `json:"attempt,omitempty"`
	// Orders changed.
	Orders *protocol.Orders `json:"orders,omitempty"`
	// Base was fetched; there is one for ever.
	Base *Base `json:"base,omitempty"`
	// Planned: a model has divided the work, or could not.
	Planned *Planned `json:"planned,omitempty"`
	// PlanMissing: a user wanted another plan, and no model has proposed one that can be used.
	PlanMissing *PlanMissing `json:"planMissing,omitempty"`
	// PlanApproved: a user has approved the plan.
	PlanApproved *PlanApproved `json:"planApproved,omitempty"`
	// TaskBegun: the agent is about to be started.
	TaskBegun *TaskBegun `json:"taskBegun,omitempty"`
	// TaskCorrected: the agent is about to be started again in its session.
	TaskCorrected *TaskCorrected `json:"taskCorrected,omitempty"`
	// TaskRestarted: the watchdog is about to end the agent, and to start it again from the beginning of its task.
	TaskRestarted *TaskRestarted `json:"taskRestarted,omitempty"`
	// TaskStarted: the runner has started it.
	TaskStarted *TaskStarted `json:"taskStarted,omitempty"`
	// TaskRejected: the task has failed while the agent worked on it.
	TaskRejected *TaskRejected `json:"taskRejected,omitempty"`
	// TaskParked: the watchdog is about to end the agent and its pod, because its question waits.
	TaskParked *TaskParked `json:"taskParked,omitempty"`
	// TaskEnded: the agent's process has ended.
	TaskEnded *TaskEnded `json:"taskEnded,omitempty"`
	// TaskProving: the attempt is about to end, because the gates of a task run in pods of their own.
	TaskProving *TaskProving `json:"taskProving,omitempty"`
	// GateRan: a gate of a task has run.
	GateRan *GateRan `json:"gateRan,omitempty"`
	// DeliveryGateRan: a gate has run on the tree of the delivery head, in a pod where no agent has been.
	DeliveryGateRan *gates.Result `json:"deliveryGateRan,omitempty"`
	// TaskAdded: gates before the delivery have failed, a reviewer has given a Critical directive, or directives of reviewers are open after the last task,
	// and an agent gets another task.
	TaskAdded *TaskAdded `json:"taskAdded,omitempty"`
	// TaskDropped: the orders do not list the task any more, and its agent has ended.
	TaskDropped *TaskDropped `json:"taskDropped,omitempty"`
	// TaskAborted: the task cannot be done, and the watchdog is about to take its changes out of the workspace.
	TaskAborted *TaskAborted `json:"taskAborted,omitempty"`
	// Reviewed: a reviewer has looked at the work, or was skipped.
	Reviewed *Reviewed `json:"reviewed,omitempty"`
	// Calls: the agent's model calls have begun to fail, fail for another reason, or succeed again.
	Calls *Calls `json:"calls,omitempty"`
	// TaskCompleted: the agent says by a tool that the task is done.
	TaskCompleted *TaskCompleted `json:"taskCompleted,omitempty"`
	// Asked: the agent has a question.
	Asked *protocol.Question `json:"asked,omitempty"`
	// Operation of the agent was refused. Those that were done are part of their Intent.
	Operation *Operation `json:"operation,omitempty"`
	// Intent: a checkpoint is about to be acted on.
	Intent *Intent `json:"intent,omitempty"`
	// Withheld: the watchdog could not change the workspace as the intent says, so it promotes nothing of it.
	Withheld *Withheld `json:"withheld,omitempty"`
	// Done: that checkpoint was acted on and its report is in the spool.
	Done *Done `json:"done,omitempty"`
	// Told: the agent was sent a message.
	Told *Told `json:"told,omitempty"`
	// Steered: something was done about an agent that is in trouble, or the trouble is over.
	Steered *protocol.SteeringStep `json:"steered,omitempty"`
	// Directed: directives came, or came further.
	Directed *Directed `json:"directed,omitempty"`
	// Acknowledged: the agent has understood that it broke a rule.
	Acknowledged *protocol.Acknowledgment `json:"acknowledged,omitempty"`
	// Request has its result.
	Request *protocol.RequestReport `json:"request,omitempty"`
	// Breaker opened or was reset.
	Breaker *Breaker `json:"breaker,omitempty"`
	// Dropped: checkpoints lost their content.
	Dropped *Dropped `json:"dropped,omitempty"`
	// Squashed: the delivery became one commit on the base.
	Squashed *Squashed `json:"squashed,omitempty"`
	// KnowledgeCommitted: the delivery has a last commit with the documents of reviewers.
	KnowledgeCommitted *KnowledgeCommitted `json:"knowledgeCommitted,omitempty"`
	// Delivered: the server has taken a commit.
	Delivered *Delivered `json:"delivered,omitempty"`
	// Final: the attempt ended with this report.
	Final *protocol.FinalReport `json:"final,omitempty"`
	// Snapshot: the records before it are in segments of their own.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
}

// Attempt that took over the volume; epochs only rise.
type Attempt struct {
	Epoch int64  `json:"epoch"`
	Run   string `json:"run"`
}

// Base is the commit that the Feature started from, and its tree.
type Base struct {
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
}

// Planned is the plan that a model has made. The newest one counts.
type Planned struct {
	// Plan is nil if there is none; then Message says why, and the tasks of the orders stay as they are.
	Plan    *protocol.Proposal `json:"plan,omitempty"`
	Message string             `json:"message,omitempty"`
	// Reasons are why the model divides the work like that; empty if it did not say, and in records of earlier versions.
	Reasons string `json:"reasons,omitempty"`
	// Request of a user or of the assessor for it, by its id; empty for the first plan.
	Request string `json:"request,omitempty"`
}

// PlanMissing is for people: the plan before it counts.
type PlanMissing struct {
	// Request of the user or the assessor, by its id. Message says why there is no other plan.
	Request string `json:"request"`
	Message string `json:"message"`
}

// PlanApproved names the approved plan by its hash (core/plans.Hash).
type PlanApproved struct {
	Hash string `json:"hash"`
}

// TaskBegun pins the plan and the policy of the task.
type TaskBegun struct {
	Name   string           `json:"name"`
	Policy policy.Effective `json:"policy"`
	Plan   protocol.Plan    `json:"plan"`
	// From is the tree that is promoted by then.
	From string `json:"from,omitempty"`
	// Knowledge of the team that the agent gets, for users; nil where there is none or the policy gives none.
	Knowledge *Knowledge `json:"knowledge,omitempty"`
}

// Knowledge says which documents below docs/knowledge the agent of a task gets.
type Knowledge struct {
	// Given and Left are how many documents it gets, and how many it does not get.
	Given int `json:"given"`
	Left  int `json:"left,omitempty"`
	// GivenPaths are the first that it gets, and LeftOut the first that it does not get, each with the reason.
	GivenPaths []string `json:"givenPaths,omitempty"`
	LeftOut    []string `json:"leftOut,omitempty"`
}

// GateRan is the result of a gate on the tree of the closing checkpoint. When each gate of the task has passed on it, the task is done.
type GateRan struct {
	// Task is its name.
	Task string `json:"task"`
	// Start is the runner's last one of the gate, which distinguishes its exit from an agent's; 0 if the runner started nothing.
	Start  int64        `json:"start,omitempty"`
	Result gates.Result `json:"result"`
}

// TaskAdded is a task that the orders of the user do not list.
type TaskAdded struct {
	Name string `json:"name"`
	// Text is its instructions: which gates failed, or that open directives are to be addressed.
	Text string `json:"text"`
	// Directives that are to be addressed, by their ids; empty after gates.
	Directives []string `json:"directives,omitempty"`
	// After is the listed task that it follows; empty if it comes after all of them.
	After string `json:"after,omitempty"`
}

// Polishes says whether the agent addresses directives of reviewers in the task, after the work is done.
func (t TaskAdded) Polishes() bool { return protocol.Polishes(t.Name) }

// TaskCorrected: the agent ended its task cleanly and its work was not valid, or it ended with a turn without tools. The watchdog starts it
// again, in its session, and says why.
type TaskCorrected struct {
	Name string `json:"name"`
	// ID of the act, if it ended with a turn without tools.
	ID string `json:"id,omitempty"`
	// Text for the agent.
	Text string `json:"text"`
}

// TaskRestarted: steering has not helped the agent. The watchdog ends it, restores the last valid checkpoint, and starts the agent again in
// a new session. Or a gate has failed, and the agent has no session in which it could correct its work: then the workspace stays as it is.
type TaskRestarted struct {
	Name string `json:"name"`
	// ID of the act, and of the rollback that belongs to it; empty after a gate.
	ID string `json:"id"`
	// Text for the new agent, before its task.
	Text string `json:"text"`
}

// TaskStarted names the runner's start, which distinguishes an exit from that of an earlier task.
type TaskStarted struct {
	Name  string `json:"name"`
	Start int64  `json:"start"`
	// Session: the agent has a session that another start can continue.
	Session bool `json:"session,omitempty"`
}

// TaskRejected: the gateway rejects the model's answer, or steering has no way left, and the task cannot be done. The watchdog ends the agent.
type TaskRejected struct {
	Name string `json:"name"`
	// Reason is one of the contract's; empty for AnswerRejected, as it was before there was another.
	Reason string `json:"reason,omitempty"`
	// Message says why.
	Message string `json:"message"`
}

// TaskParked: the attempt ends because the question of the task's agent waits. The answer starts the next attempt.
type TaskParked struct {
	Name string `json:"name"`
}

// TaskProving: each gate of the task runs in a pod of its own. Their results and the corrections after them count in later attempts too.
type TaskProving struct {
	Name string `json:"name"`
}

// TaskEnded says how the agent's process ended.
type TaskEnded struct {
	Name     string `json:"name"`
	ExitCode int    `json:"exitCode"`
	// Stopped: the watchdog had orders or a signal to end it, or the orders dropped its task.
	Stopped bool `json:"stopped,omitempty"`
	// Failure of its latest model calls, if it ended because of them; nil otherwise.
	Failure *protocol.Failure `json:"failure,omitempty"`
}

// TaskDropped is a task that counts as not begun: should the orders list it again, its agent starts as if for the first time.
type TaskDropped struct {
	Name string `json:"name"`
}

// TaskAborted is a task that cannot be done. The watchdog captures the workspace and restores the tree from the beginning of the task. An Intent
// that Aborts the task follows.
type TaskAborted struct {
	Name string `json:"name"`
	// ID of the rollback that belongs to it.
	ID string `json:"id"`
	// Reason is one of the contract's. Message says why.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Calls says whether the model calls of a task's agent fail or succeed.
type Calls struct {
	Name string `json:"name"`
	// Failure of the calls since the last good answer; nil if the last one was good.
	Failure *protocol.Failure `json:"failure,omitempty"`
}

// TaskCompleted is the agent's statement that a task is done.
type TaskCompleted struct {
	Name string `json:"name"`
	// Summary in the agent's words.
	Summary string `json:"summary,omitempty"`
}

// Operation is one patch that an agent in Deterministic mode sent, and the answer. An agent that sends it again gets the same answer, also
// after a restart.
type Operation struct {
	// ID that the agent gave it, unique within its task.
	ID   string `json:"id"`
	Task string `json:"task"`
	// Patch is the SHA-256 of the patch, in hexadecimal.
	Patch string `json:"patch"`
	// Answer as it was given, JSON.
	Answer string `json:"answer"`
}

// Intent is everything that acting on a checkpoint needs, so that it can be done again from here.
type Intent struct {
	Sequence int64 `json:"sequence"`
	// Commit of the checkpoint in the chain and OldChain before it; equal when the tree did not change.
	Commit   string `json:"commit"`
	OldChain string `json:"oldChain,omitempty"`
	Tree     string `json:"tree"`
	// Delivery commit and OldDelivery before it; equal when nothing is promoted.
	Delivery    string `json:"delivery"`
	OldDelivery string `json:"oldDelivery,omitempty"`
	// Promotes is the tree of Delivery if that is only the valid part of Tree; empty if it is all of Tree.
	Promotes string `json:"promotes,omitempty"`
	// Restore is the whole tree of the workspace after it went back; empty when it stays. RestorePaths are the only changed paths if the
	// restore is partial; they are bytes because not every path is text.
	Restore      string   `json:"restore,omitempty"`
	RestorePaths [][]byte `json:"restorePaths,omitempty"`
	// Chosen: a user asked for Restore, so attempts start from it until the next promotion.
	Chosen bool `json:"chosen,omitempty"`
	// TakesBack: work of the agent goes back because it is not valid.
	TakesBack bool `json:"takesBack,omitempty"`
	// Completes names the task that this checkpoint completes, once its gates have passed.
	Completes string `json:"completes,omitempty"`
	// Aborts names the aborted task whose changes are neither in the workspace nor in what is delivered any more.
	Aborts string `json:"aborts,omitempty"`
	// Judgement identifies verdict and violations, and is empty when there is nothing to object to; TreeVerdict is the
	// verdict itself. They tell whether the next checkpoint has anything new to say.
	Judgement   string           `json:"judgement"`
	TreeVerdict protocol.Verdict `json:"standing"`
	// Objection is the worst violation in words, when there is one.
	Objection string `json:"objection,omitempty"`
	// Answers to the requests that led to it.
	Answers []protocol.RequestReport `json:"answers,omitempty"`
	// Operation that it carries out; nil if it is not a patch of an agent.
	Operation *Operation `json:"operation,omitempty"`
	// Report that describes it.
	Report protocol.CheckpointReport `json:"report"`
	// Withheld is why the watchdog carries it out without its restore and its promotion; empty if it does not.
	Withheld string `json:"-"`
}

// Promoted is the tree of the delivery commit that the intent makes.
func (i Intent) Promoted() string {
	if i.Promotes != "" {
		return i.Promotes
	}
	return i.Tree
}

// Withheld says that the watchdog could not change the workspace as the intent with the same sequence says. The watchdog then carries out
// the intent without its restore and its promotion: it holds the checkpoint.
type Withheld struct {
	Sequence int64 `json:"sequence"`
	// Reason in words.
	Reason string `json:"reason"`
	// Answers to the requests that led to it, and the Operation as refused; they replace the intent's.
	Answers   []protocol.RequestReport `json:"answers,omitempty"`
	Operation *Operation               `json:"operation,omitempty"`
}

// without is the intent as it is acted on when it is withheld.
func (i Intent) without(w Withheld) Intent {
	i.Withheld, i.Answers, i.Operation = w.Reason, w.Answers, w.Operation
	i.Delivery, i.Promotes, i.Completes, i.Aborts = i.OldDelivery, "", "", ""
	i.Restore, i.RestorePaths, i.Chosen = "", nil, false
	i.Report.Action, i.Report.DeliveryCommit = protocol.ActionHeld, ""
	i.Report.Settled, i.Report.UnsettledReason, i.Report.Rollback = false, w.Reason, nil
	return i
}

// Done ends the intent with the same sequence.
type Done struct {
	Sequence int64 `json:"sequence"`
}

// Told is a message to the agent.
type Told struct {
	// Checkpoint that it is about; 0 for none.
	Checkpoint int64 `json:"checkpoint,omitempty"`
	// Delivered says that the agent's input has accepted it; it is unknown whether the agent read it.
	Delivered bool `json:"delivered"`
	// Text of the message, cut if it is long.
	Text string `json:"text"`
}

// Breaker opened or was reset.
type Breaker struct {
	Open bool `json:"open"`
	// Failures in a row and the last Fault, when it opened.
	Failures int            `json:"failures,omitempty"`
	Fault    protocol.Fault `json:"fault,omitzero"`
}

// Dropped says which checkpoints lost the content of their trees, because what was never promoted took more than the policy's
// retention.unpromotedBytes. Their commits stay. The watchdog journals it before it removes anything.
type Dropped struct {
	Checkpoints []DroppedCheckpoint `json:"checkpoints"`
	// Budget in bytes, and the hash of the policy that it is from.
	Budget int64  `json:"budget"`
	Policy string `json:"policy"`
}

// DroppedCheckpoint is one of them, with its tree.
type DroppedCheckpoint struct {
	Sequence int64  `json:"sequence"`
	Tree     string `json:"tree"`
}

// Squashed says that the delivery became one commit on the base with the same tree. The reason is a commit of its history that breaks a
// rule of the policy in effect at that time.
type Squashed struct {
	// Commit that is delivered, and Old that it replaces.
	Commit string `json:"commit"`
	Old    string `json:"old"`
	// Reason names commit and rule. Policy is the hash of the policy.
	Reason string `json:"reason"`
	Policy string `json:"policy"`
}

// KnowledgeCommitted says that a commit with the documents of reviewers follows the promoted commit On and is delivered with it. It is On itself
// if there are no such documents, or if a policy does not want that commit any more.
type KnowledgeCommitted struct {
	On     string `json:"on"`
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	// After is an earlier such commit that the branch on the server has, and the second parent of Commit; empty if the branch has none.
	After string `json:"after,omitempty"`
}

// Delivered says what the server has taken.
type Delivered struct {
	Commit string `json:"commit"`
	Branch string `json:"branch"`
}
