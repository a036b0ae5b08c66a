// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Checkpoint is the record of one captured tree: what it held, how it was judged and what was done about it. It is
// created once and whole by the manager, and never changes.
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
	// VerdictInvalid: at least one rule of severity Error or more is broken.
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

// Trigger of a checkpoint; Patch is one that an agent in Deterministic mode asked for, and Steering one before work is taken back because of an anomaly.
// +kubebuilder:validation:Enum=Interval;Changes;Task;Requested;Final;Patch;Steering
type Trigger string

// CheckpointSpec is the record. Full lists and diffs live in the trusted repository; an object stays under 4 KiB,
// one with violations under 8 KiB.
type CheckpointSpec struct {
	// featureName is the Feature.
	// +required
	// +kubebuilder:validation:MaxLength=52
	FeatureName string `json:"featureName"`
	// featureUID is its uid.
	// +required
	// +kubebuilder:validation:MaxLength=64
	FeatureUID string `json:"featureUID"`
	// sequence counts the Feature's checkpoints from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence"`
	// previous is the name of the checkpoint before it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Previous string `json:"previous,omitempty"`
	// attempt that it was taken in.
	// +required
	Attempt int64 `json:"attempt"`
	// task that was worked on.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Task string `json:"task,omitempty"`
	// trigger of it.
	// +required
	Trigger Trigger `json:"trigger"`
	// captureTime is when the workspace was captured.
	// +required
	CaptureTime metav1.Time `json:"captureTime"`
	// commit in the private chain.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	// +kubebuilder:validation:MaxLength=40
	Commit string `json:"commit,omitempty"`
	// tree that was captured and judged.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	// +kubebuilder:validation:MaxLength=40
	Tree string `json:"tree,omitempty"`
	// base is the commit that the work started from.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	// +kubebuilder:validation:MaxLength=40
	Base string `json:"base,omitempty"`
	// deliveryCommit is the promoted commit, when it was promoted.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	// +kubebuilder:validation:MaxLength=40
	DeliveryCommit string `json:"deliveryCommit,omitempty"`
	// policyHash is the effective policy that judged it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	PolicyHash string `json:"policyHash,omitempty"`
	// audit is true when the policy only reports: the verdict was not acted on.
	// +optional
	Audit bool `json:"audit,omitempty"`
	// capture says how the workspace was held still.
	// +optional
	Capture CaptureInfo `json:"capture,omitzero"`
	// files changed against the base.
	// +optional
	Files FileCounts `json:"files,omitzero"`
	// lines changed against the base.
	// +optional
	Lines LineCounts `json:"lines,omitzero"`
	// samplePaths are up to eight of the changed paths, escaped.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	SamplePaths []string `json:"samplePaths,omitempty"`
	// transient are names that came and went since the checkpoint before; absent where none was seen.
	// +optional
	Transient *TransientNames `json:"transient,omitempty"`
	// verdict on the tree.
	// +required
	Verdict Verdict `json:"verdict"`
	// severity of the worst violation.
	// +optional
	Severity Severity `json:"severity,omitempty"`
	// reason is the rule of the worst violation, in CamelCase, or why there was nothing to judge.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// violations are up to eight of what breaks a rule, worst first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Violations []Violation `json:"violations,omitempty"`
	// violationCount is how many there are in all.
	// +optional
	ViolationCount int64 `json:"violationCount,omitempty"`
	// action taken.
	// +required
	Action Action `json:"action"`
	// rollback says why the workspace went back after it, or a part of it; absent where nothing did.
	// +optional
	Rollback *RollbackRecord `json:"rollback,omitempty"`
	// durations of the steps.
	// +optional
	Durations CheckpointDurations `json:"durations,omitzero"`
}

// RollbackCause says who took a workspace back: Supervision (the ladder of anomalies), Request (a person) or Violation (the policy, by
// strategy Shadow or revertOnViolation).
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
	// cause of it.
	// +required
	Cause RollbackCause `json:"cause"`
	// to is the name of the checkpoint that was asked for; absent where the workspace went back to what was promoted last.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to,omitempty"`
	// reason in words; absent for a violation, which the checkpoint itself tells of.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// CaptureInfo says how the workspace was held still.
type CaptureInfo struct {
	// frozen is true when the agent was stopped for it.
	// +optional
	Frozen bool `json:"frozen,omitempty"`
	// frozenMicros is how long, in microseconds.
	// +optional
	FrozenMicros int64 `json:"frozenMicros,omitempty"`
	// processes that were stopped.
	// +optional
	Processes int32 `json:"processes,omitempty"`
	// pause is what the agent made of being asked to pause first; absent where it was not asked.
	// +optional
	Pause *PauseInfo `json:"pause,omitempty"`
	// settled is false when the workspace still moved: the checkpoint is recorded but never promoted.
	// +optional
	Settled bool `json:"settled"`
	// unsettledReason says what moved or could not be read.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	UnsettledReason string `json:"unsettledReason,omitempty"`
}

// PauseInfo is what an agent that takes part in pauses made of being asked for one. It was stopped whatever it answered.
type PauseInfo struct {
	// acknowledged is false when no answer came in time.
	// +optional
	Acknowledged bool `json:"acknowledged"`
	// micros is how long the answer took, or was waited for, in microseconds.
	// +optional
	Micros int64 `json:"micros,omitempty"`
	// pendingOperations are what the agent said was not finished, in its own words.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=128
	PendingOperations []string `json:"pendingOperations,omitempty"`
}

// FileCounts counts changed files.
type FileCounts struct {
	// total is the sum of the others.
	// +optional
	Total int64 `json:"total"`
	// added files.
	// +optional
	Added int64 `json:"added,omitempty"`
	// modified files.
	// +optional
	Modified int64 `json:"modified,omitempty"`
	// deleted files.
	// +optional
	Deleted int64 `json:"deleted,omitempty"`
	// typeChanged paths (file to symlink, for example).
	// +optional
	TypeChanged int64 `json:"typeChanged,omitempty"`
}

// TransientNames are names of files and directories that the watchdog saw between two checkpoints, and that neither of them has: an agent may make a
// file, run it and remove it. What was in them is not known, and no check looks at them. Files that are ignored are left out, and a name in a directory
// that has just appeared may have gone unseen.
type TransientNames struct {
	// names are up to 32 of them, escaped, and as many as there is room for. A directory stands for all that was in it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	Names []string `json:"names,omitempty"`
	// more counts the names that are not listed.
	// +optional
	More int64 `json:"more,omitempty"`
	// incomplete is true when there may be others: changes came too fast to be followed one by one, or not everything was watched.
	// +optional
	Incomplete bool `json:"incomplete,omitempty"`
}

// LineCounts counts changed lines of text files.
type LineCounts struct {
	// added lines.
	// +optional
	Added int64 `json:"added,omitempty"`
	// deleted lines.
	// +optional
	Deleted int64 `json:"deleted,omitempty"`
}

// Violation is one rule broken by one path.
type Violation struct {
	// rule that is broken; docs/reference/rules.md lists them.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Rule string `json:"rule"`
	// path that breaks it, escaped; empty where it is the whole tree.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Path string `json:"path,omitempty"`
	// severity of it.
	// +required
	Severity Severity `json:"severity"`
	// message says what is wrong; of a long one at least 160 characters are kept.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message"`
	// suggestion says how to correct it. Where several violations of one rule have the same suggestion, the first one has it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Suggestion string `json:"suggestion,omitempty"`
}

// CheckpointDurations are the times of a checkpoint's steps, in microseconds.
type CheckpointDurations struct {
	// captureMicros: reading, hashing and storing.
	// +optional
	CaptureMicros int64 `json:"captureMicros,omitempty"`
	// syncMicros: making it durable.
	// +optional
	SyncMicros int64 `json:"syncMicros,omitempty"`
	// judgeMicros: judging.
	// +optional
	JudgeMicros int64 `json:"judgeMicros,omitempty"`
	// actMicros: promoting or restoring.
	// +optional
	ActMicros int64 `json:"actMicros,omitempty"`
}

// CheckpointStatus is what happened to the checkpoint later.
type CheckpointStatus struct {
	// conditions: Stored (the commit is in the trusted repository), Restorable (the volume that holds it still exists).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// acknowledged are the rules of severity Critical that the agent says it has understood that it broke. It is the agent's word alone: nothing is
	// promoted because of it.
	// +optional
	// +listType=map
	// +listMapKey=rule
	// +kubebuilder:validation:MaxItems=8
	Acknowledged []Acknowledgment `json:"acknowledged,omitempty"`
}

// Acknowledgment is the agent's word that it has understood that it broke a rule.
type Acknowledgment struct {
	// rule that it broke.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Rule string `json:"rule"`
	// turn of the agent's conversation in which it said so; absent for one that has had no turn.
	// +optional
	Turn int64 `json:"turn,omitempty"`
	// time at which the watchdog heard it.
	// +required
	Time metav1.Time `json:"time"`
	// text is what it does instead, in its own words.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Text string `json:"text,omitempty"`
}
