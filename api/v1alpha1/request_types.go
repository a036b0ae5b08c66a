// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Request is a one-time action.
// +kubebuilder:validation:XValidation:rule="[has(self.rollback), has(self.checkpoint), has(self.retry), has(self.resetBreaker), has(self.release), has(self.approvePlan), has(self.replan)].filter(x, x).size() == 1",message="a request needs exactly one of rollback, checkpoint, retry, resetBreaker, release, approvePlan and replan"
type Request struct {
	// id is the id of the request. Tidewaiter does a request once, for as long as the Feature lives.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// rollback restores the tree of a checkpoint, or a part of it, whether the agent of the Feature runs or not. The watchdog captures first what is there at that moment.
	// +optional
	Rollback *RollbackRequest `json:"rollback,omitempty"`
	// checkpoint takes a checkpoint now.
	// +optional
	Checkpoint *CheckpointRequest `json:"checkpoint,omitempty"`
	// retry starts the agent again from the last valid checkpoint if the Feature is Blocked or Failed. If the Feature waits for its next attempt, that attempt starts at once.
	// +optional
	Retry *RetryRequest `json:"retry,omitempty"`
	// resetBreaker closes the breaker that checkpoint failures opened.
	// +optional
	ResetBreaker *ResetBreakerRequest `json:"resetBreaker,omitempty"`
	// release lets an agent continue whose model call the watchdog holds because an anomaly continued.
	// +optional
	Release *ReleaseRequest `json:"release,omitempty"`
	// approvePlan approves the plan that a model has proposed (spec.planning Approve), so that the agent starts.
	// +optional
	ApprovePlan *ApprovePlanRequest `json:"approvePlan,omitempty"`
	// replan asks the model for another plan (spec.planning Auto or Approve). Tasks that are done stay. The task that the agent works on ends first; to plan at once, set spec.suspend until the pod has ended. If the Feature is Blocked or Failed, send retry with it.
	// +optional
	Replan *ReplanRequest `json:"replan,omitempty"`
}

// RollbackRequest restores a tree or a part of it.
// +kubebuilder:validation:XValidation:rule="has(self.paths) && self.paths.size() > 0 ? !has(self.kind) || self.kind == 'Paths' : !has(self.kind) || self.kind != 'Paths'",message="kind Paths needs paths, and no other kind takes any"
type RollbackRequest struct {
	// kind says what to restore. Full restores everything. Paths restores the named paths. Smart restores the paths that break a rule now and keeps every other change. Defaults to Paths if you name paths, and otherwise to Full.
	// +optional
	Kind RollbackKind `json:"kind,omitempty"`
	// checkpoint is the name of the Checkpoint to restore from, even if the object no longer exists. Defaults to the last valid state (the base, before there is one).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Checkpoint string `json:"checkpoint,omitempty"`
	// paths are the files or directories to restore, relative to the root of the repository.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=4096
	Paths []string `json:"paths,omitempty"`
}

// RollbackKind says how much to restore.
// +kubebuilder:validation:Enum=Full;Paths;Smart
type RollbackKind string

// Kinds of rollbacks.
const (
	RollbackFull  RollbackKind = "Full"
	RollbackPaths RollbackKind = "Paths"
	RollbackSmart RollbackKind = "Smart"
)

// CheckpointRequest takes a checkpoint now.
type CheckpointRequest struct{}

// RetryRequest starts the agent again.
type RetryRequest struct{}

// ResetBreakerRequest closes the breaker.
type ResetBreakerRequest struct{}

// ReleaseRequest lets an agent continue.
type ReleaseRequest struct{}

// ApprovePlanRequest approves a proposed plan.
type ApprovePlanRequest struct {
	// hash is the hash of the proposed plan (status.run.plan.hash). Tidewaiter refuses the approval of any other plan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash"`
}

// ReplanRequest asks for another plan.
type ReplanRequest struct {
	// directive says what must be different. The model reads it with the prompt and the plan so far.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Directive string `json:"directive,omitempty"`
}

// Directive is something the agent must address.
type Directive struct {
	// id is the id of the directive.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// type is the type of the directive. A Cleanup can wait: the agent gets 10 of them at a time. If it is not Critical, the watchdog drops it after 15 more finished tasks.
	// +optional
	// +kubebuilder:default=Functional
	// +kubebuilder:validation:Enum=Functional;Cleanup
	Type string `json:"type,omitempty"`
	// priority says when the agent gets the directive: Critical interrupts, Normal comes next, Low comes last. If the agent does not address it, the watchdog tells it again after 6, 12 and 24 turns.
	// +optional
	// +kubebuilder:default=Normal
	// +kubebuilder:validation:Enum=Critical;Normal;Low
	Priority string `json:"priority,omitempty"`
	// description says what the agent must address.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	Description string `json:"description"`
	// rationale says why.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Rationale string `json:"rationale,omitempty"`
	// files are the files that the directive is about.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Files []string `json:"files,omitempty"`
}

// Answer replies to a question of the agent.
type Answer struct {
	// question is the id of the question (status.run.question.id).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Question string `json:"question"`
	// text is the text of the answer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Text string `json:"text"`
}
