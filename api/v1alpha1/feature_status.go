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
	// PhasePreparing: volumes, pod and workspace are being created.
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
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// attempt counts the Jobs that ran for this Feature; it is the epoch that fences the volumes.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// failures counts the attempts in which the agent itself failed; compared with spec.maxRetries.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// lost counts the attempts in a row that ended without a final report; the next one waits the longer the more there were.
	// +optional
	Lost int32 `json:"lost,omitempty"`
	// unordered counts the attempts whose pod ended by itself, without a final report, since a person asked for a retry last: neither a
	// person nor the cluster asked it to end. From the fourth on each spends a retry.
	// +optional
	Unordered int32 `json:"unordered,omitempty"`
	// unserved tells of the attempts in a row that ended because models did not answer. They spend no retry.
	// +optional
	Unserved *UnservedStatus `json:"unserved,omitempty"`
	// job is the Job of the current attempt.
	// +optional
	Job *JobStatus `json:"job,omitempty"`
	// branch that is or will be delivered.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Branch string `json:"branch,omitempty"`
	// head is the last promoted commit of the delivery branch.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Head string `json:"head,omitempty"`
	// lastCheckpoint is the newest Checkpoint.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LastCheckpoint string `json:"lastCheckpoint,omitempty"`
	// lastValidCheckpoint is the newest Checkpoint with a Valid verdict whose state no rollback gave up.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LastValidCheckpoint string `json:"lastValidCheckpoint,omitempty"`
	// checkpoints counts the Checkpoints taken (not only those kept).
	// +optional
	Checkpoints CheckpointCounts `json:"checkpoints,omitzero"`
	// rollbacks counts how often the workspace went back, or a part of it, over all attempts, and tells of the last time.
	// +optional
	Rollbacks *RollbackStatus `json:"rollbacks,omitempty"`
	// policy is the effective policy and where it came from.
	// +optional
	Policy *PolicyStatus `json:"policy,omitempty"`
	// locks that are held, by the names of their contracts. The manager's Leases are the truth: one that expired and was reclaimed is not held, whatever this says.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	Locks []string `json:"locks,omitempty"`
	// observedRequests says what became of each request.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=256
	ObservedRequests []ObservedRequest `json:"observedRequests,omitempty"`
	// deliveries of other Features of the project that touch what this one works on, since it began; the newest ones.
	// +optional
	// +listType=map
	// +listMapKey=feature
	// +kubebuilder:validation:MaxItems=16
	Deliveries []ForeignDelivery `json:"deliveries,omitempty"`
	// startTime is when the first attempt started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// activeSeconds is the running time of finished attempts, in seconds; the deadline is compared with it plus the current attempt's.
	// +optional
	ActiveSeconds int64 `json:"activeSeconds,omitempty"`
	// completionTime is when the Feature was delivered or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// run is what the watchdog reports.
	// +optional
	Run *RunStatus `json:"run,omitempty"`
}

// ForeignDelivery is what another Feature has delivered.
type ForeignDelivery struct {
	// feature that delivered.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Feature string `json:"feature"`
	// branch that it delivered.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Branch string `json:"branch,omitempty"`
	// commit that it delivered.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Commit string `json:"commit,omitempty"`
	// deliveryTime is when.
	// +optional
	DeliveryTime *metav1.Time `json:"deliveryTime,omitempty"`
	// touches says in words what of this Feature it touches: a contract, or an area.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Touches string `json:"touches,omitempty"`
	// paths that it changes and that concern this Feature, the first ones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	Paths []string `json:"paths,omitempty"`
	// pathCount is how many there are.
	// +optional
	PathCount int64 `json:"pathCount,omitempty"`
}

// RunKind says what a Job does.
// +kubebuilder:validation:Enum=Agent;Seal
type RunKind string

// Kinds of runs. The label of Jobs and pods says the same in lower case (LabelRun).
const (
	// RunKindAgent has an agent in its pod.
	RunKindAgent RunKind = "Agent"
	// RunKindSeal works on the trusted volume without any agent.
	RunKindSeal RunKind = "Seal"
)

// UnservedStatus tells of attempts in a row that ended because models did not answer; failures.md has the classes and causes.
type UnservedStatus struct {
	// attempts in a row; the next one waits the longer the more there were.
	// +required
	Attempts int32 `json:"attempts"`
	// class of the last one: Provider, Infrastructure or Policy.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Class string `json:"class"`
	// cause of the last one in CamelCase.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Cause string `json:"cause,omitempty"`
	// policyHash is the policy that the last one ended under. With another one, an attempt of class Policy is tried again at once.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PolicyHash string `json:"policyHash,omitempty"`
	// backendsHash is the configuration of backends when the last one ended. With another one, an attempt of
	// class Policy is tried again at once.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BackendsHash string `json:"backendsHash,omitempty"`
}

// JobStatus names the Job and the pod of the current attempt, pinned by uid.
type JobStatus struct {
	// name of the Job.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// run is what the Job does: Agent has an agent in its pod, Seal works on the trusted volume without one.
	// +required
	Run RunKind `json:"run"`
	// errand is true for a seal run that was started for requests (a rollback, a checkpoint) and delivers nothing.
	// +optional
	Errand bool `json:"errand,omitempty"`
	// mode is the execution mode that the pod of an agent run is made for; a change of mode is a new attempt.
	// +optional
	Mode ExecutionMode `json:"mode,omitempty"`
	// strategy that the attempt runs by to its end; see execution.strategy. A policy that changes from Auto to another one is obeyed all the same.
	// +optional
	// +kubebuilder:validation:Enum=Direct;Shadow
	Strategy string `json:"strategy,omitempty"`
	// strategyReason says why, where execution.strategy is Auto.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	StrategyReason string `json:"strategyReason,omitempty"`
	// podName is the Job's pod, once it exists.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName,omitempty"`
	// podUID is the only pod whose reports are taken.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PodUID string `json:"podUID,omitempty"`
	// startTime is when the Job was made.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// waitStartTime is since when the attempt has waited, for a person or for its pod to start, waitedSeconds how long it waited before: neither counts as running time.
	// +optional
	WaitStartTime *metav1.Time `json:"waitStartTime,omitempty"`
	// waitedSeconds of earlier waits of this attempt.
	// +optional
	WaitedSeconds int64 `json:"waitedSeconds,omitempty"`
	// stopRequestTime is when the watchdog was asked to end; an orderly end is waited for a minute.
	// +optional
	StopRequestTime *metav1.Time `json:"stopRequestTime,omitempty"`
	// endTime is when the end of the attempt was noted: its time and outcome are in activeSeconds, failures and lost.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
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

// RollbackStatus counts rollbacks by their cause.
type RollbackStatus struct {
	// total number of rollbacks.
	// +required
	Total int64 `json:"total"`
	// supervision counts those that the ladder of anomalies made.
	// +required
	Supervision int64 `json:"supervision"`
	// request counts those that a person asked for.
	// +required
	Request int64 `json:"request"`
	// violation counts those that the policy made, by strategy Shadow or revertOnViolation.
	// +required
	Violation int64 `json:"violation"`
	// last one.
	// +required
	Last LastRollback `json:"last"`
}

// LastRollback is the newest rollback.
type LastRollback struct {
	// time at which the state before it was captured.
	// +required
	Time metav1.Time `json:"time"`
	// cause of it.
	// +required
	Cause RollbackCause `json:"cause"`
	// before is the name of the Checkpoint that holds the state before it.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Before string `json:"before"`
	// to is the name of the Checkpoint that the workspace went back to: the one that was asked for, or the newest valid one (parts of later
	// ones that were promoted since stay). Absent for the base.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to,omitempty"`
	// reason in words: what was wrong with the agent, the request, or the worst violation.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// PolicyStatus names the effective policy.
type PolicyStatus struct {
	// hash of the effective policy.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash"`
	// enforcement in effect.
	// +optional
	Enforcement Enforcement `json:"enforcement,omitempty"`
	// sources are the SupervisorPolicies that it was merged from, as namespace/name, most specific first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=320
	Sources []string `json:"sources,omitempty"`
}

// ObservedRequest says what became of a request.
type ObservedRequest struct {
	// id of the request.
	// +required
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// state: Done, Failed or NotActedOn.
	// +required
	// +kubebuilder:validation:Enum=Done;Failed;NotActedOn
	State string `json:"state"`
	// message says more, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// observedTime is when it was acted on.
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`
}
