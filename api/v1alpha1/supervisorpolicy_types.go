// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SupervisorPolicy holds rules that Features are held to. In the system namespace it is global, elsewhere it is that
// project's; a selector narrows it to some Features.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=svpol,categories=tidewaiter
// +kubebuilder:selectablefield:JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
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
	// namespaceSelector narrows a global policy to the projects whose namespaces have these labels; all projects when absent. Only a policy in the system namespace may have one.
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`
	// selector narrows the policy to Features with these labels; all Features of its scope when absent. Its keys begin with policy.tidewaiter.dev/, because only people who may write SupervisorPolicies of the project may set such labels on a Feature. The keys of a global policy begin with policy.tidewaiter.dev/global., which only people who may write global policies may set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.all(k, k.startsWith('policy.tidewaiter.dev/'))",message="keys in matchLabels must begin with policy.tidewaiter.dev/: editors of a project may set all other labels on their Features. Use such a label, and let a person who may write SupervisorPolicies set it on the Features"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.key.startsWith('policy.tidewaiter.dev/'))",message="keys in matchExpressions must begin with policy.tidewaiter.dev/: editors of a project may set all other labels on their Features. Use such a label, and let a person who may write SupervisorPolicies set it on the Features"
	Selector *LabelSelector `json:"selector,omitempty"`
	// priority among policies of the same scope: higher wins. A tie between values that differ is reported, not tossed.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`
	// enforcement: Enforce acts on violations, Audit only reports them. Where several policies apply, Enforce wins.
	// +optional
	// +kubebuilder:default=Enforce
	Enforcement Enforcement `json:"enforcement,omitempty"`
	// suspend is the emergency stop: while it is true, no agent of the Features that the policy applies to starts, and those that run end after a checkpoint, as with spec.suspend of a Feature. The work is kept and continues once no policy says so. Where several policies apply, one that suspends is enough.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
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
	// contracts are groups of paths that need a lock to be changed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Contracts []ContractRule `json:"contracts,omitempty"`
	// anomalies says when an agent is taken to be in trouble.
	// +optional
	Anomalies *AnomalyRules `json:"anomalies,omitempty"`
	// roles are role profiles of agents.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Roles []RoleProfile `json:"roles,omitempty"`
	// reviewers that look at the work at breakpoints.
	// +optional
	Reviewers *ReviewerRules `json:"reviewers,omitempty"`
	// models say which backend and model of the gateway a role is answered by.
	// +optional
	// +listType=map
	// +listMapKey=role
	// +kubebuilder:validation:MaxItems=16
	Models []ModelRef `json:"models,omitempty"`
	// budget is enforced before each model call.
	// +optional
	Budget *BudgetRules `json:"budget,omitempty"`
	// breaker stops a Feature whose checkpoints cannot be taken.
	// +optional
	Breaker *BreakerRules `json:"breaker,omitempty"`
	// egress lists hosts that may be reached through the gateway.
	// +optional
	Egress *EgressRules `json:"egress,omitempty"`
	// git says how the watchdog asks Git servers.
	// +optional
	Git *GitRules `json:"git,omitempty"`
	// agents bounds what Features may choose for their agents, and says where their pods run.
	// +optional
	Agents *AgentRules `json:"agents,omitempty"`
	// isolation says what becomes of an agent whose pod another NetworkPolicy of the project opens to more than intake and
	// gateway: Enforce, the default, starts no agent and ends one that runs, Warn only sets the condition Isolated. Enforcement Audit does not change it.
	// +optional
	Isolation IsolationHandling `json:"isolation,omitempty"`
	// concurrency says what becomes of Features that would work at the same time on the same thing.
	// +optional
	Concurrency *ConcurrencyRules `json:"concurrency,omitempty"`
	// capacity bounds how many Features run at once in a project.
	// +optional
	Capacity *CapacityRules `json:"capacity,omitempty"`
	// delivery says what is asked of a delivery.
	// +optional
	Delivery *DeliveryRules `json:"delivery,omitempty"`
	// retention says how much of the past is kept.
	// +optional
	Retention *RetentionRules `json:"retention,omitempty"`
	// ledger says what happens when the ledger cannot be written.
	// +optional
	Ledger *LedgerRules `json:"ledger,omitempty"`
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
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
