// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RunStatus is what the watchdog reports of the current attempt. Intake owns it.
type RunStatus struct {
	// epoch is the attempt that reported.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// sequence is the number of the last report in this epoch that the manager applied. It applies reports exactly once.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// checkpointSequence is the highest checkpoint number so far.
	// +optional
	CheckpointSequence int64 `json:"checkpointSequence,omitempty"`
	// checkpoints counts all reported checkpoints.
	// +optional
	Checkpoints CheckpointCounts `json:"checkpoints,omitzero"`
	// rollbacks counts how often the workspace, or a part of it, went back over all attempts, and describes the last time.
	// +optional
	Rollbacks *RollbackStatus `json:"rollbacks,omitempty"`
	// lastCheckpoint is the newest reported checkpoint.
	// +optional
	LastCheckpoint *CheckpointSummary `json:"lastCheckpoint,omitempty"`
	// lastValidCheckpoint is the name of the newest checkpoint with a Valid verdict whose state no rollback gave up.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LastValidCheckpoint string `json:"lastValidCheckpoint,omitempty"`
	// report is the status report of the run (SALUTE): what the agent does, where, in which role, since when and with which model.
	// +optional
	Report *RunReport `json:"report,omitempty"`
	// tasks are the tasks of the plan, and how far they are.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2304
	Tasks []TaskStatus `json:"tasks,omitempty"`
	// deliveryGates are the newest results of the gates before the delivery.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	DeliveryGates []GateStatus `json:"deliveryGates,omitempty"`
	// requests are the requests that the watchdog has acted on.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Requests []ObservedRequest `json:"requests,omitempty"`
	// fault is what keeps the run from continuing, if anything does.
	// +optional
	Fault *RunFault `json:"fault,omitempty"`
	// connected is true while the watchdog's long poll is open; connectionTransitionTime says since when.
	// +optional
	Connected *bool `json:"connected,omitempty"`
	// connectionTransitionTime is when connected last changed.
	// +optional
	ConnectionTransitionTime *metav1.Time `json:"connectionTransitionTime,omitempty"`
	// replica is the manager replica that holds the connection; its own Lease vouches for it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Replica string `json:"replica,omitempty"`
	// final is the final report of the attempt. Success is this report, never the Job's own verdict.
	// +optional
	Final *FinalReport `json:"final,omitempty"`
	// question is the newest question of the agent without an answer; its field guess says whether the agent waits.
	// +optional
	Question *Question `json:"question,omitempty"`
	// turn is the turn of the conversation, counted from 1 over all attempts.
	// +optional
	Turn int64 `json:"turn,omitempty"`
	// usage is the usage of models so far, over all attempts.
	// +optional
	Usage *Usage `json:"usage,omitempty"`
	// budgetWarning names a budget that has little left. It is empty if there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	BudgetWarning string `json:"budgetWarning,omitempty"`
	// supervisorCostWarning says that plans and reviews have more than their share (reviewers.costAlertPercent) of what models have cost. It is empty if they do not.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	SupervisorCostWarning string `json:"supervisorCostWarning,omitempty"`
	// anomalies are the anomalies of the conversation that are not over.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Anomalies []Anomaly `json:"anomalies,omitempty"`
	// directives are the directives and answers that the agent gets, and how far they are. An answer has the id answer/ and that of its question. A directive of a reviewer has its texts here.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=192
	Directives []DirectiveStatus `json:"directives,omitempty"`
	// reviews are the newest reviews, the newest last. The ledger keeps them all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Reviews []ReviewStatus `json:"reviews,omitempty"`
	// knowledgeToReview are the paths of documents that reviewers have written and that a user has to merge before agents get them, at most 8. The last commit of the delivery has them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	KnowledgeToReview []string `json:"knowledgeToReview,omitempty"`
	// plan is the plan that a model has proposed (spec.planning), or why there is none.
	// +optional
	Plan *ProposedPlan `json:"plan,omitempty"`
}

// CheckpointSummary is what the Feature's conditions need of the newest checkpoint.
type CheckpointSummary struct {
	// name is the name of the Checkpoint.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// verdict is the verdict on the checkpoint.
	// +required
	Verdict Verdict `json:"verdict"`
	// action is what the watchdog did about the checkpoint.
	// +required
	Action Action `json:"action"`
	// reason is the rule of the first violation, or why the checkpoint failed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message explains the reason in words.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Anomaly of an agent that is stuck or in trouble.
type Anomaly struct {
	// type is the condition that it sets: AgentStalled, AgentLooping, ContextPressure, CascadeFailure or PaceEscalated.
	// +required
	// +kubebuilder:validation:Enum=AgentStalled;AgentLooping;ContextPressure;CascadeFailure;PaceEscalated
	Type string `json:"type"`
	// turn is the turn in which the watchdog first saw the anomaly.
	// +optional
	Turn int64 `json:"turn,omitempty"`
	// message has the evidence, and what the watchdog did about it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// startTime is when the watchdog first saw the anomaly.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// cause is Provider while the agent's model calls fail with errors that are not its own. It is empty if the agent itself is the cause.
	// +optional
	// +kubebuilder:validation:Enum=Provider
	Cause string `json:"cause,omitempty"`
}

// DirectiveStatus says how far a directive is.
type DirectiveStatus struct {
	// id is the id of the directive.
	// +required
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`
	// source is who gave the directive: Person (a user), Feature (a delivery of another one), or a reviewer. custom/<name> is a reviewer that a policy defines.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(Person|Feature|CodeStyle|Design|Knowledge|Assessor|custom/[a-z][a-z0-9-]{0,39})$`
	Source string `json:"source,omitempty"`
	// state says how far the directive is. Pending: the agent does not know of it. Active: the watchdog told the agent. Addressed: the agent says so, or a user took the directive back. Escalated: the agent says that it cannot do it, or the reviewer still finds it in the work after two answers of the agent. Dropped: the watchdog tells the agent no more.
	// +required
	// +kubebuilder:validation:Enum=Pending;Active;Addressed;Dropped;Escalated
	State string `json:"state"`
	// unread is true if the watchdog dropped the directive before the agent received it.
	// +optional
	Unread bool `json:"unread,omitempty"`
	// age is the age of the directive, in finished tasks. The watchdog drops Cleanup directives that are not Critical at 15.
	// +optional
	Age int32 `json:"age,omitempty"`
	// message explains the state.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// type is Functional or Cleanup. It is empty if no reviewer gave the directive, as are priority, description, rationale and files.
	// +optional
	// +kubebuilder:validation:Enum=Functional;Cleanup
	Type string `json:"type,omitempty"`
	// priority is Critical, Normal or Low.
	// +optional
	// +kubebuilder:validation:Enum=Critical;Normal;Low
	Priority string `json:"priority,omitempty"`
	// description says what the agent must address, in the words of the reviewer.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
	// rationale says why, in the words of the reviewer.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Rationale string `json:"rationale,omitempty"`
	// files are the files that the directive is about.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=512
	Files []string `json:"files,omitempty"`
}

// ReviewStatus is what a reviewer said.
type ReviewStatus struct {
	// reviewer is who reviewed: CodeStyle, Design, Knowledge, Assessor, or custom/<name> for a reviewer that a policy defines.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(CodeStyle|Design|Knowledge|Assessor|custom/[a-z][a-z0-9-]{0,39})$`
	Reviewer string `json:"reviewer"`
	// task is the task after which the reviewer looked.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Task string `json:"task,omitempty"`
	// outcome is the result. Aligned: the reviewer gave no directives. MinorDrift: it gave directives. Skipped: its model did not answer, or not in a form that Tidewaiter can use, and the work continues. MajorDivergence: the assessor finds that the work diverges from the request or the plan, so another plan is needed. MilestoneComplete is reserved.
	// +optional
	// +kubebuilder:validation:Enum=Aligned;MinorDrift;MajorDivergence;MilestoneComplete;Skipped
	Outcome string `json:"outcome,omitempty"`
	// directives is the number of directives that the reviewer gave.
	// +optional
	Directives int32 `json:"directives,omitempty"`
	// summary is a summary for users or, if the review was skipped, the reason.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary,omitempty"`
	// reviewTime is the time of the review.
	// +optional
	ReviewTime *metav1.Time `json:"reviewTime,omitempty"`
}

// ProposedPlan is the plan of a model.
type ProposedPlan struct {
	// hash is the hash of the plan. It is empty without a plan.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`
	// approved says that a user has approved this plan (spec.planning Approve).
	// +optional
	Approved bool `json:"approved,omitempty"`
	// message says why there is no plan. With spec.planning Auto, the tasks of spec.plan, or the prompt as the only task, are then the whole work.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// allowedAreas are globs of the paths that the work can change. A path must also be in spec.plan.allowedAreas, if these exist.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	AllowedAreas []string `json:"allowedAreas,omitempty"`
	// forbiddenAreas are globs of the paths that must not change, in addition to spec.plan.forbiddenAreas.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	ForbiddenAreas []string `json:"forbiddenAreas,omitempty"`
	// milestones are the proposed milestones.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Milestones []Milestone `json:"milestones,omitempty"`
}

// TaskStatus says how far a task is.
type TaskStatus struct {
	// name is milestone/task, or the Feature's own name if the prompt is the one task.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// state is the state of the task: Pending, Running, Gating (its gates run), Done, Failed, or Aborted (it could not be done, its changes are not in the workspace, and the work continues without it).
	// +required
	// +kubebuilder:validation:Enum=Pending;Running;Gating;Done;Failed;Aborted
	State string `json:"state"`
	// exitCode is the exit code of the agent's last run of the task.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// corrections is how often the agent got its work back in the current attempt or, for a task that is over, in the attempt that ended it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Corrections int32 `json:"corrections,omitempty"`
	// message says why the task has failed or was aborted. The newest 32 tasks that are over can have one.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// work is what is known of the work of a task that is done or was aborted. The newest 32 such tasks have it.
	// +optional
	Work *TaskWork `json:"work,omitempty"`
	// gates are the newest results of the gates of the task. The newest 32 tasks whose gates have run have them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Gates []GateStatus `json:"gates,omitempty"`
}

// GateStatus is the newest result of a gate.
type GateStatus struct {
	// name is the name of the gate.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// state is the result: Passed, Failed, TimedOut, or NotStarted if the command could not be started (exit code 126 or 127).
	// +required
	// +kubebuilder:validation:Enum=Passed;Failed;TimedOut;NotStarted
	State string `json:"state"`
	// exitCode is the exit code of the command.
	// +optional
	ExitCode int32 `json:"exitCode,omitempty"`
}

// TaskWork is what is known of the work of a task. The watchdog tells it the agents of later tasks.
type TaskWork struct {
	// checkpointSequence is the number of the checkpoint that completed the task, or that was taken after the changes of an aborted task had left the workspace.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CheckpointSequence int64 `json:"checkpointSequence,omitempty"`
	// promotedCheckpoints is how many checkpoints of the task were promoted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PromotedCheckpoints int64 `json:"promotedCheckpoints,omitempty"`
	// summary is what the agent said of its work, if it called task_complete.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Summary string `json:"summary,omitempty"`
}

// RunFault keeps a run from continuing; the watchdog tries again and clears it.
type RunFault struct {
	// reason is the reason of the fault, in CamelCase.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
	// message names what is wrong and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// FinalReport is the final report of an attempt.
type FinalReport struct {
	// epoch is the attempt that ended.
	// +required
	Epoch int64 `json:"epoch"`
	// outcome is how the attempt ended: Delivered, ReadyToMerge, Blocked, AgentFailed, Suspended, Stopped, Switched (the next task runs in another mode, and so in another pod), Proving (a gate must pass in a pod of its own), Unfinished (such gates have failed, or there is another task, so the agent continues), Parked (the agent waits for an answer, without a pod) or PlanProposed (a plan waits for approval, without a pod).
	// +required
	// +kubebuilder:validation:Enum=Delivered;ReadyToMerge;Blocked;AgentFailed;Suspended;Stopped;Switched;Proving;Unfinished;Parked;PlanProposed
	Outcome string `json:"outcome"`
	// reason is the reason of the outcome, in CamelCase.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
	// message explains the outcome.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// head is the delivered commit, or the commit that is ready.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Head string `json:"head,omitempty"`
	// gate identifies the gate that runs next, if the outcome is Proving: it is a SHA-256 of its definition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Gate string `json:"gate,omitempty"`
	// task is the name of the task that this gate proves. It is empty for a gate before the delivery.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Task string `json:"task,omitempty"`
	// provedBy identifies all gates that have passed on the head, if the outcome is ReadyToMerge. If other gates are required now, Tidewaiter looks again before it asks for an approval.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ProvedBy string `json:"provedBy,omitempty"`
	// failure describes the agent's last model calls, if the attempt ended because they failed.
	// +optional
	Failure *CallFailure `json:"failure,omitempty"`
	// taskFailures is how often the agent has failed in its task so far, if the outcome is AgentFailed and spec.maxRetries counts for each task (onTaskAborted: Continue).
	// +optional
	// +kubebuilder:validation:Minimum=0
	TaskFailures int32 `json:"taskFailures,omitempty"`
	// paths are paths that the push changed against the base, the first ones that are plain text.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=256
	Paths []string `json:"paths,omitempty"`
	// pathCount is the number of all such paths.
	// +optional
	PathCount int64 `json:"pathCount,omitempty"`
}

// CallFailure is the result of failed model calls; failures.md has the classes and causes.
type CallFailure struct {
	// class says who is to blame: Provider, Infrastructure, Policy, Budget or Agent.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Class string `json:"class"`
	// cause is the cause of the failure, in CamelCase.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Cause string `json:"cause,omitempty"`
	// calls is the number of calls that failed since the last good answer.
	// +optional
	Calls int64 `json:"calls,omitempty"`
}

// Question is what the agent asks users.
type Question struct {
	// id is the id of the question.
	// +required
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`
	// text is the text of the question.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Text string `json:"text"`
	// askedTime is when the agent asked.
	// +optional
	AskedTime *metav1.Time `json:"askedTime,omitempty"`
	// guess is true if the agent does not wait for the answer: it continues with its best guess, and gets an answer that comes later.
	// +optional
	Guess bool `json:"guess,omitempty"`
}
