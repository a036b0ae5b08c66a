// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RunStatus is what the watchdog reports of the current attempt. Intake owns it.
type RunStatus struct {
	// epoch is the attempt that reported.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// sequence of the last report applied in this epoch; reports are applied exactly once.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// checkpointSequence is the highest checkpoint number seen.
	// +optional
	CheckpointSequence int64 `json:"checkpointSequence,omitempty"`
	// checkpoints counts all that were reported.
	// +optional
	Checkpoints CheckpointCounts `json:"checkpoints,omitzero"`
	// rollbacks counts how often the workspace went back, or a part of it, over all attempts, and tells of the last time.
	// +optional
	Rollbacks *RollbackStatus `json:"rollbacks,omitempty"`
	// lastCheckpoint is the newest reported one.
	// +optional
	LastCheckpoint *CheckpointSummary `json:"lastCheckpoint,omitempty"`
	// lastValidCheckpoint is the name of the newest one with a Valid verdict whose state no rollback gave up.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LastValidCheckpoint string `json:"lastValidCheckpoint,omitempty"`
	// report is the status report of the run (SALUTE).
	// +optional
	Report *RunReport `json:"report,omitempty"`
	// tasks of the plan and how far they are.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2048
	Tasks []TaskStatus `json:"tasks,omitempty"`
	// requests that the watchdog has acted on.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Requests []ObservedRequest `json:"requests,omitempty"`
	// fault is what keeps the run from going on, if anything does.
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
	// final is the last word of the attempt. Success is this report, never the Job's own verdict.
	// +optional
	Final *FinalReport `json:"final,omitempty"`
	// question that the agent waits on.
	// +optional
	Question *Question `json:"question,omitempty"`
	// turn of the conversation, counted from 1 over all attempts.
	// +optional
	Turn int64 `json:"turn,omitempty"`
	// usage of models so far, over all attempts.
	// +optional
	Usage *Usage `json:"usage,omitempty"`
	// budgetWarning names a budget of which most is used; empty where there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	BudgetWarning string `json:"budgetWarning,omitempty"`
	// anomalies seen in the conversation that are not over.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Anomalies []Anomaly `json:"anomalies,omitempty"`
	// directives and answers of people that the agent is given, and how far they are. An answer has the id answer/ and that of its question.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=192
	Directives []DirectiveStatus `json:"directives,omitempty"`
	// reviews that were made, newest last; the ledger keeps them all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Reviews []ReviewStatus `json:"reviews,omitempty"`
	// plan that the planner proposes, until it is approved.
	// +optional
	Plan *ProposedPlan `json:"plan,omitempty"`
}

// CheckpointSummary is what the Feature's conditions need of the newest checkpoint.
type CheckpointSummary struct {
	// name of the Checkpoint.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// verdict of it.
	// +required
	Verdict Verdict `json:"verdict"`
	// action taken.
	// +required
	Action Action `json:"action"`
	// reason is the rule of the first violation, or why it failed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message says it in words.
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
	// turn that it was seen in first.
	// +optional
	Turn int64 `json:"turn,omitempty"`
	// message holds the evidence, and what was done about it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// startTime when it has been seen.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// cause is Provider while the agent's model calls are answered with errors that are not its own; empty where it is the agent itself.
	// +optional
	// +kubebuilder:validation:Enum=Provider
	Cause string `json:"cause,omitempty"`
}

// DirectiveStatus says how far a directive is.
type DirectiveStatus struct {
	// id of the directive.
	// +required
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`
	// source is Person, Feature (a delivery of another one), or the reviewer that gave it.
	// +optional
	// +kubebuilder:validation:Enum=Person;Feature;CodeStyle;Design;Knowledge;Assessor
	Source string `json:"source,omitempty"`
	// state: Pending (the agent has not been told), Active (it was told), Addressed (it says so, or the directive was taken back), Escalated (it
	// says that it cannot be done) or Dropped (it is not told any more).
	// +required
	// +kubebuilder:validation:Enum=Pending;Active;Addressed;Dropped;Escalated
	State string `json:"state"`
	// age in finished tasks; Cleanup directives that are not Critical are dropped at 15.
	// +optional
	Age int32 `json:"age,omitempty"`
	// message says more, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// ReviewStatus is what a reviewer said.
type ReviewStatus struct {
	// reviewer: CodeStyle, Design, Knowledge or Assessor.
	// +required
	// +kubebuilder:validation:Enum=CodeStyle;Design;Knowledge;Assessor
	Reviewer string `json:"reviewer"`
	// task after which it looked.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Task string `json:"task,omitempty"`
	// outcome: Aligned, MinorDrift, MajorDivergence, MilestoneComplete, or Skipped when its model was away.
	// +optional
	// +kubebuilder:validation:Enum=Aligned;MinorDrift;MajorDivergence;MilestoneComplete;Skipped
	Outcome string `json:"outcome,omitempty"`
	// directives that it gave.
	// +optional
	Directives int32 `json:"directives,omitempty"`
	// summary for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary,omitempty"`
	// reviewTime is when.
	// +optional
	ReviewTime *metav1.Time `json:"reviewTime,omitempty"`
}

// ProposedPlan waits for a request approvePlan with its hash.
type ProposedPlan struct {
	// hash of the plan.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash"`
	// summary for people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Summary string `json:"summary,omitempty"`
	// milestones that are proposed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Milestones []Milestone `json:"milestones,omitempty"`
}

// TaskStatus says how far a task is.
type TaskStatus struct {
	// name is milestone/task, or the Feature's own name where the prompt is the one task.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// state: Pending, Running, Done or Failed.
	// +required
	// +kubebuilder:validation:Enum=Pending;Running;Done;Failed
	State string `json:"state"`
	// exitCode of the agent's last run of it.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
}

// RunFault keeps a run from going on; the watchdog tries again and clears it.
type RunFault struct {
	// reason in CamelCase.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
	// message names what is wrong and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// FinalReport is the last word of an attempt.
type FinalReport struct {
	// epoch of the attempt.
	// +required
	Epoch int64 `json:"epoch"`
	// outcome: Delivered, ReadyToMerge, Blocked, AgentFailed, Suspended, Stopped or Switched (the next task runs in another mode, and so in another pod).
	// +required
	// +kubebuilder:validation:Enum=Delivered;ReadyToMerge;Blocked;AgentFailed;Suspended;Stopped;Switched
	Outcome string `json:"outcome"`
	// reason in CamelCase.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
	// message for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// head that was delivered or is ready.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Head string `json:"head,omitempty"`
	// failure of the model calls that the agent made last, where the attempt ended for that.
	// +optional
	Failure *CallFailure `json:"failure,omitempty"`
	// paths that were pushed as changes to the base, the first ones that are plain text.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=256
	Paths []string `json:"paths,omitempty"`
	// pathCount is how many there are.
	// +optional
	PathCount int64 `json:"pathCount,omitempty"`
}

// CallFailure says what failed model calls came to; failures.md has the classes and causes.
type CallFailure struct {
	// class says who is to blame: Provider, Infrastructure, Policy, Budget or Agent.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Class string `json:"class"`
	// cause in CamelCase.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Cause string `json:"cause,omitempty"`
	// calls that failed since the last good answer.
	// +optional
	Calls int64 `json:"calls,omitempty"`
}

// Question is what the agent waits on.
type Question struct {
	// id of the question.
	// +required
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`
	// text of the question.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Text string `json:"text"`
}
