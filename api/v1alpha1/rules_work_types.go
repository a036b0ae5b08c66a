// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PathRules guard paths.
type PathRules struct {
	// protected lists paths that must not change, even if they do not exist yet. Tidewaiter joins the lists of all sources with its default list.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Protected []string `json:"protected,omitempty"`
	// rules grant or deny write access to paths by role.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Rules []PathRule `json:"rules,omitempty"`
	// severity is the severity of a change to a protected path, to a forbidden path or outside the allowed areas. Defaults to Error.
	// +optional
	Severity Severity `json:"severity,omitempty"`
}

// PathRule grants or denies writing to paths by role.
type PathRule struct {
	// paths are gitignore-style globs of the paths that the rule is about.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Paths []string `json:"paths"`
	// roles are the roles that the rule is about. Without them, it is about all roles.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	Roles []string `json:"roles,omitempty"`
	// access is what these roles can do with the paths: Write or ReadOnly.
	// +required
	// +kubebuilder:validation:Enum=Write;ReadOnly
	Access string `json:"access"`
}

// Permission for a kind of change: Allow, Warn (severity Warning), Deny (severity Error) or Critical (denied with severity Critical).
// +kubebuilder:validation:Enum=Allow;Warn;Deny;Critical
type Permission string

// Permissions.
const (
	PermissionAllow Permission = "Allow"
	PermissionWarn  Permission = "Warn"
	PermissionDeny  Permission = "Deny"
	// PermissionCritical denies with severity Critical: the agent has to acknowledge it, and revertOnViolation takes it back.
	PermissionCritical Permission = "Critical"
)

// ChangeRules limit what a change can contain.
type ChangeRules struct {
	// maxFiles is the highest number of files that can differ from the base.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxFiles *int64 `json:"maxFiles,omitempty"`
	// maxLines is the highest number of lines that the work can add and remove.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxLines *int64 `json:"maxLines,omitempty"`
	// maxFileSize is the largest size of a changed file. Defaults to 50Mi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?(n|u|m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?$') && quantity(string(self)).compareTo(quantity('1')) >= 0 && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",message="maxFileSize must be a quantity from 1 to 1Pi, for example 50Mi"
	MaxFileSize *resource.Quantity `json:"maxFileSize,omitempty"`
	// maxWorkspaceSize is the largest size of all files in the workspace together, including ignored files. Defaults to 1Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?(n|u|m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?$') && quantity(string(self)).compareTo(quantity('1')) >= 0 && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",message="maxWorkspaceSize must be a quantity from 1 to 1Pi, for example 1Gi"
	MaxWorkspaceSize *resource.Quantity `json:"maxWorkspaceSize,omitempty"`
	// maxWorkspaceFiles is the highest number of files in the workspace, including ignored files. Defaults to 200000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxWorkspaceFiles *int64 `json:"maxWorkspaceFiles,omitempty"`
	// symlinks is the permission for symbolic links that stay inside the workspace. Tidewaiter always denies links that leave the workspace or are absolute. Defaults to Warn.
	// +optional
	Symlinks Permission `json:"symlinks,omitempty"`
	// specialFiles is the permission for FIFOs, sockets and devices. Defaults to Deny.
	// +optional
	SpecialFiles Permission `json:"specialFiles,omitempty"`
	// hardlinks is the permission for hard links to files outside the workspace's own tree. Defaults to Warn.
	// +optional
	Hardlinks Permission `json:"hardlinks,omitempty"`
	// executables is the permission for executable files that were not executable before. Defaults to Warn.
	// +optional
	Executables Permission `json:"executables,omitempty"`
	// binaries is the permission for files with NUL bytes. Defaults to Warn.
	// +optional
	Binaries Permission `json:"binaries,omitempty"`
	// secrets is the permission for keys and tokens in content. Defaults to Deny.
	// +optional
	Secrets Permission `json:"secrets,omitempty"`
	// confusables is the permission for new names that look like another name, or mix scripts. Defaults to Warn.
	// +optional
	Confusables Permission `json:"confusables,omitempty"`
	// unportableNames is the permission for new names that other systems cannot hold or misread. Defaults to Warn.
	// +optional
	UnportableNames Permission `json:"unportableNames,omitempty"`
	// hiddenCharacters is the permission for invisible and bidirectional characters in source code and in files that steer agents. Defaults to Warn.
	// +optional
	HiddenCharacters Permission `json:"hiddenCharacters,omitempty"`
	// strayLinks is the permission for symbolic links to a place outside the plan's allowed areas. Defaults to Warn.
	// +optional
	StrayLinks Permission `json:"strayLinks,omitempty"`
}

// Check is a rule that users write in CEL.
type Check struct {
	// name is the name of the check. Violations have it as the name of their rule.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// cel is an expression over file (path, mode, size, linesAdded, linesRemoved, kind, role). A file violates the check if the expression is true.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	CEL string `json:"cel"`
	// message is the text for users and for the agent.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message"`
	// severity is the severity of a violation.
	// +optional
	// +kubebuilder:default=Error
	Severity Severity `json:"severity,omitempty"`
}

// ContractRule names the paths of a contract.
type ContractRule struct {
	// name is the name of the contract, which plans use (spec.plan.contracts of a Feature).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// paths are gitignore-style globs of the paths of the contract.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Paths []string `json:"paths"`
}

// LockContention says what happens to a Feature that wants a lock that another Feature holds.
// +kubebuilder:validation:Enum=Wait;Fail
type LockContention string

// Ways to contend.
const (
	// LockContentionWait waits for the lock: higher priority first, then older.
	LockContentionWait LockContention = "Wait"
	// LockContentionFail blocks the Feature until a user requests a retry.
	LockContentionFail LockContention = "Fail"
)

// OverlapHandling says what happens to a Feature that may change the same paths as another Feature at work on the repository.
// +kubebuilder:validation:Enum=Allow;Warn;Wait
type OverlapHandling string

// Ways to handle an overlap.
const (
	// OverlapAllow does not look for it.
	OverlapAllow OverlapHandling = "Allow"
	// OverlapWarn tells of it.
	OverlapWarn OverlapHandling = "Warn"
	// OverlapWait waits until the other one has ended: higher priority first, then older.
	OverlapWait OverlapHandling = "Wait"
)

// DeliveryNotice says who learns of a change to what a Feature works on that another Feature of the project has delivered.
// +kubebuilder:validation:Enum=Off;Condition;Message;Directive
type DeliveryNotice string

// Ways to tell of a delivery.
const (
	// DeliveryNoticeOff tells no one.
	DeliveryNoticeOff DeliveryNotice = "Off"
	// DeliveryNoticeCondition sets a condition.
	DeliveryNoticeCondition DeliveryNotice = "Condition"
	// DeliveryNoticeMessage tells the agent, too.
	DeliveryNoticeMessage DeliveryNotice = "Message"
	// DeliveryNoticeDirective asks the agent to say what it has done about it.
	DeliveryNoticeDirective DeliveryNotice = "Directive"
)

// ConcurrencyRules say what happens to Features that would work on the same thing at the same time.
type ConcurrencyRules struct {
	// onLockConflict says what happens to a Feature that wants the lock of a contract that another Feature holds: Wait or Fail. Defaults to Wait.
	// +optional
	OnLockConflict LockContention `json:"onLockConflict,omitempty"`
	// onOverlap says what happens to a Feature whose allowed areas or planned files overlap with another Feature's on the same repository: Allow, Warn or Wait. Defaults to Warn.
	// +optional
	OnOverlap OverlapHandling `json:"onOverlap,omitempty"`
	// onDelivery says who learns that another Feature of the project has delivered a change to what a running Feature of the same repository works on. Off tells nobody. Condition tells users. Message also tells the agent. Directive asks the agent to address the change. Defaults to Message.
	// +optional
	OnDelivery DeliveryNotice `json:"onDelivery,omitempty"`
}

// BreakerRules stop a Feature when the watchdog cannot take its checkpoints.
type BreakerRules struct {
	// maxCheckpointFailures is how many failed checkpoints in a row open the breaker. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxCheckpointFailures *int32 `json:"maxCheckpointFailures,omitempty"`
}

// EgressRules list hosts that agents and watchdogs reach over TLS, through the gateway. An empty list lets nothing through.
type EgressRules struct {
	// agent lists hosts that the agent can reach, such as package registries, through the proxy that HTTPS_PROXY names in its environment. Defaults to none.
	// +optional
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MaxItems=128
	Agent []EgressHost `json:"agent,omitempty"`
	// git lists hosts that the watchdog can reach. If no policy lists any, it can reach the Feature's own repository host on public addresses.
	// +optional
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MaxItems=128
	Git []EgressHost `json:"git,omitempty"`
	// providerTools lists tools that models can use although their provider runs them, outside of Tidewaiter's sight. Examples are web searches, connectors, and addresses that the provider reads. Defaults to none. For the names, see docs/reference/provider-tools.md.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=129
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9_.$-]{1,64}/[a-z0-9_.$-]{1,64}$')",message="a name has a provider and what it does, for example anthropic/web_search"
	ProviderTools []string `json:"providerTools,omitempty"`
	// modelProviders says whether an agent can reach model providers directly, with a key of its own: Allow or Deny. No budget, no record and no rule sees such a call. Deny refuses their hosts in egress.agent, the hosts of the gateway's backends, and keys of providers in spec.agent.env. Defaults to Deny.
	// +optional
	ModelProviders ModelProviderAccess `json:"modelProviders,omitempty"`
}

// ModelProviderAccess says whether an agent can reach model providers directly instead of through the gateway.
// +kubebuilder:validation:Enum=Allow;Deny
type ModelProviderAccess string

// Ways to handle it.
const (
	// ModelProvidersAllow lets agents reach them, if egress.agent lists their hosts.
	ModelProvidersAllow ModelProviderAccess = "Allow"
	// ModelProvidersDeny lets agents reach models only through the gateway.
	ModelProvidersDeny ModelProviderAccess = "Deny"
)

// EgressHost is a host that agents or watchdogs can reach over TLS.
type EgressHost struct {
	// host is an exact name, or "*.example.com" for every name below it. It cannot be an IP address, because the TLS handshake must ask for the name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('(^|[.])([0-9]+|0x[0-9a-f]*)$')",message="host must be a name, for example registry.example.com: the gateway never connects to IP addresses"
	// +kubebuilder:validation:Pattern=`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Host string `json:"host"`
	// port is the port of the host. Defaults to 443.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// allowPrivate lets the host resolve to private addresses (a server inside the cluster or the company).
	// +optional
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// IsolationHandling says what happens to an agent when network policies that are not Tidewaiter's open its network.
// +kubebuilder:validation:Enum=Enforce;Warn
type IsolationHandling string

// Ways to handle it.
const (
	// IsolationEnforce starts no agent, and ends a running one cleanly.
	IsolationEnforce IsolationHandling = "Enforce"
	// IsolationWarn tells of it.
	IsolationWarn IsolationHandling = "Warn"
)

// CapacityRules limit how much runs at once.
type CapacityRules struct {
	// maxRunning is how many Features of a project run at once. The others wait with the reason AtCapacity, higher spec.priority first, then older. Defaults to 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxRunning *int32 `json:"maxRunning,omitempty"`
	// maxRunningTotal is how many Features of all projects together run at once. Only a policy in the namespace of the manager can set it. The others wait with the reason AtTotalCapacity. The projects take turns by the age of their waiting Features, and spec.priority decides within a project. Defaults to no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxRunningTotal *int32 `json:"maxRunningTotal,omitempty"`
}

// Asking says whether an agent can ask users.
// +kubebuilder:validation:Enum=Off;Guess;Wait
type Asking string

// Values of Asking.
const (
	AskingOff   Asking = "Off"
	AskingGuess Asking = "Guess"
	AskingWait  Asking = "Wait"
)

// AgentRules limit what Features can choose for their agents, and choose for Features that do not.
type AgentRules struct {
	// allowedRoles are the roles that spec.agent.role of a Feature can name. A role must be in the list of every policy that applies and has one. With such a list, Tidewaiter refuses a Feature without a role. If no policy has a list, a Feature can have any role, or none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	AllowedRoles []string `json:"allowedRoles,omitempty"`
	// questions is whether an agent can ask users with the tool ask_user. Wait has the agent wait for the answer. Guess has it continue at once with its best guess: users see the question in status.run.question, and the agent gets an answer that comes later. Off gives it no such tool. Defaults to Wait.
	// +optional
	Questions Asking `json:"questions,omitempty"`
	// questionTimeout is how long a question waits for its answer. After that the agent continues with its best guess. Defaults to 24h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) >= duration('1m')",message="questionTimeout must be a duration of at least 1m, for example 24h"
	QuestionTimeout *metav1.Duration `json:"questionTimeout,omitempty"`
	// parkAfter is how long a question waits before the pod of its agent ends, which frees its place in capacity.maxRunning. The answer then starts the next attempt in the agent's session. 0s never ends the pod. An agent of a runtime without sessions keeps its pod, and so does a Feature with spec.workspace.ephemeral. Defaults to 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) >= duration('0s')",message="parkAfter must be a duration, for example 10m, or 0s"
	ParkAfter *metav1.Duration `json:"parkAfter,omitempty"`
	// scheduling says which nodes run the pods of Features. It applies field by field, and key by key of a nodeSelector. In overrides it takes the choice from a Feature's spec.agent.scheduling.
	// +optional
	Scheduling *Scheduling `json:"scheduling,omitempty"`
	// resources are the limits and requests of the agents' containers, resource by resource. In overrides they take the choice from a Feature's spec.agent.resources. A request is never more than the limit in effect.
	// +optional
	Resources Resources `json:"resources,omitzero"`
	// imagePullSecrets are the names of Secrets in the namespace of each Feature. The kubelet pulls the images of its pods with them, and with the Secrets of the Feature and of other policies.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []SecretRef `json:"imagePullSecrets,omitempty"`
}

// GitRules say which repositories Features can work on, and how the watchdog asks Git servers.
type GitRules struct {
	// repositories are the repositories that Features can work on, as globs of host/path such as git.example.com/team/*. A repository must match in the list of every policy that applies and has one. If no policy has a list, Features can work on every repository. The glob "*" stands for any part of a name, "**" for any number of names, "?" for a character, and [a-z] for one character of these. The host has no upper case, and a port only if that is not 443. A ".git" at the end does not count.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(https://)?[^/@ ]+/[^/ ]')",message="a repository is a glob of host/path without a user, for example git.example.com/team/*"
	Repositories []string `json:"repositories,omitempty"`
	// silenceTimeout is how long a Git server can be silent before the watchdog treats it as dead. Progress counts as a sign of life, and so does the empty packet by which a server keeps a connection. Defaults to 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) >= duration('10s') && duration(self) <= duration('1h')",message="silenceTimeout must be a duration from 10s to 1h, for example 5m"
	SilenceTimeout *metav1.Duration `json:"silenceTimeout,omitempty"`
}

// DeliveryRules limit what Features can deliver, and say when an approver must approve a delivery.
type DeliveryRules struct {
	// approval says whether an approver must approve every delivery. Required holds a delivery until a user with the verb "approve" has named its commit. One policy, or the Feature, is enough to require it; None takes nothing back. Defaults to None.
	// +optional
	Approval Approval `json:"approval,omitempty"`
	// history says what happens to a delivery whose last commit keeps every rule of the policy in effect now, and an earlier one does not. Squash delivers one commit on the base. Hold delivers nothing until a user has decided. Defaults to Squash.
	// +optional
	History DeliveryHistory `json:"history,omitempty"`
	// branches are the branches that Features can deliver, as globs such as tidewaiter/** or release-[0-9]. The branch of a Feature must match in the list of every policy that applies and has one. A Feature that names no branch has tidewaiter/<name of the Feature>. If no policy has a list, Features can deliver every branch.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[^/ ]([^ ]*[^/ ])?$')",message="a branch is a glob without spaces, and without a slash at its beginning or end, for example tidewaiter/**"
	Branches []string `json:"branches,omitempty"`
}

// DeliveryHistory says what happens to a delivery with a commit in its history that breaks a rule.
// +kubebuilder:validation:Enum=Squash;Hold
type DeliveryHistory string

// Histories.
const (
	HistorySquash DeliveryHistory = "Squash"
	HistoryHold   DeliveryHistory = "Hold"
)

// RetentionRules say how much history Tidewaiter keeps.
type RetentionRules struct {
	// checkpoints is how many Checkpoint objects Tidewaiter keeps for each Feature. It keeps invalid and promoted ones longest. Defaults to 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Checkpoints *int32 `json:"checkpoints,omitempty"`
	// maxUnpromotedSize is how much unpromoted content Tidewaiter keeps in the trusted repository of a Feature. Beyond that, the oldest checkpoints lose their content. Checkpoints that a Checkpoint object or a request names keep it, and so does the last state of the workspace. Defaults to 2Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?(n|u|m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?$') && quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",message="maxUnpromotedSize must be a quantity from 1Mi to 1Pi, for example 2Gi"
	MaxUnpromotedSize *resource.Quantity `json:"maxUnpromotedSize,omitempty"`
	// ledgerPeriod is how long the ledger keeps the model calls, diffs, file events, steps of supervision and history of a Feature. Budgets still count what the ledger removed. Defaults to 720h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) > duration('0s')",message="ledgerPeriod must be a positive duration, for example 720h"
	LedgerPeriod *metav1.Duration `json:"ledgerPeriod,omitempty"`
}
