// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SupervisorPolicy holds rules that Tidewaiter applies to Features. In the system namespace a policy is global. In any other namespace it belongs to that project. A selector narrows a policy to some Features.
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
	// spec is the rules of the policy.
	// +required
	Spec SupervisorPolicySpec `json:"spec"`
	// status says whether the rules are in effect.
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

// Enforcement says whether the watchdog acts on violations.
// +kubebuilder:validation:Enum=Enforce;Audit
type Enforcement string

// Enforcements.
const (
	// EnforcementEnforce acts on violations.
	EnforcementEnforce Enforcement = "Enforce"
	// EnforcementAudit checks and reports everything, and blocks and reverts nothing.
	EnforcementAudit Enforcement = "Audit"
)

// SupervisorPolicySpec is the rules of a policy.
type SupervisorPolicySpec struct {
	// namespaceSelector narrows a global policy to the projects whose namespaces have these labels. Without it, the policy applies to all projects. Only a policy in the system namespace can have one.
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`
	// selector narrows the policy to Features with these labels. Without it, the policy applies to all Features of its scope. Keys begin with policy.tidewaiter.dev/, because only users with permission to write SupervisorPolicies of the project can set such labels on a Feature. The keys of a global policy begin with policy.tidewaiter.dev/global., which only users with permission to write global policies can set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.all(k, k.startsWith('policy.tidewaiter.dev/'))",message="keys in matchLabels must begin with policy.tidewaiter.dev/: editors of a project can set all other labels on their Features. Use such a label, and ask a user with permission to write SupervisorPolicies to set it on the Features"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.key.startsWith('policy.tidewaiter.dev/'))",message="keys in matchExpressions must begin with policy.tidewaiter.dev/: editors of a project can set all other labels on their Features. Use such a label, and ask a user with permission to write SupervisorPolicies to set it on the Features"
	Selector *LabelSelector `json:"selector,omitempty"`
	// priority orders the policies of the same scope: the highest value wins. If policies of equal priority set different values, the condition Accepted of the Feature names them.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`
	// enforcement says whether the watchdog acts on violations (Enforce) or only reports them (Audit). If several policies apply, Enforce wins.
	// +optional
	// +kubebuilder:default=Enforce
	Enforcement Enforcement `json:"enforcement,omitempty"`
	// suspend is the emergency stop for the Features that the policy applies to. While it is true, no agent starts, and each running agent ends after a checkpoint, as with spec.suspend of a Feature. Tidewaiter keeps the work, and continues it once no policy suspends the Feature. If several policies apply, one that suspends is enough.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// defaults are rules that more specific sources can override.
	// +optional
	Defaults *Rules `json:"defaults,omitempty"`
	// overrides are rules that more specific sources cannot override.
	// +optional
	Overrides *Rules `json:"overrides,omitempty"`
}

// Rules are what Tidewaiter applies to Features. If a value is absent, the next source provides it.
type Rules struct {
	// supervision has the rules for the conversation between an agent and its models.
	// +optional
	Supervision *SupervisionRules `json:"supervision,omitempty"`
	// execution says how the agent's writes become checkpoints. Its fields have the same names as in the Feature.
	// +optional
	Execution *Execution `json:"execution,omitempty"`
	// paths has the rules that guard paths against changes.
	// +optional
	Paths *PathRules `json:"paths,omitempty"`
	// changes limits what a change can contain.
	// +optional
	Changes *ChangeRules `json:"changes,omitempty"`
	// checks are rules that users write in CEL about each changed file.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Checks []Check `json:"checks,omitempty"`
	// gates are commands that must pass before every delivery. Each runs on a fresh checkout of the commit to deliver, in a pod where no agent has been. A Feature cannot remove them or change their commands. A gate without an image runs in that of the agent, which the Feature chooses: set an image for a gate that nobody may change. If a Feature names one of its own gates of the same name before the delivery, the policy's gate runs instead.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Gates []PolicyGate `json:"gates,omitempty"`
	// contracts are groups of paths that a Feature can change only while it holds their lock.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Contracts []ContractRule `json:"contracts,omitempty"`
	// anomalies says when the watchdog treats an agent as stuck or in trouble.
	// +optional
	Anomalies *AnomalyRules `json:"anomalies,omitempty"`
	// roles are the profiles of the roles that agents can have.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Roles []RoleProfile `json:"roles,omitempty"`
	// reviewers says when reviewers look at the work between two tasks, and how much they can say.
	// +optional
	Reviewers *ReviewerRules `json:"reviewers,omitempty"`
	// knowledge says what happens to the knowledge that a team writes down in docs/knowledge of its repository.
	// +optional
	Knowledge *KnowledgeRules `json:"knowledge,omitempty"`
	// models says which backend and model of the gateway answers a role.
	// +optional
	// +listType=map
	// +listMapKey=role
	// +kubebuilder:validation:MaxItems=16
	Models []ModelRef `json:"models,omitempty"`
	// budget limits what model calls can use. The gateway enforces it before each model call.
	// +optional
	Budget *BudgetRules `json:"budget,omitempty"`
	// breaker stops a Feature when the watchdog cannot take its checkpoints.
	// +optional
	Breaker *BreakerRules `json:"breaker,omitempty"`
	// egress lists hosts that agents and watchdogs can reach through the gateway.
	// +optional
	Egress *EgressRules `json:"egress,omitempty"`
	// git says which repositories Features can work on, and how the watchdog asks Git servers.
	// +optional
	Git *GitRules `json:"git,omitempty"`
	// agents limits what Features can choose for their agents, and says where the pods of agents run.
	// +optional
	Agents *AgentRules `json:"agents,omitempty"`
	// isolation says what happens to an agent when another NetworkPolicy of the project opens its pod to more than intake and gateway. Enforce starts no agent and ends a running one. Warn only sets the condition Isolated. Enforcement Audit does not change this. Defaults to Enforce.
	// +optional
	Isolation IsolationHandling `json:"isolation,omitempty"`
	// concurrency says what happens to Features that would work on the same thing at the same time.
	// +optional
	Concurrency *ConcurrencyRules `json:"concurrency,omitempty"`
	// capacity limits how many Features run at once.
	// +optional
	Capacity *CapacityRules `json:"capacity,omitempty"`
	// delivery limits what Features can deliver, and says when an approver must approve a delivery.
	// +optional
	Delivery *DeliveryRules `json:"delivery,omitempty"`
	// retention says how much history Tidewaiter keeps.
	// +optional
	Retention *RetentionRules `json:"retention,omitempty"`
	// ledger says what the ledger keeps, and what the gateway does when it cannot write to the ledger.
	// +optional
	Ledger *LedgerRules `json:"ledger,omitempty"`
}

// SupervisorPolicyStatus says whether a policy is in effect.
type SupervisorPolicyStatus struct {
	// observedGeneration is the generation of the policy that the controller has checked.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// features is the number of Features that the policy applies to now.
	// +optional
	Features int32 `json:"features"`
	// conditions are Valid, and Ready, which follows from Valid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
