// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Feature is one piece of work on one repository. Tidewaiter gives it to one agent at a time, and supervises it until it delivers the work.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=feat,categories=tidewaiter
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.spec.agent.runtime`
// +kubebuilder:selectablefield:JSONPath=`.spec.repository.url`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=='Succeeded')].reason`
// +kubebuilder:printcolumn:name="Task",type=string,JSONPath=`.status.run.report.task`
// +kubebuilder:printcolumn:name="Anomaly",type=string,JSONPath=`.status.run.anomalies[0].type`
// +kubebuilder:printcolumn:name="Cost",type=string,JSONPath=`.status.run.usage.cost`
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.spec.agent.runtime`,priority=1
// +kubebuilder:printcolumn:name="Checkpoint",type=string,JSONPath=`.status.lastCheckpoint`,priority=1
// +kubebuilder:printcolumn:name="Valid",type=integer,JSONPath=`.status.checkpoints.valid`,priority=1
// +kubebuilder:printcolumn:name="Invalid",type=integer,JSONPath=`.status.checkpoints.invalid`,priority=1
// +kubebuilder:printcolumn:name="Turn",type=integer,JSONPath=`.status.run.turn`,priority=1
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attempt`,priority=1
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.status.job.strategy`,priority=1
// +kubebuilder:printcolumn:name="Rollbacks",type=integer,JSONPath=`.status.rollbacks.total`,priority=1
// +kubebuilder:printcolumn:name="Branch",type=string,JSONPath=`.status.branch`,priority=1
// +kubebuilder:printcolumn:name="Head",type=string,JSONPath=`.status.head`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=='Succeeded')].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name must be at most 52 characters: names of Jobs, volumes and Checkpoints are derived from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be lower-case letters, digits and '-' (no dots): names and labels of children are derived from it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependsOn) || !(self.metadata.name in self.spec.dependsOn)",message="a Feature cannot depend on itself: remove its name from spec.dependsOn"
type Feature struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says what to do, by which agent and within which limits.
	// +required
	Spec FeatureSpec `json:"spec"`
	// status is the observed state of the Feature.
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

// FeatureSpec says what to do. Fields fixed at creation are guarded here, on the parent, so that an optional field cannot be changed by removing and adding it.
//
// +kubebuilder:validation:XValidation:rule="has(self.prompt) != has(self.promptFrom)",message="exactly one of prompt and promptFrom must be set"
// +kubebuilder:validation:XValidation:rule="self.repository == oldSelf.repository",message="repository is fixed at creation: create a new Feature for another repository, revision or Secret"
// +kubebuilder:validation:XValidation:rule="has(self.workspace) == has(oldSelf.workspace) && (!has(self.workspace) || self.workspace == oldSelf.workspace)",message="workspace is fixed at creation: its volumes exist already"
// +kubebuilder:validation:XValidation:rule="self.agent.runtime == oldSelf.agent.runtime",message="agent.runtime is fixed at creation"
// +kubebuilder:validation:XValidation:rule="(has(self.agent.role) ? self.agent.role : \"\") == (has(oldSelf.agent.role) ? oldSelf.agent.role : \"\")",message="agent.role is fixed at creation, because rules for paths and checks depend on it: create a new Feature for another role"
// +kubebuilder:validation:XValidation:rule="(has(self.delivery) && has(self.delivery.branch) ? self.delivery.branch : \"\") == (has(oldSelf.delivery) && has(oldSelf.delivery.branch) ? oldSelf.delivery.branch : \"\")",message="delivery.branch is fixed at creation"
// +kubebuilder:validation:XValidation:rule="!(has(self.delivery) && has(self.delivery.approval) && self.delivery.approval == 'Required' && has(self.workspace) && has(self.workspace.ephemeral) && self.workspace.ephemeral)",message="delivery.approval Required needs persistent volumes: remove workspace.ephemeral, or the work would be gone before it is approved"
// +kubebuilder:validation:XValidation:rule="!has(self.gates) || !has(self.plan) || !has(self.plan.milestones) || self.plan.milestones.all(m, m.tasks.all(t, !has(t.gates) || t.gates.all(g, self.gates.exists(x, x.name == g))))",message="a task names a gate that spec.gates does not have"
// +kubebuilder:validation:XValidation:rule="has(self.gates) || !has(self.plan) || !has(self.plan.milestones) || self.plan.milestones.all(m, m.tasks.all(t, !has(t.gates) || size(t.gates) == 0))",message="a task names a gate but spec.gates is empty"
// +kubebuilder:validation:XValidation:rule="!has(self.delivery) || !has(self.delivery.gates) || self.delivery.gates.all(g, has(self.gates) && self.gates.exists(x, x.name == g))",message="spec.delivery.gates names a gate that spec.gates does not have"
// +kubebuilder:validation:XValidation:rule="!has(self.delivery) || !has(self.delivery.gates) || size(self.delivery.gates) == 0 || !has(self.workspace) || !has(self.workspace.ephemeral) || !self.workspace.ephemeral",message="spec.delivery.gates needs volumes that outlive a pod: remove spec.workspace.ephemeral or the gates"
// +kubebuilder:validation:XValidation:rule="!has(self.planning) || self.planning != 'Approve' || !has(self.workspace) || !has(self.workspace.ephemeral) || !self.workspace.ephemeral",message="spec.planning Approve needs volumes that outlive a pod: remove spec.workspace.ephemeral, or set planning to Auto"
// +kubebuilder:validation:XValidation:rule="(has(self.prompt) ? size(self.prompt) : 0) + (has(self.plan) && has(self.plan.allowedAreas) ? self.plan.allowedAreas.map(x, 2 * size(x) + 16).sum() : 0) + (has(self.plan) && has(self.plan.forbiddenAreas) ? self.plan.forbiddenAreas.map(x, 2 * size(x) + 16).sum() : 0) + (has(self.plan) && has(self.plan.files) && has(self.plan.files.create) ? self.plan.files.create.map(x, 2 * size(x) + 16).sum() : 0) + (has(self.plan) && has(self.plan.files) && has(self.plan.files.modify) ? self.plan.files.modify.map(x, 2 * size(x) + 16).sum() : 0) + (has(self.plan) && has(self.plan.files) && has(self.plan.files.delete) ? self.plan.files.delete.map(x, 2 * size(x) + 16).sum() : 0) + (has(self.plan) && has(self.plan.milestones) ? self.plan.milestones.map(m, 2 * size(m.name) + 16 + m.tasks.map(t, 2 * size(t.name) + size(m.name) + 32 + (has(t.instructions) ? size(t.instructions) : 0) + (has(t.gates) ? t.gates.map(x, 2 * size(x) + 16).sum() : 0)).sum()).sum() : 0) + (has(self.agent) && has(self.agent.command) ? self.agent.command.map(x, size(x) + 16).sum() : 0) + (has(self.agent) && has(self.agent.args) ? self.agent.args.map(x, size(x) + 16).sum() : 0) + (has(self.agent) && has(self.agent.env) ? self.agent.env.map(x, 2 * size(x.name) + 16 + (has(x.value) ? size(x.value) : 0)).sum() : 0) + (has(self.gates) ? self.gates.map(g, 2 * size(g.name) + 16 + g.command.map(x, size(x) + 16).sum() + (has(g.env) ? g.env.map(x, 2 * size(x.name) + 16 + (has(x.value) ? size(x.value) : 0)).sum() : 0) + (has(g.report) ? size(g.report.path) + 16 : 0)).sum() : 0) + (has(self.delivery) && has(self.delivery.gates) ? self.delivery.gates.map(x, 2 * size(x) + 16).sum() : 0) + (has(self.requests) ? self.requests.map(r, 2 * size(r.id) + 32 + (has(r.rollback) ? (has(r.rollback.checkpoint) ? size(r.rollback.checkpoint) : 0) + (has(r.rollback.paths) ? r.rollback.paths.map(x, 2 * size(x) + 16).sum() : 0) : 0) + (has(r.approvePlan) ? size(r.approvePlan.hash) : 0) + (has(r.replan) && has(r.replan.directive) ? size(r.replan.directive) : 0)).sum() : 0) + (has(self.directives) ? self.directives.map(d, 2 * size(d.id) + 32 + size(d.description) + (has(d.rationale) ? size(d.rationale) : 0) + (has(d.files) ? d.files.map(x, 2 * size(x) + 16).sum() : 0)).sum() : 0) + (has(self.answers) ? self.answers.map(x, 2 * size(x.question) + size(x.text) + 16).sum() : 0) <= 131072",message="the spec is too large: its texts and lists are limited to 131072 characters in all. Entries of sets count twice, and each entry counts 16 more. Shorten prompt, instructions, areas, files, answers or directives, remove requests that are done, or keep long texts in files of the repository"
type FeatureSpec struct {
	// prompt is the work in plain words. Set exactly one of prompt and promptFrom.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Prompt string `json:"prompt,omitempty"`
	// promptFrom takes the prompt from elsewhere in the Feature's namespace.
	// +optional
	PromptFrom *PromptSource `json:"promptFrom,omitempty"`
	// repository is the Git repository that the agent works on. Fixed at creation.
	// +required
	Repository Repository `json:"repository"`
	// planning says who makes the plan. None takes the plan as given; without milestones, the prompt is the only task. Auto asks a model to divide the work before the first task starts (the role supervisor of the policy); the plan is in status.run.plan, and milestones of spec.plan come first. Approve asks as Auto does; then the pod ends, and no agent starts before a user approves the plan with a request approvePlan.
	// +optional
	// +kubebuilder:default=None
	Planning Planning `json:"planning,omitempty"`
	// plan limits the work and divides it into milestones and tasks.
	// +optional
	Plan *Plan `json:"plan,omitempty"`
	// agent is the agent that does the work.
	// +required
	Agent Agent `json:"agent"`
	// execution says how the agent's writes become checkpoints. A policy can override it.
	// +optional
	Execution *Execution `json:"execution,omitempty"`
	// budget lowers the budget for models that the policy gives the Feature; it cannot raise it.
	// +optional
	Budget *Budget `json:"budget,omitempty"`
	// gates are commands that prove the work: the watchdog runs them on the work after a task, and the task is done only if each of them exits with 0. A gate runs after the tasks that name it. If no task names it, and spec.delivery.gates does not name it either, it runs after the last task.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Gates []Gate `json:"gates,omitempty"`
	// workspace is the size and kind of the volumes. Fixed at creation.
	// +optional
	Workspace *Workspace `json:"workspace,omitempty"`
	// delivery says how Tidewaiter delivers the promoted work.
	// +optional
	Delivery *Delivery `json:"delivery,omitempty"`
	// dependsOn names Features of the same namespace whose delivery this Feature waits for.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=52
	// +kubebuilder:validation:XValidation:rule="size(self) == 0",message="this version does not act on spec.dependsOn: remove it, and create the Feature when the others are Delivered"
	DependsOn []string `json:"dependsOn,omitempty"`
	// priority orders Features that wait for capacity, a lock or an area: higher first, then older.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`
	// activeDeadline limits the running time. Waiting (suspended, for approval, for an answer) and gates in pods of their own do not count.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) > duration('0s')",message="activeDeadline must be a positive duration, for example 4h or 90m"
	ActiveDeadline *metav1.Duration `json:"activeDeadline,omitempty"`
	// maxRetries is how often Tidewaiter starts an agent again that failed (exited with another code than 0). Suspensions do not count. A lost pod, or one without the result of its gate, counts from the fourth on, if neither a user nor the cluster asked it to end (status.unordered). In a milestone with onTaskAborted: Continue, failures count for each task.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxRetries *int32 `json:"maxRetries,omitempty"`
	// ttlAfterFinished is how long after its delivery or failure Tidewaiter deletes the Feature, its volumes and its Checkpoints. Without it, Tidewaiter never deletes them.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) >= duration('0s')",message="ttlAfterFinished must be a duration, for example 24h"
	TTLAfterFinished *metav1.Duration `json:"ttlAfterFinished,omitempty"`
	// suspend ends the pod after a checkpoint and keeps the work. Set it back to false to continue.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// requests are one-time actions. Tidewaiter does each of them once, and status.observedRequests has the results.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Requests []Request `json:"requests,omitempty"`
	// directives are what the agent must address next: users steer here. The agent gets them with its next model call, and status.run.directives says how far each is. Remove a directive to take it back.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Directives []Directive `json:"directives,omitempty"`
	// answers are replies to questions of the agent (status.run.question). If the agent does not wait for an answer, it gets the answer with its next model call.
	// +optional
	// +listType=map
	// +listMapKey=question
	// +kubebuilder:validation:MaxItems=64
	Answers []Answer `json:"answers,omitempty"`
}

// PromptSource names the source of a prompt.
type PromptSource struct {
	// configMapKeyRef is a key of a ConfigMap in the Feature's namespace.
	// +required
	ConfigMapKeyRef ConfigMapKeyRef `json:"configMapKeyRef"`
}

// ConfigMapKeyRef names a key of a ConfigMap in the same namespace.
type ConfigMapKeyRef struct {
	// name is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key is a key in the data of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// SecretRef names a Secret in the same namespace.
type SecretRef struct {
	// name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Repository is a Git repository over HTTPS.
type Repository struct {
	// url is the address of the repository, https only and without credentials in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?/[A-Za-z0-9._~%!$&()*+,;=:/-]+$')",message="url must be https://host/path without user, password, query or spaces; credentials belong in credentialsSecretRef"
	URL string `json:"url"`
	// revision is the branch, tag or commit that the work starts from. The Feature keeps the first commit that this resolves to for its whole life.
	// +optional
	// +kubebuilder:default=main
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._/+@-]+$') && !self.startsWith('-') && !self.contains('..')",message="revision must be a branch, tag or commit name"
	Revision string `json:"revision,omitempty"`
	// credentialsSecretRef names a Secret of type kubernetes.io/basic-auth (username, password). The Secret can also have ca.crt, for a server with its own CA, and hosts, a list of the only hosts that get the credentials. Only prepare and the watchdog can read the Secret; the agent never can.
	// +optional
	CredentialsSecretRef *SecretRef `json:"credentialsSecretRef,omitempty"`
}
