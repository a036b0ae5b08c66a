// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SupervisionRules are about the conversation between agent and model.
type SupervisionRules struct {
	// enabled turns on the supervision of the conversation. Defaults to true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// timeoutProfile says how long a model can be silent before its call ends: Standard 60s, Long 120s, Extended 300s. Defaults to Standard.
	// +optional
	// +kubebuilder:validation:Enum=Standard;Long;Extended
	TimeoutProfile string `json:"timeoutProfile,omitempty"`
	// maxCorrections is how often an agent corrects a task that it has ended: with work that breaks a rule, or that a gate refuses. It continues in its session, where the watchdog tells it what is wrong. An agent without sessions starts again after a gate only. Defaults to 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	MaxCorrections *int32 `json:"maxCorrections,omitempty"`
	// restartMode says how the next attempt continues when an agent ends before its work is done, for example because the cluster loses its pod. Resume continues the agent's session. Replay starts a new session with the prompt. Ask continues the session, but after the loss of a pod only when a user requests a retry. In each case the workspace is at the last valid checkpoint. Defaults to Resume.
	// +optional
	// +kubebuilder:validation:Enum=Resume;Replay;Ask
	RestartMode string `json:"restartMode,omitempty"`
	// maxRetries is how often the gateway asks a model again when its answer breaks a rule of an Output template. Defaults to 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	MaxRetries *int32 `json:"maxRetries,omitempty"`
	// failOnViolation fails the task when an answer still breaks a rule of an Output template after all retries. Defaults to true.
	// +optional
	FailOnViolation *bool `json:"failOnViolation,omitempty"`
	// allowRawOutput lets answers through without the texts of Output templates. Defaults to false.
	// +optional
	AllowRawOutput *bool `json:"allowRawOutput,omitempty"`
	// allowOutputReplacement lets the texts of a project's Output templates replace the platform's texts. If false, the gateway puts the platform's texts around the project's. Defaults to false.
	// +optional
	AllowOutputReplacement *bool `json:"allowOutputReplacement,omitempty"`
	// requireFormatValidation makes the gateway check answers against Output templates (Template objects with direction Output). Defaults to true.
	// +optional
	RequireFormatValidation *bool `json:"requireFormatValidation,omitempty"`
}

// AnomalyRules say when the watchdog treats an agent as stuck or in trouble. Numbers count turns of the conversation.
type AnomalyRules struct {
	// checkEveryTurns is the number of turns between two messages to the model, whatever they are about. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	CheckEveryTurns *int32 `json:"checkEveryTurns,omitempty"`
	// cooldownTurns is the number of turns between two messages about the same anomaly. Defaults to 6.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	CooldownTurns *int32 `json:"cooldownTurns,omitempty"`
	// stallTurns is the number of turns without progress that count as a stall. Defaults to 12.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	StallTurns *int32 `json:"stallTurns,omitempty"`
	// loopCalls is the number of equal failing calls in a row that count as a loop. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1000000
	LoopCalls *int32 `json:"loopCalls,omitempty"`
	// contextPercent is the share of the model's window, in percent, at which the watchdog asks the agent to wrap up. Defaults to 80, or to the share at which the agent's client should have compacted the conversation if that is later.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ContextPercent *int32 `json:"contextPercent,omitempty"`
	// cascadeTools is the number of different tools failing within the last five calls that count as a cascade. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=5
	CascadeTools *int32 `json:"cascadeTools,omitempty"`
	// silenceTimeout is how long an agent can be silent before the watchdog treats it as stalled. An agent is silent while no model answers, no tool works and nothing else moves. Defaults to 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) >= duration('1m')",message="silenceTimeout must be a duration of at least 1m, for example 10m"
	SilenceTimeout *metav1.Duration `json:"silenceTimeout,omitempty"`
	// holdTimeout is how long the watchdog holds the agent's next model call for a user to look, before a rung above Hold can follow. If ladder is Hold, the watchdog holds the call until a user acts. Defaults to 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(\\\\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="holdTimeout must be a duration from 1s to 24h, for example 5m"
	HoldTimeout *metav1.Duration `json:"holdTimeout,omitempty"`
	// ladder is how far steering can go when an anomaly continues. Each rung includes the rungs before it: Observe, Nudge, Directive, Surgery, NoTools, Hold, Rollback, Restart, Block. Defaults to Nudge.
	// +optional
	// +kubebuilder:validation:Enum=Observe;Nudge;Directive;Surgery;NoTools;Hold;Rollback;Restart;Block
	Ladder Rung `json:"ladder,omitempty"`
}

// Rung of the ladder of steering.
type Rung string

// RoleProfile has the doctrine and the PACE plan of a role: when an agent reports and counts as stalled, and what it does when its way fails.
type RoleProfile struct {
	// name is the name of the role, as in spec.agent.role of a Feature.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// doctrine says how often an agent of the role reports, and after how many turns without progress it counts as stalled.
	// +optional
	Doctrine *Doctrine `json:"doctrine,omitempty"`
	// pace is the PACE plan of the role: what an agent does when its primary way fails (alternate, contingent, emergency). A role has a plan as soon as a policy names it. Tidewaiter has a default text for each level that the policy leaves out.
	// +optional
	Pace *PacePlan `json:"pace,omitempty"`
}

// Doctrine says how often an agent of a role reports, and when it counts as stalled.
type Doctrine struct {
	// saluteIntervalTurns is the number of turns between two status reports (SALUTE reports). Defaults to 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	SaluteIntervalTurns *int32 `json:"saluteIntervalTurns,omitempty"`
	// maxTurnsWithoutProgress is the number of turns without progress that count as a stall. Defaults to anomalies.stallTurns.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxTurnsWithoutProgress *int32 `json:"maxTurnsWithoutProgress,omitempty"`
}

// PacePlan says in words what an agent does at each level of a PACE plan.
type PacePlan struct {
	// alternate is the way that the agent takes when the primary one fails.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Alternate string `json:"alternate,omitempty"`
	// contingent is the way that the agent takes when both the primary and the alternate one fail.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Contingent string `json:"contingent,omitempty"`
	// emergency says how the agent stops cleanly.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Emergency string `json:"emergency,omitempty"`
}

// ReviewerRules say which reviewers run when, and how much they can say.
type ReviewerRules struct {
	// codeStyle is the rule for the reviewer of code style, which compares changes with the conventions of the repository. By default, it runs every 5 tasks and at milestones.
	// +optional
	CodeStyle *ReviewerRule `json:"codeStyle,omitempty"`
	// design is the rule for the reviewer of design, which looks at how the parts of the work fit together. By default, it runs at milestones. It also runs after an aborted task and after a new plan.
	// +optional
	Design *ReviewerRule `json:"design,omitempty"`
	// knowledge is the rule for the reviewer that writes down what the work has taught. By default, it runs every 3 tasks and at milestones. It gives no directives, and runs only where knowledge.inject is true.
	// +optional
	Knowledge *ReviewerRule `json:"knowledge,omitempty"`
	// assessor is the rule for the assessor, which looks after the other reviewers and gives a verdict on the whole. By default, it runs every 5 tasks and at milestones. Its everyTasks is its first interval, at least 3 and at most 10 tasks. Then its verdicts decide.
	// +optional
	Assessor *ReviewerRule `json:"assessor,omitempty"`
	// custom are reviewers that a team defines. They look after codeStyle and design, and before the assessor. Policies can define 8 together.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Custom []CustomReviewer `json:"custom,omitempty"`
	// urgencyThreshold is the urgency at which a reviewer runs before its next turn, a decimal number. A failed gate adds 0.3 to the urgency of each reviewer, an aborted task 1, a new plan 0.2 and a MinorDrift of the assessor 0.5. A review sets the urgency of its reviewer to 0. Defaults to "1.0".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,3}([.][0-9]{1,2})?$') && double(self) >= 0.01",message="urgencyThreshold must be a decimal number from 0.01 to 999.99 such as \"1.0\", with at most 2 digits after the point"
	UrgencyThreshold string `json:"urgencyThreshold,omitempty"`
	// maxDirectives is how many directives a reviewer can give at a time. Tidewaiter discards the less important ones. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=12
	MaxDirectives *int32 `json:"maxDirectives,omitempty"`
	// polishTasks is how many tasks can follow the last task of the plan, in which the agent addresses directives of reviewers that are still open. 0 adds none. Defaults to 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	PolishTasks *int32 `json:"polishTasks,omitempty"`
	// costAlertPercent is the share of the cost of all model calls of a Feature, in percent, above which the condition SupervisorCostInBounds warns about plans and reviews (the role supervisor). Without prices, it is the share of tokens. There is no warning before the Feature has used 200,000 tokens. Defaults to 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	CostAlertPercent *int32 `json:"costAlertPercent,omitempty"`
}

// KnowledgeRules say what happens to the knowledge of a team.
type KnowledgeRules struct {
	// inject says whether agents get what their team and reviewers have written down in docs/knowledge of the repository. If so, they cannot change that folder, and reviewers write documents. Defaults to false.
	// +optional
	Inject *bool `json:"inject,omitempty"`
	// deliver says what happens to the documents that reviewers have written for docs/knowledge. Commit delivers them as the last commit of the work: gates before the delivery, review and approval are about that commit. Off delivers none. Reviewers write only where inject is true. Defaults to Commit.
	// +optional
	Deliver KnowledgeDelivery `json:"deliver,omitempty"`
}

// KnowledgeDelivery says what happens to the documents that reviewers have written.
// +kubebuilder:validation:Enum=Commit;Off
type KnowledgeDelivery string

// Deliveries of knowledge.
const (
	KnowledgeDeliveryCommit KnowledgeDelivery = "Commit"
	KnowledgeDeliveryOff    KnowledgeDelivery = "Off"
)

// ReviewerRule says when a reviewer runs.
type ReviewerRule struct {
	// enabled says whether the reviewer runs. By default, it runs where a policy names a model for the role supervisor.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// everyTasks is the number of finished tasks since its last review after which the reviewer runs. 0 does not count tasks.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	EveryTasks *int32 `json:"everyTasks,omitempty"`
	// onMilestone makes the reviewer run when a milestone is complete.
	// +optional
	OnMilestone *bool `json:"onMilestone,omitempty"`
	// instructions are what a team adds to the instructions of the reviewer, for example conventions that are not in the repository.
	// +optional
	// +kubebuilder:validation:MaxLength=4000
	// +kubebuilder:validation:XValidation:rule="self.matches('^[\\\\t\\\\n\\\\p{L}\\\\p{M}\\\\p{N}\\\\p{P}\\\\p{S}\\\\p{Zs}]*$')",message="instructions must be printable text: remove the control characters"
	Instructions string `json:"instructions,omitempty"`
}

// CustomReviewer is a reviewer that a team defines. It runs as soon as a policy has it.
type CustomReviewer struct {
	// name is the name of the reviewer. Its directives have the source custom/<name>.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]*$') && !(self in ['assessor', 'code-style', 'codestyle', 'design', 'knowledge'])",message="name must begin with a letter, have only lower case letters, digits and dashes, and not be the name of a reviewer of Tidewaiter, for example licenses"
	Name string `json:"name"`
	// instructions say what the reviewer looks for.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4000
	// +kubebuilder:validation:Pattern=`^[\t\n\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}]*$`
	Instructions string `json:"instructions"`
	// everyTasks is the number of finished tasks since its last review after which the reviewer runs. 0 does not count tasks. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	EveryTasks *int32 `json:"everyTasks,omitempty"`
	// onMilestone makes the reviewer run when a milestone is complete. Defaults to true.
	// +optional
	OnMilestone *bool `json:"onMilestone,omitempty"`
	// paths are gitignore-style globs. The reviewer sees only the files that they match, and looks only if one of them has changed. Without paths, it sees all files.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Paths []string `json:"paths,omitempty"`
	// priority is the most urgent priority of its directives. Normal makes them Functional directives. Low makes them Cleanup directives, which wait until all tasks are done. Defaults to Low.
	// +optional
	// +kubebuilder:validation:Enum=Normal;Low
	Priority string `json:"priority,omitempty"`
}

// ModelRef names the backend and the model of the gateway that answer a role.
type ModelRef struct {
	// role is who asks: primary for what agents ask, summarizer for their small side calls, and supervisor for what Tidewaiter itself asks, such as for a plan. Without its own entry, a role is answered by primary.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['primary', 'summarizer', 'supervisor']",message="this version does not act on models[].role other than primary, summarizer and supervisor: remove the entry"
	Role string `json:"role"`
	// backend is the name of a backend of the gateway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Backend string `json:"backend"`
	// model is the name of a model of that backend.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Model string `json:"model"`
	// secretKeyRef names an API key of the project, in a Secret of the Feature's namespace. The gateway calls the backend with this key instead of its own. It can read the Secret only if an administrator of the project has bound a Role for it to the gateway's service account. With this key, the gateway uses no fallbacks of the backend.
	// +optional
	SecretKeyRef *SecretKeyRef `json:"secretKeyRef,omitempty"`
	// providerState says what the gateway does with requests that refer to state that the provider keeps, or that ask it to keep state: Refuse or Allow. An example is previous_response_id. No template, check or budget sees what is not in a request, and all Features share the gateway's key. Defaults to Refuse.
	// +optional
	ProviderState ProviderState `json:"providerState,omitempty"`
}

// ProviderState says what the gateway does with requests that refer to state that the provider keeps.
// +kubebuilder:validation:Enum=Refuse;Allow
type ProviderState string

// Ways to handle them.
const (
	ProviderStateRefuse ProviderState = "Refuse"
	ProviderStateAllow  ProviderState = "Allow"
)

// SecretKeyRef names an entry of a Secret.
type SecretKeyRef struct {
	// name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key is the key of the entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// BudgetRules limit what model calls can cost.
type BudgetRules struct {
	// The budget of a Feature, over all of its attempts.
	Budget `json:",inline"`
	// project is the budget of all Features of a project together, for a calendar month (UTC).
	// +optional
	Project *Budget `json:"project,omitempty"`
	// global is the budget of all Features together, for a calendar month (UTC). Only a global policy may set it.
	// +optional
	Global *Budget `json:"global,omitempty"`
	// warnAtPercent is the share of a budget, in percent, at which the condition WithinBudget begins to warn. Defaults to 80.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	WarnAtPercent *int32 `json:"warnAtPercent,omitempty"`
	// callsPerMinute is how many model calls a Feature can make in a minute, including calls that the gateway refuses. After a minute without calls it can make all of these at once. Defaults to 120.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	CallsPerMinute *int32 `json:"callsPerMinute,omitempty"`
}

// Budget limits what model calls can use. The gateway estimates the size of each call, and makes no call that could go over a limit.
type Budget struct {
	// maxInputTokens is the most input tokens in all, including tokens that the provider had cached.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxInputTokens *int64 `json:"maxInputTokens,omitempty"`
	// maxOutputTokens is the most output tokens in all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	MaxOutputTokens *int64 `json:"maxOutputTokens,omitempty"`
	// maxCost is the highest cost in US dollars, the currency of the gateway's prices, a decimal number such as "12.50".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,9}([.][0-9]{1,6})?$') && double(self) > 0.0",message="maxCost must be a decimal number more than 0 such as \"12.50\", with at most 6 digits after the point"
	MaxCost string `json:"maxCost,omitempty"`
}

// LedgerRules say what the ledger keeps, and what the gateway does when it cannot write to the ledger.
type LedgerRules struct {
	// failurePolicy says what the gateway does with model calls that it cannot record: Fail refuses them, Ignore lets them through. Defaults to Fail.
	// +optional
	// +kubebuilder:validation:Enum=Fail;Ignore
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// toolResults says what the ledger keeps of the results that tools give back to models. Off keeps nothing. Digest keeps the ID of the call, the name of the tool, the size, the SHA-256 and whether it is an error. Redacted also keeps the text, without secrets, at most 16 KiB of a result and 64 KiB of a turn. Defaults to Off.
	// +optional
	// +kubebuilder:validation:Enum=Off;Digest;Redacted
	ToolResults string `json:"toolResults,omitempty"`
}
