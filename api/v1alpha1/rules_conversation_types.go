// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SupervisionRules are about the conversation between agent and model.
type SupervisionRules struct {
	// enabled supervision of the conversation. Defaults to true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// timeoutProfile of a model call: Standard 60s, Long 120s, Extended 300s.
	// +optional
	// +kubebuilder:validation:Enum=Standard;Long;Extended
	TimeoutProfile string `json:"timeoutProfile,omitempty"`
	// maxCorrections: how often an agent that has ended with work that is not valid continues in its session and is told what is wrong. Defaults to 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	MaxCorrections *int32 `json:"maxCorrections,omitempty"`
	// restartMode says how the next attempt continues when an agent ends before its work is done, for example because its pod is lost: Resume continues its session, Replay starts a new session with the prompt, Ask continues its session, but after the loss of a pod only when a user requests a retry. The workspace is that of the last valid checkpoint in each case. Defaults to Resume.
	// +optional
	// +kubebuilder:validation:Enum=Resume;Replay;Ask
	RestartMode string `json:"restartMode,omitempty"`
	// maxRetries of an answer that breaks a major rule. Defaults to 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	MaxRetries *int32 `json:"maxRetries,omitempty"`
	// failOnViolation fails the task when retries are spent. Defaults to true.
	// +optional
	FailOnViolation *bool `json:"failOnViolation,omitempty"`
	// allowRawOutput lets answers through unformatted. Defaults to false.
	// +optional
	AllowRawOutput *bool `json:"allowRawOutput,omitempty"`
	// allowOutputReplacement lets the texts of a project's Output templates take the place of the platform's; built-in false: the platform's are put around the project's.
	// +optional
	AllowOutputReplacement *bool `json:"allowOutputReplacement,omitempty"`
	// requireFormatValidation checks answers against Output templates. Defaults to true.
	// +optional
	RequireFormatValidation *bool `json:"requireFormatValidation,omitempty"`
}

// AnomalyRules say when an agent is taken to be in trouble. Figures are turns of the conversation.
type AnomalyRules struct {
	// checkEveryTurns between two messages to the model, whatever they are about. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	CheckEveryTurns *int32 `json:"checkEveryTurns,omitempty"`
	// cooldownTurns between two messages about the same anomaly. Defaults to 6.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	CooldownTurns *int32 `json:"cooldownTurns,omitempty"`
	// stallTurns: so many turns without progress. Defaults to 12.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	StallTurns *int32 `json:"stallTurns,omitempty"`
	// loopCalls: so many equal failing calls in a row. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1000000
	LoopCalls *int32 `json:"loopCalls,omitempty"`
	// contextPercent of the model's window that calls for a wrap-up; built-in 80, or where the agent's client should have compacted the conversation if
	// that is later.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ContextPercent *int32 `json:"contextPercent,omitempty"`
	// cascadeTools: so many different tools failing within the last five calls. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=5
	CascadeTools *int32 `json:"cascadeTools,omitempty"`
	// silenceTimeout: so long may nothing at all move, while no model answers and no tool works. Defaults to 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) >= duration('1m')",message="silenceTimeout must be a duration of at least 1m, for example 10m"
	SilenceTimeout *metav1.Duration `json:"silenceTimeout,omitempty"`
	// holdTimeout: so long is the agent's next model call held for a person to look, before a rung above Hold may follow. Defaults to 5m. Where
	// ladder is Hold, it is held until a person acts.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="holdTimeout must be a duration from 1s to 24h, for example 5m"
	HoldTimeout *metav1.Duration `json:"holdTimeout,omitempty"`
	// ladder is how far steering may go when an anomaly continues. Defaults to Nudge. Each rung includes those before it: Observe, Nudge,
	// Directive, Surgery, NoTools, Hold, Rollback, Restart, Block.
	// +optional
	// +kubebuilder:validation:Enum=Observe;Nudge;Directive;Surgery;NoTools;Hold;Rollback;Restart;Block
	Ladder Rung `json:"ladder,omitempty"`
}

// Rung of the ladder of steering.
type Rung string

// RoleProfile is the doctrine and PACE plan of a role.
type RoleProfile struct {
	// name of the role (a Feature's spec.agent.role).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// doctrine of the role.
	// +optional
	Doctrine *Doctrine `json:"doctrine,omitempty"`
	// pace says what to do as the work falls off its plan. A role has a plan as soon as a policy names it: what is not said here is built in.
	// +optional
	Pace *PacePlan `json:"pace,omitempty"`
}

// Doctrine of a role.
type Doctrine struct {
	// saluteIntervalTurns between status reports. Defaults to 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	SaluteIntervalTurns *int32 `json:"saluteIntervalTurns,omitempty"`
	// maxTurnsWithoutProgress before it is a stall. Defaults to 12.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
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
	// codeStyle reviews conventions. Defaults to every 5 tasks and at milestones.
	// +optional
	CodeStyle *ReviewerRule `json:"codeStyle,omitempty"`
	// design reviews structure. Defaults to at milestones.
	// +optional
	Design *ReviewerRule `json:"design,omitempty"`
	// knowledge writes down what was learnt. Defaults to every 3 tasks and at milestones.
	// +optional
	Knowledge *ReviewerRule `json:"knowledge,omitempty"`
	// urgencyThreshold that pulls reviews forward, a decimal number. Defaults to "1.0".
	// +optional
	// +kubebuilder:validation:MaxLength=16
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
	// +kubebuilder:validation:Maximum=1000000
	EveryTasks *int32 `json:"everyTasks,omitempty"`
	// onMilestone, when a milestone is complete.
	// +optional
	OnMilestone *bool `json:"onMilestone,omitempty"`
}

// ModelRef names the backend and the model of the gateway that a role is answered by.
type ModelRef struct {
	// role that asks: primary, supervisor, or the name of a role profile.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Role string `json:"role"`
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
	// secretKeyRef names a key of the project, in a Secret of the Feature's namespace, that the backend is asked with in the place of the gateway's. The gateway can read the Secret only where an administrator of the project has bound a Role for it to the gateway's service account. Fallbacks of the backend are not asked then.
	// +optional
	SecretKeyRef *SecretKeyRef `json:"secretKeyRef,omitempty"`
	// providerState says what becomes of requests that refer to what the provider keeps, such as previous_response_id, or have it keep something: they are refused, or pass. What is not in a request is seen by no template, no check and no budget, and all Features share the gateway's key. Refuse by default.
	// +optional
	ProviderState ProviderState `json:"providerState,omitempty"`
}

// ProviderState says what becomes of requests that refer to what the provider keeps.
// +kubebuilder:validation:Enum=Refuse;Allow
type ProviderState string

// What becomes of them.
const (
	ProviderStateRefuse ProviderState = "Refuse"
	ProviderStateAllow  ProviderState = "Allow"
)

// SecretKeyRef names an entry of a Secret.
type SecretKeyRef struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key of its entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// BudgetRules bound what models may cost.
type BudgetRules struct {
	// The budget of a Feature, over all of its attempts.
	Budget `json:",inline"`
	// project is the budget of all Features of a project together, for a calendar month (UTC).
	// +optional
	Project *Budget `json:"project,omitempty"`
	// global is the budget of all Features together, for a calendar month (UTC). Only a global policy may set it.
	// +optional
	Global *Budget `json:"global,omitempty"`
	// warnAtPercent is the share of a budget from which on the condition WithinBudget warns. Defaults to 80.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	WarnAtPercent *int32 `json:"warnAtPercent,omitempty"`
	// callsPerMinute is how many model calls a Feature makes in a minute, those that are refused included. Defaults to 120. After a
	// minute without calls it may make all of these at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	CallsPerMinute *int32 `json:"callsPerMinute,omitempty"`
}

// Budget bounds what model calls may use. Before each call its size is estimated, and one that may go over a limit is not made.
type Budget struct {
	// maxInputTokens in all, those that the provider had cached included.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxInputTokens *int64 `json:"maxInputTokens,omitempty"`
	// maxOutputTokens in all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxOutputTokens *int64 `json:"maxOutputTokens,omitempty"`
	// maxCost in the currency of the gateway's prices, a decimal number such as "12.50".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,9}([.][0-9]{1,6})?$') && double(self) > 0.0",message="maxCost must be a decimal number more than 0 such as \"12.50\", with at most 6 digits after the point"
	MaxCost string `json:"maxCost,omitempty"`
}

// LedgerRules say what the ledger keeps, and what happens when it cannot be written.
type LedgerRules struct {
	// failurePolicy says what the gateway does with model calls that it cannot record: Fail refuses them, Ignore lets them through. Defaults to Fail.
	// +optional
	// +kubebuilder:validation:Enum=Fail;Ignore
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// toolResults: what the ledger keeps of what tools give back to models. Defaults to Off, which keeps nothing. Digest keeps the ID of the call, the name of
	// the tool, the size, the SHA-256 and whether it is an error. Redacted also keeps the text, without secrets, at most 16 KiB of a result and 64 KiB
	// of a turn.
	// +optional
	// +kubebuilder:validation:Enum=Off;Digest;Redacted
	ToolResults string `json:"toolResults,omitempty"`
}
