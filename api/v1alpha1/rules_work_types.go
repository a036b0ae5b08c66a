// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	// severity of a change to a protected, forbidden or not allowed path. Defaults to Error.
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

// ChangeRules bound what a change may be made of.
type ChangeRules struct {
	// maxFiles that may differ from the base.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxFiles *int64 `json:"maxFiles,omitempty"`
	// maxLines that may be added and removed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxLines *int64 `json:"maxLines,omitempty"`
	// maxFileSize of a changed file. Defaults to 50Mi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?(n|u|m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?$') && quantity(string(self)).compareTo(quantity('1')) >= 0 && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",message="maxFileSize must be a quantity from 1 to 1Pi, for example 50Mi"
	MaxFileSize *resource.Quantity `json:"maxFileSize,omitempty"`
	// maxWorkspaceSize of all files in the workspace, ignored ones included. Defaults to 1Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?(n|u|m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?$') && quantity(string(self)).compareTo(quantity('1')) >= 0 && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",message="maxWorkspaceSize must be a quantity from 1 to 1Pi, for example 1Gi"
	MaxWorkspaceSize *resource.Quantity `json:"maxWorkspaceSize,omitempty"`
	// maxWorkspaceFiles in the workspace, ignored ones included. Defaults to 200000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxWorkspaceFiles *int64 `json:"maxWorkspaceFiles,omitempty"`
	// symlinks that leave the workspace or are absolute are always denied; this is about the others. Built-in Warn.
	// +optional
	Symlinks Permission `json:"symlinks,omitempty"`
	// specialFiles: FIFOs, sockets and devices. Defaults to Deny.
	// +optional
	SpecialFiles Permission `json:"specialFiles,omitempty"`
	// hardlinks to files outside the workspace's own tree. Defaults to Warn.
	// +optional
	Hardlinks Permission `json:"hardlinks,omitempty"`
	// executables that were not executable before. Defaults to Warn.
	// +optional
	Executables Permission `json:"executables,omitempty"`
	// binaries: files with NUL bytes. Defaults to Warn.
	// +optional
	Binaries Permission `json:"binaries,omitempty"`
	// secrets: keys and tokens in content. Defaults to Deny.
	// +optional
	Secrets Permission `json:"secrets,omitempty"`
	// confusables: new names that look like another one, or mix scripts. Defaults to Warn.
	// +optional
	Confusables Permission `json:"confusables,omitempty"`
	// unportableNames: new names that other systems cannot hold or misread. Defaults to Warn.
	// +optional
	UnportableNames Permission `json:"unportableNames,omitempty"`
	// hiddenCharacters: invisible and bidirectional characters in source code and in what steers agents. Defaults to Warn.
	// +optional
	HiddenCharacters Permission `json:"hiddenCharacters,omitempty"`
	// strayLinks: symbolic links to a place outside of the plan's allowed areas. Defaults to Warn.
	// +optional
	StrayLinks Permission `json:"strayLinks,omitempty"`
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
	// name of the contract, which plans use (a Feature's spec.plan.contracts).
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// paths as gitignore-style globs.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Paths []string `json:"paths"`
}

// LockContention says what becomes of a Feature that wants a lock which another one holds.
// +kubebuilder:validation:Enum=Wait;Fail
type LockContention string

// Ways to contend.
const (
	// LockContentionWait waits for the lock: higher priority first, then older.
	LockContentionWait LockContention = "Wait"
	// LockContentionFail blocks the Feature until a person asks to try again.
	LockContentionFail LockContention = "Fail"
)

// OverlapHandling says what becomes of a Feature that may change the same paths as another one at work on the repository.
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

// DeliveryNotice says who is told of a change to what a Feature works on that another Feature of the project has delivered.
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

// ConcurrencyRules say what becomes of Features that would work at the same time on the same thing.
type ConcurrencyRules struct {
	// onLockConflict says what becomes of a Feature that wants the lock of a contract which another one holds: Wait, the default, or Fail.
	// +optional
	OnLockConflict LockContention `json:"onLockConflict,omitempty"`
	// onOverlap says what becomes of a Feature whose allowed areas or planned files overlap with those of another one at work on the repository: Allow, Warn, the default, or Wait.
	// +optional
	OnOverlap OverlapHandling `json:"onOverlap,omitempty"`
	// onDelivery says who is told when another Feature of the project delivers a change to what a running Feature of the same repository works on: Off, Condition (people), Message (its agent, too; built in) or Directive (its agent has to address it).
	// +optional
	OnDelivery DeliveryNotice `json:"onDelivery,omitempty"`
}

// BreakerRules stop a Feature whose checkpoints cannot be taken.
type BreakerRules struct {
	// maxCheckpointFailures in a row. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxCheckpointFailures *int32 `json:"maxCheckpointFailures,omitempty"`
}

// EgressRules list hosts that are reached over TLS, through the gateway. An empty list lets nothing through.
type EgressRules struct {
	// agent may reach these (package registries), through the proxy that HTTPS_PROXY names in its environment. Defaults to none.
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
	// providerTools that models may use although their provider runs them, outside of Tidewaiter's sight: web searches, connectors, addresses that the provider reads. None by default. docs/reference/provider-tools.md has the names.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=129
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9_.$-]{1,64}/[a-z0-9_.$-]{1,64}$')",message="a name has a provider and what it does, for example anthropic/web_search"
	ProviderTools []string `json:"providerTools,omitempty"`
	// modelProviders says whether an agent may reach providers of models beside the gateway, with a key of its own: no budget, no record and no rule sees
	// such a call. Deny refuses their hosts in egress.agent, the hosts of the gateway's backends, and keys of providers in spec.agent.env. Defaults to
	// Deny.
	// +optional
	ModelProviders ModelProviderAccess `json:"modelProviders,omitempty"`
}

// ModelProviderAccess says whether an agent may reach providers of models beside the gateway.
// +kubebuilder:validation:Enum=Allow;Deny
type ModelProviderAccess string

// Ways to handle it.
const (
	// ModelProvidersAllow lets agents reach them, where egress.agent lists their hosts.
	ModelProvidersAllow ModelProviderAccess = "Allow"
	// ModelProvidersDeny lets agents reach models through the gateway alone.
	ModelProvidersDeny ModelProviderAccess = "Deny"
)

// EgressHost is a host that may be reached over TLS.
type EgressHost struct {
	// host name, exact; "*.example.com" stands for every name below it. No IP address: the TLS handshake must ask for the name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('(^|[.])([0-9]+|0x[0-9a-f]*)$')",message="host must be a name, for example registry.example.com: IP addresses are never connected to"
	// +kubebuilder:validation:Pattern=`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Host string `json:"host"`
	// port. Defaults to 443.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// allowPrivate lets the host resolve to private addresses (a server inside the cluster or the company).
	// +optional
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// IsolationHandling says what becomes of an agent whose network is opened by network policies that are not Tidewaiter's.
// +kubebuilder:validation:Enum=Enforce;Warn
type IsolationHandling string

// Ways to handle it.
const (
	// IsolationEnforce starts no agent, and ends one that runs in order.
	IsolationEnforce IsolationHandling = "Enforce"
	// IsolationWarn tells of it.
	IsolationWarn IsolationHandling = "Warn"
)

// CapacityRules bound how much runs at once.
type CapacityRules struct {
	// maxRunning Features of a project. Defaults to 5. The others wait with the reason AtCapacity, higher spec.priority first, then older.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxRunning *int32 `json:"maxRunning,omitempty"`
	// maxRunningTotal Features of all projects together. Only a policy in the namespace of the manager may set it; no limit is built in. The others wait with the reason AtTotalCapacity: the projects take turns by the age of what waits, and spec.priority decides within a project.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxRunningTotal *int32 `json:"maxRunningTotal,omitempty"`
}

// AgentRules bound what Features may choose for their agents, and choose for those that do not.
type AgentRules struct {
	// allowedRoles are the roles that spec.agent.role of a Feature may name; a Feature without a role is refused then. A role must be in the list of every policy that applies and has one. Every role, and none, is allowed where no policy has a list.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	AllowedRoles []string `json:"allowedRoles,omitempty"`
	// scheduling of the pods of Features, field by field, and key by key of a nodeSelector. In overrides it takes the choice from a Feature's spec.agent.scheduling.
	// +optional
	Scheduling *Scheduling `json:"scheduling,omitempty"`
	// resources of the agents' containers, resource by resource. In overrides they take the choice from a Feature's spec.agent.resources. A request is never more than the limit in effect.
	// +optional
	Resources Resources `json:"resources,omitzero"`
	// imagePullSecrets are the names of Secrets in the namespace of each Feature. The kubelet pulls the images of its pods with them, and with the Secrets of the Feature and of other policies.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []SecretRef `json:"imagePullSecrets,omitempty"`
}

// GitRules say which repositories are worked on, and how the watchdog asks Git servers.
type GitRules struct {
	// repositories that Features may work on, as globs of host/path such as git.example.com/team/*. A repository must match in the list of every policy that applies and has one; every repository is allowed where no policy has a list. "*" stands for any part of a name, "**" for any number of names, "?" for a character, [a-z] for one of them. The host has no upper case, and a port only where it is not 443; ".git" at the end does not count.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(https://)?[^/@ ]+/[^/ ]')",message="a repository is a glob of host/path without a user, for example git.example.com/team/*"
	Repositories []string `json:"repositories,omitempty"`
	// silenceTimeout: how long a Git server may say nothing before it is taken for dead. Defaults to 5m. Progress counts as a word, and so does the empty packet by which a server keeps a connection.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) >= duration('10s') && duration(self) <= duration('1h')",message="silenceTimeout must be a duration from 10s to 1h, for example 5m"
	SilenceTimeout *metav1.Duration `json:"silenceTimeout,omitempty"`
}

// DeliveryRules say what is asked of a delivery.
type DeliveryRules struct {
	// approval Required holds every delivery until a person with the verb "approve" has named its commit. It is required where any policy that applies, or the Feature, says so; None takes nothing back. Built-in None.
	// +optional
	Approval Approval `json:"approval,omitempty"`
	// history says what becomes of a delivery whose last commit keeps every rule of the policy in effect now, and an earlier
	// one does not: Squash delivers one commit on the base, Hold delivers nothing until a person has decided. Built-in Squash.
	// +optional
	History DeliveryHistory `json:"history,omitempty"`
	// branches that Features may deliver, as globs such as tidewaiter/** or release-[0-9]. A branch that is pushed, tidewaiter/<name of the Feature> where it names none, must match in the list of every policy that applies and has one; every branch is allowed where no policy has a list.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[^/ ]([^ ]*[^/ ])?$')",message="a branch is a glob without spaces, and without a slash at its beginning or end, for example tidewaiter/**"
	Branches []string `json:"branches,omitempty"`
}

// DeliveryHistory says what becomes of a delivery with a commit in its history that breaks a rule.
// +kubebuilder:validation:Enum=Squash;Hold
type DeliveryHistory string

// Histories.
const (
	HistorySquash DeliveryHistory = "Squash"
	HistoryHold   DeliveryHistory = "Hold"
)

// RetentionRules say how much of the past is kept.
type RetentionRules struct {
	// checkpoints kept as objects for each Feature. Defaults to 10. Invalid and promoted ones are kept longest.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Checkpoints *int32 `json:"checkpoints,omitempty"`
	// maxUnpromotedSize of content that was never promoted are kept in the trusted repository of a Feature. Defaults to 2Gi. Beyond
	// that the oldest checkpoints lose their content, except those that a Checkpoint object or a request names, and the last
	// state of the workspace.
	// +optional
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?(n|u|m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?$') && quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",message="maxUnpromotedSize must be a quantity from 1Mi to 1Pi, for example 2Gi"
	MaxUnpromotedSize *resource.Quantity `json:"maxUnpromotedSize,omitempty"`
	// ledgerPeriod keeps the model calls, diffs and file events of a Feature this long. Defaults to 720h. Budgets still count what is removed.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) > duration('0s')",message="ledgerPeriod must be a positive duration, for example 720h"
	LedgerPeriod *metav1.Duration `json:"ledgerPeriod,omitempty"`
}
