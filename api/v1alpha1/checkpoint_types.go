// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Checkpoint is the record of one captured tree: what it held, its verdict, and what the watchdog did about it. The manager creates it once and whole, and it never changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ckpt,categories=tidewaiter
// +kubebuilder:selectablefield:JSONPath=`.spec.featureName`
// +kubebuilder:selectablefield:JSONPath=`.spec.verdict`
// +kubebuilder:selectablefield:JSONPath=`.spec.action`
// +kubebuilder:printcolumn:name="Feature",type=string,JSONPath=`.spec.featureName`
// +kubebuilder:printcolumn:name="Seq",type=integer,JSONPath=`.spec.sequence`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.spec.verdict`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.action`
// +kubebuilder:printcolumn:name="Files",type=integer,JSONPath=`.spec.files.total`
// +kubebuilder:printcolumn:name="Trigger",type=string,JSONPath=`.spec.trigger`,priority=1
// +kubebuilder:printcolumn:name="Commit",type=string,JSONPath=`.spec.commit`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.spec.violations[0].message`,priority=1
// +kubebuilder:printcolumn:name="Acknowledged",type=string,JSONPath=`.status.acknowledged[*].rule`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Checkpoint struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the record.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Checkpoint is a record: it cannot be changed"
	Spec CheckpointSpec `json:"spec"`
	// status is what happened to the checkpoint later.
	// +optional
	Status CheckpointStatus `json:"status,omitzero"`
}

// CheckpointList is a list of Checkpoints.
//
// +kubebuilder:object:root=true
type CheckpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Checkpoint `json:"items"`
}

// Verdict on a captured tree.
// +kubebuilder:validation:Enum=Valid;Invalid;Skipped
type Verdict string

// Verdicts.
const (
	// VerdictValid: every rule holds.
	VerdictValid Verdict = "Valid"
	// VerdictInvalid: the tree breaks at least one rule of severity Error or more.
	VerdictInvalid Verdict = "Invalid"
	// VerdictSkipped: nothing changed since the previous checkpoint.
	VerdictSkipped Verdict = "Skipped"
)

// Action is what was done about a checkpoint.
// +kubebuilder:validation:Enum=Promoted;PartlyPromoted;Held;Reverted;None
type Action string

// Actions.
const (
	// ActionPromoted: the tree is on the delivery branch.
	ActionPromoted Action = "Promoted"
	// ActionPartlyPromoted: the valid part of the tree is on the delivery branch.
	ActionPartlyPromoted Action = "PartlyPromoted"
	// ActionHeld: kept in the chain, not promoted; the workspace was left as it is.
	ActionHeld Action = "Held"
	// ActionReverted: kept in the chain; the workspace went back to the last valid tree.
	ActionReverted Action = "Reverted"
	// ActionNone: there was nothing to do.
	ActionNone Action = "None"
)

// Trigger of a checkpoint. Patch is one that an agent in Deterministic mode requested, and Steering is one before the watchdog takes work back because of an anomaly or an aborted task.
// +kubebuilder:validation:Enum=Interval;Changes;Task;Requested;Final;Patch;Steering
type Trigger string

// CheckpointSpec is the record. Full lists and diffs live in the trusted repository; an object stays under 4 KiB,
// one with violations under 8 KiB.
type CheckpointSpec struct {
	// featureName is the name of the Feature.
	// +required
	// +kubebuilder:validation:MaxLength=52
	FeatureName string `json:"featureName"`
	// featureUID is the uid of the Feature.
	// +required
	// +kubebuilder:validation:MaxLength=64
	FeatureUID string `json:"featureUID"`
	// sequence counts the Feature's checkpoints from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence"`
	// previous is the name of the checkpoint before this one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Previous string `json:"previous,omitempty"`
	// attempt is the attempt in which the watchdog took the checkpoint.
	// +required
	Attempt int64 `json:"attempt"`
	// task is the task that the agent worked on.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Task string `json:"task,omitempty"`
	// trigger is what caused the checkpoint.
	// +required
	Trigger Trigger `json:"trigger"`
	// captureTime is when the watchdog captured the workspace.
	// +required
	CaptureTime metav1.Time `json:"captureTime"`
	// commit is the commit in the private chain.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	// +kubebuilder:validation:MaxLength=40
	Commit string `json:"commit,omitempty"`
	// tree is the tree that the watchdog captured and checked.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	// +kubebuilder:validation:MaxLength=40
	Tree string `json:"tree,omitempty"`
	// base is the commit that the work started from.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	// +kubebuilder:validation:MaxLength=40
	Base string `json:"base,omitempty"`
	// deliveryCommit is the promoted commit, if there is one.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	// +kubebuilder:validation:MaxLength=40
	DeliveryCommit string `json:"deliveryCommit,omitempty"`
	// policyHash is the hash of the effective policy behind the verdict.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	PolicyHash string `json:"policyHash,omitempty"`
	// audit is true if the policy only reports: nothing followed from the verdict.
	// +optional
	Audit bool `json:"audit,omitempty"`
	// capture says how the watchdog held the workspace still.
	// +optional
	Capture CaptureInfo `json:"capture,omitzero"`
	// files counts the changed files against the base.
	// +optional
	Files FileCounts `json:"files,omitzero"`
	// lines counts the changed lines against the base.
	// +optional
	Lines LineCounts `json:"lines,omitzero"`
	// samplePaths are up to eight of the changed paths, escaped.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	SamplePaths []string `json:"samplePaths,omitempty"`
	// transient are names that came and went since the checkpoint before. It is absent if the watchdog saw none.
	// +optional
	Transient *TransientNames `json:"transient,omitempty"`
	// verdict is the verdict on the tree.
	// +required
	Verdict Verdict `json:"verdict"`
	// severity is the severity of the worst violation.
	// +optional
	Severity Severity `json:"severity,omitempty"`
	// reason is the rule of the worst violation, in CamelCase, or why there was nothing to check.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// violations are up to eight violations, the worst first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Violations []Violation `json:"violations,omitempty"`
	// violationCount is the number of all violations.
	// +optional
	ViolationCount int64 `json:"violationCount,omitempty"`
	// action is what the watchdog did about the checkpoint.
	// +required
	Action Action `json:"action"`
	// rollback says why the workspace, or a part of it, went back after the checkpoint. It is absent if nothing went back.
	// +optional
	Rollback *RollbackRecord `json:"rollback,omitempty"`
	// durations are the times that the steps took.
	// +optional
	Durations CheckpointDurations `json:"durations,omitzero"`
}

// RollbackCause says who took a workspace back: Supervision (the ladder of anomalies, or an aborted task), Request (a user) or Violation (the policy, by strategy Shadow or revertOnViolation).
// +kubebuilder:validation:Enum=Supervision;Request;Violation
type RollbackCause string

// Causes of rollbacks.
const (
	RollbackBySupervision RollbackCause = "Supervision"
	RollbackByRequest     RollbackCause = "Request"
	RollbackByViolation   RollbackCause = "Violation"
)

// RollbackRecord says why a workspace went back after a checkpoint, or a part of it.
type RollbackRecord struct {
	// cause says who took the workspace back: Supervision (the ladder of anomalies, or an aborted task), Request (a user) or Violation (the policy, by strategy Shadow or revertOnViolation).
	// +required
	Cause RollbackCause `json:"cause"`
	// to is the name of the requested checkpoint or, for an aborted task, of the newest valid one when the task began. It is absent if the workspace went back to the last promoted state or to the base.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to,omitempty"`
	// toBase is true if an aborted task had begun on the base, so that the workspace went back to the base.
	// +optional
	ToBase bool `json:"toBase,omitempty"`
	// reason explains the rollback in words. It is absent for a violation, which the checkpoint itself describes.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// CaptureInfo says how the watchdog held the workspace still.
type CaptureInfo struct {
	// frozen is true if the watchdog stopped the agent for the capture.
	// +optional
	Frozen bool `json:"frozen,omitempty"`
	// frozenMicros is how long the agent stood still, in microseconds.
	// +optional
	FrozenMicros int64 `json:"frozenMicros,omitempty"`
	// processes is the number of stopped processes.
	// +optional
	Processes int32 `json:"processes,omitempty"`
	// pause says how the agent answered when the watchdog first asked it to pause. It is absent if the watchdog did not ask.
	// +optional
	Pause *PauseInfo `json:"pause,omitempty"`
	// settled is false if the workspace still moved. Tidewaiter then records the checkpoint, but never promotes it.
	// +optional
	Settled bool `json:"settled"`
	// unsettledReason says what moved or could not be read.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	UnsettledReason string `json:"unsettledReason,omitempty"`
}

// PauseInfo is how an agent that takes part in pauses answered. Whatever it answers, the watchdog stops it.
type PauseInfo struct {
	// acknowledged is false if no answer came in time.
	// +optional
	Acknowledged bool `json:"acknowledged"`
	// micros is how long the answer took, or how long the watchdog waited for it, in microseconds.
	// +optional
	Micros int64 `json:"micros,omitempty"`
	// pendingOperations are what the agent called unfinished, in its own words.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=128
	PendingOperations []string `json:"pendingOperations,omitempty"`
}

// FileCounts counts changed files.
type FileCounts struct {
	// total is the sum of the other counts.
	// +optional
	Total int64 `json:"total"`
	// added is the number of added files.
	// +optional
	Added int64 `json:"added,omitempty"`
	// modified is the number of modified files.
	// +optional
	Modified int64 `json:"modified,omitempty"`
	// deleted is the number of deleted files.
	// +optional
	Deleted int64 `json:"deleted,omitempty"`
	// typeChanged is the number of paths that changed their type (file to symlink, for example).
	// +optional
	TypeChanged int64 `json:"typeChanged,omitempty"`
}

// TransientNames are names of files and directories that the watchdog saw between two checkpoints, and that neither of them has: an agent may make a
// file, run it and remove it. What was in them is not known, and no check looks at them. Files that are ignored are left out, and a name in a directory
// that has just appeared may have gone unseen.
type TransientNames struct {
	// names are up to 32 of these names, escaped, and as many as there is room for. A directory stands for everything in it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	Names []string `json:"names,omitempty"`
	// more is the number of further names.
	// +optional
	More int64 `json:"more,omitempty"`
	// incomplete is true if there may be other names: changes came too fast to follow one by one, or the watchdog did not watch everything.
	// +optional
	Incomplete bool `json:"incomplete,omitempty"`
}

// LineCounts counts changed lines of text files.
type LineCounts struct {
	// added is the number of added lines.
	// +optional
	Added int64 `json:"added,omitempty"`
	// deleted is the number of deleted lines.
	// +optional
	Deleted int64 `json:"deleted,omitempty"`
}

// Violation is one rule broken by one path.
type Violation struct {
	// rule is the broken rule; docs/reference/rules.md lists the rules.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Rule string `json:"rule"`
	// path is the path that breaks the rule, escaped. It is empty if the whole tree breaks it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Path string `json:"path,omitempty"`
	// severity is the severity of the violation.
	// +required
	Severity Severity `json:"severity"`
	// message says what is wrong. A long message keeps at least 160 characters.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message"`
	// suggestion says how to correct the violation. If several violations of one rule have the same suggestion, only the first one has it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Suggestion string `json:"suggestion,omitempty"`
}

// CheckpointDurations are the times of a checkpoint's steps, in microseconds.
type CheckpointDurations struct {
	// captureMicros is the time for reading, hashing and storing.
	// +optional
	CaptureMicros int64 `json:"captureMicros,omitempty"`
	// syncMicros is the time for making the checkpoint durable.
	// +optional
	SyncMicros int64 `json:"syncMicros,omitempty"`
	// judgeMicros is the time for checking the rules.
	// +optional
	JudgeMicros int64 `json:"judgeMicros,omitempty"`
	// actMicros is the time for promoting or restoring.
	// +optional
	ActMicros int64 `json:"actMicros,omitempty"`
}

// CheckpointStatus is what happened to the checkpoint later.
type CheckpointStatus struct {
	// conditions are Stored (the commit is in the trusted repository) and Restorable (the volume that holds it still exists).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// acknowledged are the broken rules of severity Critical that the agent says it has understood. This is only what the agent says: the watchdog promotes nothing because of it.
	// +optional
	// +listType=map
	// +listMapKey=rule
	// +kubebuilder:validation:MaxItems=8
	Acknowledged []Acknowledgment `json:"acknowledged,omitempty"`
}

// Acknowledgment is the agent's statement that it has understood that it broke a rule.
type Acknowledgment struct {
	// rule is the rule that the agent broke.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Rule string `json:"rule"`
	// turn is the turn of the conversation in which the agent said so. It is absent if the agent has had no turn.
	// +optional
	Turn int64 `json:"turn,omitempty"`
	// acknowledgmentTime is when the watchdog received the statement.
	// +required
	AcknowledgmentTime metav1.Time `json:"acknowledgmentTime"`
	// text is what the agent does instead, in its own words.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Text string `json:"text,omitempty"`
}
