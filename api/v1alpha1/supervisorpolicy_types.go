// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SupervisorPolicy holds rules that Features are held to. In the system namespace it is global, elsewhere it is that
// project's; a selector narrows it to some Features.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=svpol,categories=tidewaiter
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Features",type=integer,JSONPath=`.status.features`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SupervisorPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the rules.
	// +required
	Spec SupervisorPolicySpec `json:"spec"`
	// status says whether they are in effect.
	// +optional
	Status SupervisorPolicyStatus `json:"status,omitzero"`
}

// SupervisorPolicyList is a list of SupervisorPolicies.
//
// +kubebuilder:object:root=true
type SupervisorPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SupervisorPolicy `json:"items"`
}

// Enforcement says whether violations are acted on.
// +kubebuilder:validation:Enum=Enforce;Audit
type Enforcement string

// Enforcements.
const (
	// EnforcementEnforce acts on violations.
	EnforcementEnforce Enforcement = "Enforce"
	// EnforcementAudit judges and reports everything, and blocks and reverts nothing.
	EnforcementAudit Enforcement = "Audit"
)

// SupervisorPolicySpec is the rules.
type SupervisorPolicySpec struct {
	// selector narrows the policy to Features with these labels; all Features of its scope when absent.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// priority among policies of the same scope: higher wins. A tie between values that differ is reported, not tossed.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// enforcement: Enforce acts on violations, Audit only reports them. Where several policies apply, Enforce wins.
	// +optional
	// +kubebuilder:default=Enforce
	Enforcement Enforcement `json:"enforcement,omitempty"`
	// defaults may be overridden by what is more specific.
	// +optional
	Defaults *Rules `json:"defaults,omitempty"`
	// overrides may not.
	// +optional
	Overrides *Rules `json:"overrides,omitempty"`
}

// Rules are what Features are held to. Absent values are taken from the next source.
type Rules struct {
	// supervision of the conversation.
	// +optional
	Supervision *SupervisionRules `json:"supervision,omitempty"`
	// execution in the Feature's own names.
	// +optional
	Execution *Execution `json:"execution,omitempty"`
	// paths that are guarded.
	// +optional
	Paths *PathRules `json:"paths,omitempty"`
	// changes bounds what a change may be made of.
	// +optional
	Changes *ChangeRules `json:"changes,omitempty"`
	// checks are user rules in CEL over a changed file.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Checks []Check `json:"checks,omitempty"`
	// contracts names groups of paths that need a lock to be changed.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Contracts map[string]ContractRule `json:"contracts,omitempty"`
	// anomalies says when an agent is taken to be in trouble.
	// +optional
	Anomalies *AnomalyRules `json:"anomalies,omitempty"`
	// roles are role profiles of agents.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Roles map[string]RoleProfile `json:"roles,omitempty"`
	// reviewers that look at the work at breakpoints.
	// +optional
	Reviewers *ReviewerRules `json:"reviewers,omitempty"`
	// models maps a role to a backend and model of the gateway.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Models map[string]ModelRef `json:"models,omitempty"`
	// budget is enforced before each model call.
	// +optional
	Budget *Budget `json:"budget,omitempty"`
	// breaker stops a Feature whose checkpoints cannot be taken.
	// +optional
	Breaker *BreakerRules `json:"breaker,omitempty"`
	// egress lists hosts that may be reached through the gateway.
	// +optional
	Egress *EgressRules `json:"egress,omitempty"`
	// capacity bounds how many Features run at once in a project.
	// +optional
	Capacity *CapacityRules `json:"capacity,omitempty"`
	// retention says how much of the past is kept.
	// +optional
	Retention *RetentionRules `json:"retention,omitempty"`
	// ledger says what happens when the ledger cannot be written.
	// +optional
	Ledger *LedgerRules `json:"ledger,omitempty"`
}

// SupervisionRules are about the conversation between agent and model.
type SupervisionRules struct {
	// enabled supervision of the conversation; built-in true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// timeoutProfile of a model call: Standard 60s, Long 120s, Extended 300s.
	// +optional
	// +kubebuilder:validation:Enum=Standard;Long;Extended
	TimeoutProfile string `json:"timeoutProfile,omitempty"`
	// maxRetries of an answer that breaks a major rule; built-in 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	MaxRetries *int32 `json:"maxRetries,omitempty"`
	// failOnViolation fails the task when retries are spent; built-in true.
	// +optional
	FailOnViolation *bool `json:"failOnViolation,omitempty"`
	// allowRawOutput lets answers through unformatted; built-in false.
	// +optional
	AllowRawOutput *bool `json:"allowRawOutput,omitempty"`
	// requireFormatValidation checks answers against Output templates; built-in true.
	// +optional
	RequireFormatValidation *bool `json:"requireFormatValidation,omitempty"`
}

// PathRules guard paths.
type PathRules struct {
	// protected paths must not change, also where they do not exist yet. Lists of all sources are united with the built-in one.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Protected []string `json:"protected,omitempty"`
	// rules grant or deny writing to paths by role.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Rules []PathRule `json:"rules,omitempty"`
	// severity of a change to a protected, forbidden or not allowed path; built-in Error.
	// +optional
	Severity Severity `json:"severity,omitempty"`
}

// PathRule grants or denies writing to paths by role.
type PathRule struct {
	// paths as gitignore-style globs.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Paths []string `json:"paths"`
	// roles that the rule is about; all, when absent.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	Roles []string `json:"roles,omitempty"`
	// access that these roles have: Write or ReadOnly.
	// +required
	// +kubebuilder:validation:Enum=Write;ReadOnly
	Access string `json:"access"`
}

// Permission for a kind of change: Allow, Warn (severity Warning) or Deny (severity Error).
// +kubebuilder:validation:Enum=Allow;Warn;Deny
type Permission string

// Permissions.
const (
	PermissionAllow Permission = "Allow"
	PermissionWarn  Permission = "Warn"
	PermissionDeny  Permission = "Deny"
)

// ChangeRules bound what a change may be made of.
type ChangeRules struct {
	// maxFiles that may differ from the base.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxFiles *int64 `json:"maxFiles,omitempty"`
	// maxLines that may be added and removed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxLines *int64 `json:"maxLines,omitempty"`
	// maxFileSize of a changed file; built-in 50Mi.
	// +optional
	MaxFileSize *resource.Quantity `json:"maxFileSize,omitempty"`
	// maxWorkspaceSize of all files in the workspace, ignored ones included; built-in 1Gi.
	// +optional
	MaxWorkspaceSize *resource.Quantity `json:"maxWorkspaceSize,omitempty"`
	// maxWorkspaceFiles in the workspace, ignored ones included; built-in 200000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxWorkspaceFiles *int64 `json:"maxWorkspaceFiles,omitempty"`
	// symlinks that leave the workspace or are absolute are always denied; this is about the others. Built-in Warn.
	// +optional
	Symlinks Permission `json:"symlinks,omitempty"`
	// specialFiles: FIFOs, sockets and devices; built-in Deny.
	// +optional
	SpecialFiles Permission `json:"specialFiles,omitempty"`
	// hardlinks to files outside the workspace's own tree; built-in Warn.
	// +optional
	Hardlinks Permission `json:"hardlinks,omitempty"`
	// executables that were not executable before; built-in Warn.
	// +optional
	Executables Permission `json:"executables,omitempty"`
	// binaries: files with NUL bytes; built-in Warn.
	// +optional
	Binaries Permission `json:"binaries,omitempty"`
	// secrets: keys and tokens in content; built-in Deny.
	// +optional
	Secrets Permission `json:"secrets,omitempty"`
}

// Check is a user rule in CEL.
type Check struct {
	// name of the check, used as the rule's name.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// cel is an expression over file (path, mode, size, linesAdded, linesRemoved, kind, role) that is true when the check is violated.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	CEL string `json:"cel"`
	// message for people and for the agent.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message"`
	// severity of a violation.
	// +optional
	// +kubebuilder:default=Error
	Severity Severity `json:"severity,omitempty"`
}

// ContractRule names the paths of a contract.
type ContractRule struct {
	// paths as gitignore-style globs.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Paths []string `json:"paths"`
}

// AnomalyRules say when an agent is taken to be in trouble. Figures are turns of the conversation.
type AnomalyRules struct {
	// checkEveryTurns is how often the conversation is looked at; built-in 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	CheckEveryTurns *int32 `json:"checkEveryTurns,omitempty"`
	// cooldownTurns between two messages about the same anomaly; built-in 6.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CooldownTurns *int32 `json:"cooldownTurns,omitempty"`
	// stall: so many turns without progress; built-in 12.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Stall *int32 `json:"stall,omitempty"`
	// loop: so many equal failing calls in a row; built-in 3.
	// +optional
	// +kubebuilder:validation:Minimum=2
	Loop *int32 `json:"loop,omitempty"`
	// contextPercent of the model's window that calls for a wrap-up; built-in 80.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ContextPercent *int32 `json:"contextPercent,omitempty"`
	// cascade: so many different tools failing within the last five calls; built-in 3.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=5
	Cascade *int32 `json:"cascade,omitempty"`
}

// RoleProfile is the doctrine and PACE plan of a role.
type RoleProfile struct {
	// doctrine of the role.
	// +optional
	Doctrine *Doctrine `json:"doctrine,omitempty"`
	// pace says what to do as the work falls off its plan.
	// +optional
	Pace *PacePlan `json:"pace,omitempty"`
}

// Doctrine of a role.
type Doctrine struct {
	// saluteIntervalTurns between status reports; built-in 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	SaluteIntervalTurns *int32 `json:"saluteIntervalTurns,omitempty"`
	// maxTurnsWithoutProgress before it is a stall; built-in 12.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxTurnsWithoutProgress *int32 `json:"maxTurnsWithoutProgress,omitempty"`
}

// PacePlan says in words what to do at each level.
type PacePlan struct {
	// alternate way when the primary one fails.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Alternate string `json:"alternate,omitempty"`
	// contingent way when both fail.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Contingent string `json:"contingent,omitempty"`
	// emergency: how to stop in order.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Emergency string `json:"emergency,omitempty"`
}

// ReviewerRules say which reviewers run when.
type ReviewerRules struct {
	// codeStyle reviews conventions; built-in every 5 tasks and at milestones.
	// +optional
	CodeStyle *ReviewerRule `json:"codeStyle,omitempty"`
	// design reviews structure; built-in at milestones.
	// +optional
	Design *ReviewerRule `json:"design,omitempty"`
	// knowledge writes down what was learnt; built-in every 3 tasks and at milestones.
	// +optional
	Knowledge *ReviewerRule `json:"knowledge,omitempty"`
	// urgencyThreshold that pulls reviews forward, a decimal number; built-in "1.0".
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]{1,3}(\.[0-9]{1,3})?$`
	UrgencyThreshold string `json:"urgencyThreshold,omitempty"`
}

// ReviewerRule says when a reviewer runs.
type ReviewerRule struct {
	// enabled, or not.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// everyTasks finished tasks.
	// +optional
	// +kubebuilder:validation:Minimum=1
	EveryTasks *int32 `json:"everyTasks,omitempty"`
	// onMilestone, when a milestone is complete.
	// +optional
	OnMilestone *bool `json:"onMilestone,omitempty"`
}

// ModelRef names a backend and a model of the gateway.
type ModelRef struct {
	// backend of the gateway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Backend string `json:"backend"`
	// model of that backend.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Model string `json:"model"`
}

// Budget of a Feature.
type Budget struct {
	// inputTokens in all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	InputTokens *int64 `json:"inputTokens,omitempty"`
	// outputTokens in all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	OutputTokens *int64 `json:"outputTokens,omitempty"`
	// cost in the gateway's currency, a decimal number.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]{1,9}(\.[0-9]{1,6})?$`
	Cost string `json:"cost,omitempty"`
}

// BreakerRules stop a Feature whose checkpoints cannot be taken.
type BreakerRules struct {
	// maxCheckpointFailures in a row; built-in 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxCheckpointFailures *int32 `json:"maxCheckpointFailures,omitempty"`
}

// EgressRules list hosts.
type EgressRules struct {
	// agent may reach these (package registries); built-in none.
	// +optional
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MaxItems=128
	Agent []EgressHost `json:"agent,omitempty"`
	// git hosts that the watchdog may reach; when no policy lists any, the Feature's own repository host on public addresses.
	// +optional
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MaxItems=128
	Git []EgressHost `json:"git,omitempty"`
}

// EgressHost is a host that may be reached over TLS.
type EgressHost struct {
	// host name, exact; "*.example.com" stands for every name below it.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Host string `json:"host"`
	// port; built-in 443.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// allowPrivate lets the host resolve to private addresses (a server inside the cluster or the company).
	// +optional
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// CapacityRules bound how much runs at once.
type CapacityRules struct {
	// maxRunning Features of a project; unlimited when no policy says.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxRunning *int32 `json:"maxRunning,omitempty"`
}

// RetentionRules say how much of the past is kept.
type RetentionRules struct {
	// checkpoints kept as objects for each Feature; built-in 10. Invalid and promoted ones are kept longest.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Checkpoints *int32 `json:"checkpoints,omitempty"`
	// ledger entries are kept this long; built-in 720h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="ledger must be positive, for example 720h"
	Ledger *metav1.Duration `json:"ledger,omitempty"`
}

// LedgerRules say what happens when the ledger cannot be written.
type LedgerRules struct {
	// onFailure: Closed refuses model calls that cannot be recorded (built-in), Open lets them through.
	// +optional
	// +kubebuilder:validation:Enum=Closed;Open
	OnFailure string `json:"onFailure,omitempty"`
}

// SupervisorPolicyStatus says whether a policy is in effect.
type SupervisorPolicyStatus struct {
	// observedGeneration is the generation that was looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// features that it applies to now.
	// +optional
	Features int32 `json:"features"`
	// conditions: Valid, and Ready derived from it.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
