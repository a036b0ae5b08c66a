// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Phase summarises a Feature for users; conditions are the truth that it follows from.
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
	// PhaseAwaitingInput: the agent asked a question, or a plan waits for approval.
	PhaseAwaitingInput Phase = "AwaitingInput"
	// PhaseReadyToMerge: the work is done and valid, and waits for approval.
	PhaseReadyToMerge Phase = "ReadyToMerge"
	// PhaseDelivered: the branch is where it should be. Terminal.
	PhaseDelivered Phase = "Delivered"
	// PhaseBlocked: only a user can help; the condition's message says how.
	PhaseBlocked Phase = "Blocked"
	// PhaseFailed: retries or the deadline are spent. A retry request starts it again.
	PhaseFailed Phase = "Failed"
	// PhaseSuspended: spec.suspend ended the pod; the work is kept.
	PhaseSuspended Phase = "Suspended"
)

// FeatureStatus is the observed state of a Feature. The controller owns everything but run, which intake owns.
type FeatureStatus struct {
	// observedGeneration is the generation that the controller has acted on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is a summary of the conditions.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// conditions say what is true of the Feature; docs/reference/conditions.md lists types and reasons.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// attempt is the number of Jobs that ran for this Feature. It is the epoch that fences the volumes.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// failures is the number of attempts in which the agent itself failed. Tidewaiter compares it with spec.maxRetries. Failures in a milestone with onTaskAborted: Continue count for each task (run.final.taskFailures), and are not among these unless they fail the Feature.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// lost is the number of attempts in a row that ended without a final report. The more there were, the longer the next attempt waits.
	// +optional
	Lost int32 `json:"lost,omitempty"`
	// unordered is the number of attempts whose pod ended by itself, without a final report or without the result of its gate, since a user last requested a retry. Neither a user nor the cluster asked these pods to end. From the fourth on, each spends a retry.
	// +optional
	Unordered int32 `json:"unordered,omitempty"`
	// taskFailures is the number of attempts since the spec last changed in which the agent failed in a task of a milestone with onTaskAborted: Continue. If there are more of them than such tasks can have, the Feature is Failed.
	// +optional
	TaskFailures int32 `json:"taskFailures,omitempty"`
	// unserved describes the attempts in a row that ended because models did not answer. They spend no retry.
	// +optional
	Unserved *UnservedStatus `json:"unserved,omitempty"`
	// job is the Job of the current attempt.
	// +optional
	Job *JobStatus `json:"job,omitempty"`
	// branch is the branch that Tidewaiter delivers.
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
	// checkpoints counts the Checkpoints that the watchdog took, including removed ones.
	// +optional
	Checkpoints CheckpointCounts `json:"checkpoints,omitzero"`
	// rollbacks counts how often the workspace, or a part of it, went back over all attempts, and describes the last time.
	// +optional
	Rollbacks *RollbackStatus `json:"rollbacks,omitempty"`
	// policy is the effective policy and its sources.
	// +optional
	Policy *PolicyStatus `json:"policy,omitempty"`
	// locks are the names of the contracts whose locks the Feature holds. The manager's Leases are the truth: if one expired and another Feature took it over, this Feature has lost the lock, whatever this field says.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	Locks []string `json:"locks,omitempty"`
	// observedRequests has the result of each request.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=256
	ObservedRequests []ObservedRequest `json:"observedRequests,omitempty"`
	// deliveries are the newest deliveries of other Features of the project, since this Feature began, that touch what it works on.
	// +optional
	// +listType=map
	// +listMapKey=feature
	// +kubebuilder:validation:MaxItems=16
	Deliveries []ForeignDelivery `json:"deliveries,omitempty"`
	// reviewers has, for each reviewer that runs, how many of its last directives agents of the project have addressed. Tidewaiter counts before an attempt starts. A reviewer that has given too few directives is missing.
	// +optional
	// +listType=map
	// +listMapKey=reviewer
	// +kubebuilder:validation:MaxItems=16
	Reviewers []ReviewerHeed `json:"reviewers,omitempty"`
	// startTime is when the first attempt started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// activeSeconds is the running time of finished attempts, in seconds. Tidewaiter compares the deadline with it plus the running time of the current attempt.
	// +optional
	ActiveSeconds int64 `json:"activeSeconds,omitempty"`
	// completionTime is the time of the delivery or failure.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// run is what the watchdog reports.
	// +optional
	Run *RunStatus `json:"run,omitempty"`
}

// ReviewerHeed is how many of the last directives of a reviewer agents have addressed.
type ReviewerHeed struct {
	// reviewer is the source of its directives.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Reviewer string `json:"reviewer"`
	// addressed is how many of the directives agents have addressed.
	// +required
	// +kubebuilder:validation:Minimum=0
	Addressed int32 `json:"addressed"`
	// directives is how many of the reviewer's last directives count. Open ones count only if the Feature is over and its agent has received them. Dropped ones count only if an agent has received them.
	// +required
	// +kubebuilder:validation:Minimum=1
	Directives int32 `json:"directives"`
}

// ForeignDelivery is a delivery of another Feature.
type ForeignDelivery struct {
	// feature is the Feature that delivered.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Feature string `json:"feature"`
	// branch is the branch that it delivered.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Branch string `json:"branch,omitempty"`
	// commit is the commit that it delivered.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Commit string `json:"commit,omitempty"`
	// deliveryTime is the time of the delivery.
	// +optional
	DeliveryTime *metav1.Time `json:"deliveryTime,omitempty"`
	// touches says in words what the delivery touches of this Feature: a contract, or an area.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Touches string `json:"touches,omitempty"`
	// paths are the first paths that the delivery changes and that concern this Feature.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	Paths []string `json:"paths,omitempty"`
	// pathCount is the number of all such paths.
	// +optional
	PathCount int64 `json:"pathCount,omitempty"`
}

// RunKind says what a Job does.
// +kubebuilder:validation:Enum=Agent;Seal;Gate
type RunKind string

// Kinds of runs. The label of Jobs and pods says the same in lower case (LabelRun).
const (
	// RunKindAgent has an agent in its pod.
	RunKindAgent RunKind = "Agent"
	// RunKindSeal works on the trusted volume without any agent.
	RunKindSeal RunKind = "Seal"
	// RunKindGate runs one gate of a task or before the delivery, in a pod where no agent has been.
	RunKindGate RunKind = "Gate"
)

// UnservedStatus describes attempts in a row that ended because models did not answer; failures.md has the classes and causes.
type UnservedStatus struct {
	// attempts is the number of such attempts in a row. The more there were, the longer the next attempt waits.
	// +required
	Attempts int32 `json:"attempts"`
	// class is the class of the last failure: Provider, Infrastructure or Policy.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Class string `json:"class"`
	// cause is the cause of the last failure, in CamelCase.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Cause string `json:"cause,omitempty"`
	// policyHash is the hash of the policy at the end of the last attempt. With another policy, an attempt of class Policy starts again at once.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PolicyHash string `json:"policyHash,omitempty"`
	// backendsHash is the hash of the configuration of backends at the end of the last attempt. With another configuration, an attempt of class Policy starts again at once.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BackendsHash string `json:"backendsHash,omitempty"`
}

// JobStatus names the Job and the pod of the current attempt, pinned by uid.
type JobStatus struct {
	// name is the name of the Job.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// run is what the Job does: Agent has an agent in its pod, Seal works on the trusted volume without one, Gate runs one gate in a pod of its own.
	// +required
	Run RunKind `json:"run"`
	// errand is true for a seal run that serves requests (a rollback, a checkpoint) and delivers nothing.
	// +optional
	Errand bool `json:"errand,omitempty"`
	// mode is the execution mode of the pod of an agent run. A change of mode is a new attempt.
	// +optional
	Mode ExecutionMode `json:"mode,omitempty"`
	// strategy is the strategy of the attempt to its end; see execution.strategy. If a policy changes from Auto to another strategy, the attempt follows the policy all the same.
	// +optional
	// +kubebuilder:validation:Enum=Direct;Shadow
	Strategy string `json:"strategy,omitempty"`
	// strategyReason says why the attempt has its strategy, if execution.strategy is Auto.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	StrategyReason string `json:"strategyReason,omitempty"`
	// podName is the Job's pod, once it exists.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName,omitempty"`
	// podUID is the uid of the only pod whose reports the manager takes.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PodUID string `json:"podUID,omitempty"`
	// startTime is when the manager made the Job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// waitStartTime is when the attempt began to wait, for a user or for its pod to start. Neither this wait nor waitedSeconds counts as running time.
	// +optional
	WaitStartTime *metav1.Time `json:"waitStartTime,omitempty"`
	// waitedSeconds is the length of the earlier waits of this attempt, in seconds.
	// +optional
	WaitedSeconds int64 `json:"waitedSeconds,omitempty"`
	// stopRequestTime is when the manager asked the watchdog to end. It waits a minute for a clean end.
	// +optional
	StopRequestTime *metav1.Time `json:"stopRequestTime,omitempty"`
	// endTime is when the manager noted the end of the attempt. Its time and outcome are in activeSeconds, failures and lost.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}

// CheckpointCounts counts checkpoints by verdict.
type CheckpointCounts struct {
	// total is the total number of checkpoints.
	// +optional
	Total int64 `json:"total"`
	// valid is the number of valid checkpoints.
	// +optional
	Valid int64 `json:"valid"`
	// invalid is the number of invalid checkpoints.
	// +optional
	Invalid int64 `json:"invalid"`
}

// RollbackStatus counts rollbacks by their cause.
type RollbackStatus struct {
	// total is the total number of rollbacks.
	// +required
	Total int64 `json:"total"`
	// supervision is the number of rollbacks by the ladder of anomalies, and of aborted tasks.
	// +required
	Supervision int64 `json:"supervision"`
	// request is the number of rollbacks that users requested.
	// +required
	Request int64 `json:"request"`
	// violation is the number of rollbacks by the policy, through strategy Shadow or revertOnViolation.
	// +required
	Violation int64 `json:"violation"`
	// last is the newest rollback.
	// +required
	Last LastRollback `json:"last"`
}

// LastRollback is the newest rollback.
type LastRollback struct {
	// rollbackTime is when the watchdog captured the state before the rollback.
	// +required
	RollbackTime metav1.Time `json:"rollbackTime"`
	// cause is what caused the rollback.
	// +required
	Cause RollbackCause `json:"cause"`
	// before is the name of the Checkpoint that holds the state before the rollback.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Before string `json:"before"`
	// to is the name of the Checkpoint that the workspace went back to: the requested one, the newest valid one or, for an aborted task, the newest valid one when the task began. If the watchdog has promoted parts of later Checkpoints since, these stay. Absent for the base.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to,omitempty"`
	// reason explains the rollback in words: what was wrong with the agent, the request, or the worst violation.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// PolicyStatus names the effective policy.
type PolicyStatus struct {
	// hash is the hash of the effective policy.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash"`
	// enforcement is the enforcement in effect.
	// +optional
	Enforcement Enforcement `json:"enforcement,omitempty"`
	// sources are the SupervisorPolicies that make up the effective policy, as namespace/name, most specific first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=320
	Sources []string `json:"sources,omitempty"`
}

// ObservedRequest is the result of a request.
type ObservedRequest struct {
	// id is the id of the request.
	// +required
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// state is the result of the request: Done or Failed.
	// +required
	// +kubebuilder:validation:Enum=Done;Failed
	State string `json:"state"`
	// message explains the state.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// observedTime is when Tidewaiter acted on the request.
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`
}
