// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Feature is one piece of work on one repository, given to one agent at a time and supervised until it is delivered.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=feat,categories=tidewaiter
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=='Succeeded')].reason`
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.spec.agent.runtime`
// +kubebuilder:printcolumn:name="Checkpoint",type=string,JSONPath=`.status.lastCheckpoint`
// +kubebuilder:printcolumn:name="Valid",type=integer,JSONPath=`.status.checkpoints.valid`
// +kubebuilder:printcolumn:name="Invalid",type=integer,JSONPath=`.status.checkpoints.invalid`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attempt`,priority=1
// +kubebuilder:printcolumn:name="Branch",type=string,JSONPath=`.status.branch`,priority=1
// +kubebuilder:printcolumn:name="Head",type=string,JSONPath=`.status.head`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=='Succeeded')].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name must be at most 52 characters: names of Jobs, volumes and Checkpoints are derived from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be lower-case letters, digits and '-' (no dots): names and labels of children are derived from it"
type Feature struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what should be done, by which agent, under which bounds.
	// +required
	Spec FeatureSpec `json:"spec"`
	// status is what has become of it.
	// +optional
	Status FeatureStatus `json:"status,omitzero"`
}

// FeatureList is a list of Features.
//
// +kubebuilder:object:root=true
type FeatureList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Feature `json:"items"`
}

// FeatureSpec says what is to be done. Fields fixed at creation are guarded here, on the parent, so that an optional
// field cannot be changed by removing and adding it.
//
// +kubebuilder:validation:XValidation:rule="has(self.prompt) != has(self.promptFrom)",message="exactly one of prompt and promptFrom must be set"
// +kubebuilder:validation:XValidation:rule="self.repository == oldSelf.repository",message="repository is fixed at creation: create a new Feature for another repository, revision or Secret"
// +kubebuilder:validation:XValidation:rule="has(self.workspace) == has(oldSelf.workspace) && (!has(self.workspace) || self.workspace == oldSelf.workspace)",message="workspace is fixed at creation: its volumes exist already"
// +kubebuilder:validation:XValidation:rule="self.agent.runtime == oldSelf.agent.runtime",message="agent.runtime is fixed at creation"
// +kubebuilder:validation:XValidation:rule="(has(self.delivery) && has(self.delivery.branch) ? self.delivery.branch : \"\") == (has(oldSelf.delivery) && has(oldSelf.delivery.branch) ? oldSelf.delivery.branch : \"\")",message="delivery.branch is fixed at creation"
// +kubebuilder:validation:XValidation:rule="!(has(self.delivery) && has(self.delivery.approval) && self.delivery.approval == 'Required' && has(self.workspace) && has(self.workspace.ephemeral) && self.workspace.ephemeral)",message="delivery.approval Required needs persistent volumes: remove workspace.ephemeral, or the work would be gone before it is approved"
// +kubebuilder:validation:XValidation:rule="!has(self.gates) || !has(self.plan) || !has(self.plan.milestones) || self.plan.milestones.all(m, m.tasks.all(t, !has(t.gates) || t.gates.all(g, self.gates.exists(x, x.name == g))))",message="a task names a gate that spec.gates does not have"
// +kubebuilder:validation:XValidation:rule="has(self.gates) || !has(self.plan) || !has(self.plan.milestones) || self.plan.milestones.all(m, m.tasks.all(t, !has(t.gates) || size(t.gates) == 0))",message="a task names a gate but spec.gates is empty"
type FeatureSpec struct {
	// prompt is the work in plain words. Exactly one of prompt and promptFrom must be set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Prompt string `json:"prompt,omitempty"`
	// promptFrom takes the prompt from elsewhere in the Feature's namespace.
	// +optional
	PromptFrom *PromptSource `json:"promptFrom,omitempty"`
	// repository is the Git repository that is worked on. Fixed at creation.
	// +required
	Repository Repository `json:"repository"`
	// planning says who makes the plan: None (plan as given; without milestones the prompt is the one task), Auto (a planner proposes it and it is taken) or Approve (a person approves the proposal first).
	// +optional
	// +kubebuilder:default=None
	Planning Planning `json:"planning,omitempty"`
	// plan bounds the work and breaks it into milestones and tasks.
	// +optional
	Plan *Plan `json:"plan,omitempty"`
	// agent is who does the work.
	// +required
	Agent Agent `json:"agent"`
	// execution says how the agent's writes become checkpoints. A policy may override it.
	// +optional
	Execution *Execution `json:"execution,omitempty"`
	// gates are commands that must exit 0 after the tasks that name them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Gates []Gate `json:"gates,omitempty"`
	// workspace sizes the volumes. Fixed at creation.
	// +optional
	Workspace *Workspace `json:"workspace,omitempty"`
	// delivery says what becomes of the promoted work.
	// +optional
	Delivery *Delivery `json:"delivery,omitempty"`
	// dependsOn names Features of the same namespace that must be delivered first.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=52
	DependsOn []string `json:"dependsOn,omitempty"`
	// priority orders Features that wait for capacity: higher first.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`
	// deadline bounds the running time; waiting (suspended, for approval, for an answer) does not count.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="deadline must be positive, for example 4h"
	Deadline *metav1.Duration `json:"deadline,omitempty"`
	// retries is how often an agent that failed (exited not 0) is started again. Lost pods and suspensions do not count.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Retries *int32 `json:"retries,omitempty"`
	// ttlAfterFinished deletes the Feature, its volumes and its Checkpoints this long after it was delivered or failed. Never, when absent.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="ttlAfterFinished must not be negative"
	TTLAfterFinished *metav1.Duration `json:"ttlAfterFinished,omitempty"`
	// suspend ends the pod after a checkpoint and keeps the work; set it back to false to go on.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// requests are one-shot acts, each done once; status.observedRequests says what became of each.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Requests []Request `json:"requests,omitempty"`
	// directives are what the agent must address next; people steer here.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Directives []Directive `json:"directives,omitempty"`
	// answers reply to questions of the agent (status.run.question).
	// +optional
	// +listType=map
	// +listMapKey=question
	// +kubebuilder:validation:MaxItems=64
	Answers []Answer `json:"answers,omitempty"`
}

// PromptSource names where a prompt is kept.
type PromptSource struct {
	// configMapKeyRef is a key of a ConfigMap in the Feature's namespace.
	// +required
	ConfigMapKeyRef ConfigMapKeyRef `json:"configMapKeyRef"`
}

// ConfigMapKeyRef names a key of a ConfigMap in the same namespace.
type ConfigMapKeyRef struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key in its data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// SecretRef names a Secret in the same namespace.
type SecretRef struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Repository is a Git repository over HTTPS.
type Repository struct {
	// url of the repository, https only and without credentials in it.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https://[^/@\\\\s]+/[^\\\\s]*$')",message="url must be https://host/path without user, password or spaces; credentials belong in credentialsSecretRef"
	URL string `json:"url"`
	// revision that the work starts from: a branch, tag or commit. The commit found at the start is kept for the Feature's whole life.
	// +optional
	// +kubebuilder:default=main
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._/+@-]+$') && !self.startsWith('-') && !self.contains('..')",message="revision must be a branch, tag or commit name"
	Revision string `json:"revision,omitempty"`
	// credentialsSecretRef names a Secret of type kubernetes.io/basic-auth (username, password), optionally with ca.crt for a server with its own CA. Only prepare and the watchdog can read it; the agent never can.
	// +optional
	CredentialsSecretRef *SecretRef `json:"credentialsSecretRef,omitempty"`
}

// Planning says who makes the plan.
// +kubebuilder:validation:Enum=None;Auto;Approve
type Planning string

// Ways to plan.
const (
	PlanningNone    Planning = "None"
	PlanningAuto    Planning = "Auto"
	PlanningApprove Planning = "Approve"
)

// Plan bounds the work.
type Plan struct {
	// allowedAreas are gitignore-style globs of what may change, matched on canonical paths ("web/**"). Everything, when absent.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	AllowedAreas []string `json:"allowedAreas,omitempty"`
	// forbiddenAreas must not change, even inside allowed areas.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	ForbiddenAreas []string `json:"forbiddenAreas,omitempty"`
	// files, when given, is the whole set of planned files: any other change is a plan violation.
	// +optional
	Files *PlannedFiles `json:"files,omitempty"`
	// contracts are locks held while the Feature runs, by the names that a policy gives them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	Contracts []string `json:"contracts,omitempty"`
	// milestones are worked on in order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Milestones []Milestone `json:"milestones,omitempty"`
}

// PlannedFiles is the set of paths (or globs) that a plan names, by what is to happen to them.
// +kubebuilder:validation:XValidation:rule="has(self.create) || has(self.modify) || has(self.delete)",message="files must name at least one path to create, modify or delete; leave files out to allow every path"
type PlannedFiles struct {
	// create names files that may be added.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Create []string `json:"create,omitempty"`
	// modify names files that may be changed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Modify []string `json:"modify,omitempty"`
	// delete names files that may be removed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Delete []string `json:"delete,omitempty"`
}

// Milestone is a group of tasks.
type Milestone struct {
	// name of the milestone.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// tasks are done in order, one after the other.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Tasks []Task `json:"tasks"`
}

// Task is one run of the agent.
type Task struct {
	// name of the task, unique within its milestone.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// instructions for the agent; the Feature's prompt is given with them.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Instructions string `json:"instructions,omitempty"`
	// gates that must pass after this task, by name from spec.gates.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	Gates []string `json:"gates,omitempty"`
}

// Agent is who does the work.
// +kubebuilder:validation:XValidation:rule="self.runtime != 'command' || (has(self.command) && size(self.command) > 0)",message="runtime command needs agent.command: an image's entrypoint cannot be known"
// +kubebuilder:validation:XValidation:rule="self.runtime != 'command' || has(self.image)",message="runtime command needs agent.image"
type Agent struct {
	// runtime says how the agent is driven: command runs any image with a command; others are built in (claude-code, codex, opencode, gemini-cli, worker). An unknown one is reported in the condition Accepted.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Runtime string `json:"runtime"`
	// image of the agent's container.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
	// command to run, as an argument vector; no shell is put around it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=65536
	Command []string `json:"command,omitempty"`
	// args are appended to command.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=65536
	Args []string `json:"args,omitempty"`
	// env are plain variables of the agent's environment. Secrets do not belong here: the agent is untrusted.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Env []EnvVar `json:"env,omitempty"`
	// resources of the agent's container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`
	// runtimeClassName selects a sandboxed container runtime (gVisor, Kata) for the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
	// runAsUser is the numeric user of agent and watchdog.
	// +optional
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// role is a role profile of the policy (doctrine and PACE plan).
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Role string `json:"role,omitempty"`
}

// EnvVar is a plain environment variable.
type EnvVar struct {
	// name of the variable. Names starting with TIDEWAITER_ are reserved.
	// +required
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('TIDEWAITER_')",message="environment names starting with TIDEWAITER_ are reserved"
	Name string `json:"name"`
	// value of the variable.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Value string `json:"value,omitempty"`
}

// Gate is a command that must exit 0.
type Gate struct {
	// name of the gate.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// command to run in the workspace.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command"`
	// timeout after which the gate has failed.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="timeout must be positive, for example 10m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Workspace sizes the volumes of a Feature.
// +kubebuilder:validation:XValidation:rule="!(has(self.ephemeral) && self.ephemeral && has(self.storageClassName))",message="storageClassName has no meaning when ephemeral is true"
type Workspace struct {
	// size of the workspace volume (and of the trusted one, which holds the repository and its checkpoints).
	// +optional
	// +kubebuilder:default="5Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Mi')) >= 0",message="size must be at least 16Mi"
	Size *resource.Quantity `json:"size,omitempty"`
	// storageClassName of the volumes; the cluster's default when absent.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`
	// ephemeral keeps the volumes in the pod: a lost pod starts again from the base revision.
	// +optional
	Ephemeral bool `json:"ephemeral,omitempty"`
}

// Delivery says what becomes of the promoted work.
type Delivery struct {
	// branch that is pushed; tidewaiter/<name of the Feature> when absent. Fixed at creation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9._/-]*[A-Za-z0-9_]$|^[A-Za-z0-9_]$') && !self.contains('..') && !self.contains('//') && !self.contains('/.') && !self.endsWith('.lock') && !self.contains('.lock/')",message="branch must be a valid Git branch name made of letters, digits, '.', '_', '/' and '-'"
	Branch string `json:"branch,omitempty"`
	// push the branch to the repository. Otherwise the work stays on the trusted volume.
	// +optional
	// +kubebuilder:default=true
	Push *bool `json:"push,omitempty"`
	// author of the delivered commits.
	// +optional
	Author *CommitAuthor `json:"author,omitempty"`
	// pullRequest asks for a pull request of the delivered branch.
	// +optional
	PullRequest *PullRequest `json:"pullRequest,omitempty"`
	// approval Required holds the delivery until approvedCommit names the head.
	// +optional
	// +kubebuilder:default=None
	Approval Approval `json:"approval,omitempty"`
	// approvedCommit is the exact commit that may be delivered (status.head). Setting it needs the verb "approve" on features.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	ApprovedCommit string `json:"approvedCommit,omitempty"`
}

// CommitAuthor is a Git identity.
type CommitAuthor struct {
	// name of the author.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^<>\\\\x00-\\\\x1f]+$')",message="author name must not contain '<', '>' or control characters"
	Name string `json:"name"`
	// email of the author.
	// +required
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^<>\\\\s]+@[^<>\\\\s]+$')",message="author email must look like name@host"
	Email string `json:"email"`
}

// PullRequest describes a pull request.
type PullRequest struct {
	// base branch of the pull request; the repository's revision when absent.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Base string `json:"base,omitempty"`
	// title of the pull request; the first line of the prompt when absent.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`
	// draft opens it as a draft.
	// +optional
	Draft bool `json:"draft,omitempty"`
}

// Approval says whether a person must approve the delivery.
// +kubebuilder:validation:Enum=None;Required
type Approval string

// Ways to approve.
const (
	ApprovalNone     Approval = "None"
	ApprovalRequired Approval = "Required"
)

// Request is a one-shot act.
// +kubebuilder:validation:XValidation:rule="[has(self.rollback), has(self.checkpoint), has(self.retry), has(self.resetBreaker), has(self.approvePlan)].filter(x, x).size() == 1",message="a request needs exactly one of rollback, checkpoint, retry, resetBreaker and approvePlan"
type Request struct {
	// id of the request; a request is done once, for as long as the Feature lives.
	// +required
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// rollback restores the tree of a checkpoint. What is there at that moment is captured first.
	// +optional
	Rollback *RollbackRequest `json:"rollback,omitempty"`
	// checkpoint takes a checkpoint now.
	// +optional
	Checkpoint *CheckpointRequest `json:"checkpoint,omitempty"`
	// retry starts the agent again from the last valid checkpoint of a Feature that is Blocked or Failed.
	// +optional
	Retry *RetryRequest `json:"retry,omitempty"`
	// resetBreaker closes the breaker that checkpoint failures opened.
	// +optional
	ResetBreaker *ResetBreakerRequest `json:"resetBreaker,omitempty"`
	// approvePlan accepts a proposed plan.
	// +optional
	ApprovePlan *ApprovePlanRequest `json:"approvePlan,omitempty"`
}

// RollbackRequest restores a tree.
type RollbackRequest struct {
	// checkpoint to restore, by the name of its object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Checkpoint string `json:"checkpoint"`
	// paths to restore; everything, when absent.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=4096
	Paths []string `json:"paths,omitempty"`
}

// CheckpointRequest takes a checkpoint now.
type CheckpointRequest struct{}

// RetryRequest starts the agent again.
type RetryRequest struct{}

// ResetBreakerRequest closes the breaker.
type ResetBreakerRequest struct{}

// ApprovePlanRequest accepts a proposed plan.
type ApprovePlanRequest struct {
	// hash of the proposed plan (status.run.plan.hash).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash"`
}

// Directive is something the agent must address.
type Directive struct {
	// id of the directive.
	// +required
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// type of the directive.
	// +optional
	// +kubebuilder:default=Functional
	// +kubebuilder:validation:Enum=Functional;Cleanup
	Type string `json:"type,omitempty"`
	// priority: Critical interrupts, Normal comes next, Low comes last.
	// +optional
	// +kubebuilder:default=Normal
	// +kubebuilder:validation:Enum=Critical;Normal;Low
	Priority string `json:"priority,omitempty"`
	// description of what must be addressed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	Description string `json:"description"`
	// rationale for it.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Rationale string `json:"rationale,omitempty"`
	// files it is about.
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
	// text of the answer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Text string `json:"text"`
}
