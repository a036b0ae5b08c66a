// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Phase summarises a Feature for people; conditions are the truth that it is derived from.
// +kubebuilder:validation:Enum=Pending;Preparing;Running;AwaitingInput;ReadyToMerge;Delivered;Blocked;Failed;Suspended
type Phase string

// Phases of a Feature.
const (
	// PhasePending: not started; a condition says what it waits for.
	PhasePending Phase = "Pending"
	// PhasePreparing: volumes, pod and workspace are being made.
	PhasePreparing Phase = "Preparing"
	// PhaseRunning: the agent works.
	PhaseRunning Phase = "Running"
	// PhaseAwaitingInput: the agent asked a question.
	PhaseAwaitingInput Phase = "AwaitingInput"
	// PhaseReadyToMerge: the work is done and valid, and waits for approval.
	PhaseReadyToMerge Phase = "ReadyToMerge"
	// PhaseDelivered: the branch is where it should be. Terminal.
	PhaseDelivered Phase = "Delivered"
	// PhaseBlocked: only a person can help; the condition's message says how.
	PhaseBlocked Phase = "Blocked"
	// PhaseFailed: retries or the deadline are spent. A retry request starts it again.
	PhaseFailed Phase = "Failed"
	// PhaseSuspended: spec.suspend ended the pod; the work is kept.
	PhaseSuspended Phase = "Suspended"
)

// FeatureStatus is what has become of a Feature. The controller owns everything but run, which intake owns.
type FeatureStatus struct {
	// observedGeneration is the generation that the controller has acted on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase summarises the conditions.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// conditions say what is true of the Feature; docs/reference/conditions.md lists types and reasons.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// attempt counts the Jobs that ran for this Feature; it is the epoch that fences the volumes.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// failures counts the attempts in which the agent itself failed; compared with spec.retries.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// lost counts the attempts in a row that ended without a final report; the next one waits the longer the more there were.
	// +optional
	Lost int32 `json:"lost,omitempty"`
	// job is the Job of the current attempt.
	// +optional
	Job *JobStatus `json:"job,omitempty"`
	// branch that is or will be delivered.
	// +optional
	Branch string `json:"branch,omitempty"`
	// head is the last promoted commit of the delivery branch.
	// +optional
	Head string `json:"head,omitempty"`
	// lastCheckpoint is the newest Checkpoint.
	// +optional
	LastCheckpoint string `json:"lastCheckpoint,omitempty"`
	// lastValidCheckpoint is the newest Checkpoint with a Valid verdict.
	// +optional
	LastValidCheckpoint string `json:"lastValidCheckpoint,omitempty"`
	// checkpoints counts the Checkpoints taken (not only those kept).
	// +optional
	Checkpoints CheckpointCounts `json:"checkpoints,omitzero"`
	// policy is the effective policy and where it came from.
	// +optional
	Policy *PolicyStatus `json:"policy,omitempty"`
	// locks that are held.
	// +optional
	// +listType=set
	Locks []string `json:"locks,omitempty"`
	// observedRequests says what became of each request.
	// +optional
	// +listType=map
	// +listMapKey=id
	ObservedRequests []ObservedRequest `json:"observedRequests,omitempty"`
	// startedAt is when the first attempt started.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// activeSeconds is the running time of finished attempts, in seconds; the deadline is compared with it plus the current attempt's.
	// +optional
	ActiveSeconds int64 `json:"activeSeconds,omitempty"`
	// finishedAt is when the Feature was delivered or failed.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// run is what the watchdog reports.
	// +optional
	Run *RunStatus `json:"run,omitempty"`
}

// JobStatus names the Job and the pod of the current attempt, pinned by uid.
type JobStatus struct {
	// name of the Job.
	// +required
	Name string `json:"name"`
	// kind of run: agent or seal.
	// +required
	Run string `json:"run"`
	// podName is the Job's pod, once it exists.
	// +optional
	PodName string `json:"podName,omitempty"`
	// podUID is the only pod whose reports are taken.
	// +optional
	PodUID string `json:"podUID,omitempty"`
	// startedAt is when the Job was made.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// stopRequestedAt is when the watchdog was asked to end; an orderly end is waited for a minute.
	// +optional
	StopRequestedAt *metav1.Time `json:"stopRequestedAt,omitempty"`
	// endedAt is when the end of the attempt was noted: its time and outcome are in activeSeconds, failures and lost.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}

// CheckpointCounts counts checkpoints by verdict.
type CheckpointCounts struct {
	// total number of checkpoints taken.
	// +optional
	Total int64 `json:"total"`
	// valid ones.
	// +optional
	Valid int64 `json:"valid"`
	// invalid ones.
	// +optional
	Invalid int64 `json:"invalid"`
}

// PolicyStatus names the effective policy.
type PolicyStatus struct {
	// hash of the effective policy.
	// +required
	Hash string `json:"hash"`
	// enforcement in effect.
	// +optional
	Enforcement Enforcement `json:"enforcement,omitempty"`
	// sources are the SupervisorPolicies that it was merged from, as namespace/name, most specific first.
	// +optional
	// +listType=atomic
	Sources []string `json:"sources,omitempty"`
}

// ObservedRequest says what became of a request.
type ObservedRequest struct {
	// id of the request.
	// +required
	ID string `json:"id"`
	// state: Done, Failed or NotActedOn.
	// +required
	// +kubebuilder:validation:Enum=Done;Failed;NotActedOn
	State string `json:"state"`
	// message says more, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// observedAt is when it was acted on.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`
}

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
	// lastCheckpoint is the newest reported one.
	// +optional
	LastCheckpoint *CheckpointSummary `json:"lastCheckpoint,omitempty"`
	// lastValidCheckpoint is the name of the newest one with a Valid verdict.
	// +optional
	LastValidCheckpoint string `json:"lastValidCheckpoint,omitempty"`
	// report is the status report of the run (SALUTE).
	// +optional
	Report *RunReport `json:"report,omitempty"`
	// tasks of the plan and how far they are.
	// +optional
	// +listType=atomic
	Tasks []TaskStatus `json:"tasks,omitempty"`
	// requests that the watchdog has acted on.
	// +optional
	// +listType=map
	// +listMapKey=id
	Requests []ObservedRequest `json:"requests,omitempty"`
	// fault is what keeps the run from going on, if anything does.
	// +optional
	Fault *RunFault `json:"fault,omitempty"`
	// connected is true while the watchdog's long poll is open; connectionChangedAt says since when.
	// +optional
	Connected *bool `json:"connected,omitempty"`
	// connectionChangedAt is when connected last changed.
	// +optional
	ConnectionChangedAt *metav1.Time `json:"connectionChangedAt,omitempty"`
	// replica is the manager replica that holds the connection; its own Lease vouches for it.
	// +optional
	Replica string `json:"replica,omitempty"`
	// final is the last word of the attempt. Success is this report, never the Job's own verdict.
	// +optional
	Final *FinalReport `json:"final,omitempty"`
	// question that the agent waits on.
	// +optional
	Question *Question `json:"question,omitempty"`
}

// CheckpointSummary is what the Feature's conditions need of the newest checkpoint.
type CheckpointSummary struct {
	// name of the Checkpoint.
	// +required
	Name string `json:"name"`
	// verdict of it.
	// +required
	Verdict Verdict `json:"verdict"`
	// action taken.
	// +required
	Action Action `json:"action"`
	// reason is the rule of the first violation, or why it failed.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says it in words.
	// +optional
	Message string `json:"message,omitempty"`
}

// RunReport is the structured status report of a run (SALUTE).
type RunReport struct {
	// state: Preparing, Active, Idle, Frozen, Finishing or Complete.
	// +optional
	State string `json:"state,omitempty"`
	// task being worked on.
	// +optional
	Task string `json:"task,omitempty"`
	// base is the commit that the work started from.
	// +optional
	Base string `json:"base,omitempty"`
	// head is the last promoted commit.
	// +optional
	Head string `json:"head,omitempty"`
	// agentRunning is true while the agent's process lives.
	// +optional
	AgentRunning bool `json:"agentRunning,omitempty"`
	// workspaceReady is true once the workspace is laid out.
	// +optional
	WorkspaceReady bool `json:"workspaceReady,omitempty"`
	// reportedAt is when the watchdog said so.
	// +optional
	ReportedAt *metav1.Time `json:"reportedAt,omitempty"`
}

// TaskStatus says how far a task is.
type TaskStatus struct {
	// name is milestone/task, or the Feature's own name where the prompt is the one task.
	// +required
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
	Reason string `json:"reason"`
	// message names what is wrong and what to do.
	// +optional
	Message string `json:"message,omitempty"`
}

// FinalReport is the last word of an attempt.
type FinalReport struct {
	// epoch of the attempt.
	// +required
	Epoch int64 `json:"epoch"`
	// outcome: Delivered, ReadyToMerge, Blocked, AgentFailed, Suspended, Stopped or Lost.
	// +required
	Outcome string `json:"outcome"`
	// reason in CamelCase.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message for people.
	// +optional
	Message string `json:"message,omitempty"`
	// head that was delivered or is ready.
	// +optional
	Head string `json:"head,omitempty"`
}

// Question is what the agent waits on.
type Question struct {
	// id of the question.
	// +required
	ID string `json:"id"`
	// text of the question.
	// +required
	Text string `json:"text"`
}
