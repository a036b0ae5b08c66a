// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy merges the rules of several sources into the one effective policy of a Feature.
package policy

import "time"

// Severity of a broken rule, ordered.
type Severity string

// Severities: Info is logged, Warning tells the agent, Error blocks promotion, Critical blocks and may revert.
const (
	Info     Severity = "Info"
	Warning  Severity = "Warning"
	Error    Severity = "Error"
	Critical Severity = "Critical"
)

// Enforcement says whether violations are acted on.
type Enforcement string

// Enforcements. The zero value of a source counts as Enforce: only an explicit audit is one.
const (
	Enforce Enforcement = "Enforce"
	Audit   Enforcement = "Audit"
)

// Permission for a kind of change.
type Permission string

// Permissions: Warn has severity Warning, Deny has severity Error, DenyCritical has severity Critical.
const (
	Allow Permission = "Allow"
	Warn  Permission = "Warn"
	Deny  Permission = "Deny"
	// DenyCritical is Critical in policies, as the severity is.
	DenyCritical Permission = "Critical"
)

// Execution modes, strategies, promotions and reverts, in the API's own names.
const (
	ModeInteractive   = "Interactive"
	ModeDeterministic = "Deterministic"

	StrategyDirect = "Direct"
	StrategyShadow = "Shadow"
	// StrategyAuto is Direct or Shadow: judge.Strategy decides for each attempt. No watchdog receives it.
	StrategyAuto = "Auto"

	PromotionAtomic      = "Atomic"
	PromotionIncremental = "Incremental"

	RevertNone           = "None"
	RevertViolatingPaths = "ViolatingPaths"
	RevertFull           = "Full"
)

// Host is a host that may be reached over TLS.
type Host struct {
	// Name is exact, or "*.example.com" for every name below it.
	Name string `json:"name"`
	// Port is never 0 in an effective policy.
	Port int `json:"port"`
	// AllowPrivate lets the name resolve to private addresses.
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// Bound is the list of one source of what Features may use: what they use has to match one of its globs.
type Bound struct {
	// Globs, sorted.
	Globs []string `json:"globs"`
	// From is the source, for users; several sources with the same list share one Bound. Hashes exclude it.
	From string `json:"from,omitempty"`
}

// Effective is the policy in effect for one Feature, with every value set. Intake sends it to the watchdog.
type Effective struct {
	// Hash identifies the values; equal values have equal hashes.
	Hash string `json:"hash"`
	// Sources are the policies merged, as namespace/name, most specific first.
	Sources []string `json:"sources,omitempty"`
	// Conflicts name values that policies of equal scope and priority disagree on; the stricter one was taken.
	Conflicts []string `json:"conflicts,omitempty"`
	// Enforcement in effect.
	Enforcement Enforcement `json:"enforcement"`
	// SuspendedBy are the policies that suspend agents, as namespace/name, sorted. It does not affect verdicts: watchdogs get the order to
	// end, and the hash excludes it.
	SuspendedBy []string `json:"-"`
	// Pod says where the pods of the Feature run. Intake does not send it either.
	Pod Pod `json:"-"`
	// Execution says how writes become checkpoints.
	Execution Execution `json:"execution"`
	// Paths that are guarded.
	Paths Paths `json:"paths"`
	// Changes are the rules for the content of changes.
	Changes Changes `json:"changes"`
	// Contracts and their paths, by name.
	Contracts []Contract `json:"contracts,omitempty"`
	// Checks that users wrote, by name. Two of one name both hold.
	Checks []Check `json:"checks,omitempty"`
	// Gates that must pass before a delivery, by name. Two of one name must both pass.
	Gates []Gate `json:"gates,omitempty"`
	// Models that answer, by role.
	Models []ModelRef `json:"models,omitempty"`
	// Supervision of the conversation with models.
	Supervision Supervision `json:"supervision,omitzero"`
	// LedgerFailure says how the gateway handles model calls that the ledger cannot record.
	LedgerFailure LedgerFailure `json:"ledgerFailure,omitempty"`
	// ToolResults says what the ledger keeps of tool results.
	ToolResults ToolResults `json:"toolResults,omitempty"`
	// Anomalies of an agent, and how far steering goes.
	Anomalies Anomalies `json:"anomalies,omitzero"`
	// Roles of agents, by name.
	Roles []Role `json:"roles,omitempty"`
	// Budgets limit the tokens and the cost of model calls.
	Budgets Budgets `json:"budgets,omitzero"`
	// MaxCheckpointFailures in a row open the breaker.
	MaxCheckpointFailures int `json:"maxCheckpointFailures"`
	// GitHosts that the watchdog may reach.
	GitHosts []Host `json:"gitHosts,omitempty"`
	// Repositories that Features may work on: each of these lists of globs must have a match. Without a list every repository is allowed.
	Repositories []Bound `json:"repositories,omitempty"`
	// Branches that Features may deliver, in the same way.
	Branches []Bound `json:"branches,omitempty"`
	// GitSilence is how long a Git server may send nothing before the watchdog ends the operation.
	GitSilence time.Duration `json:"gitSilence,omitzero"`
	// AgentHosts that the agent may reach.
	AgentHosts []Host `json:"agentHosts,omitempty"`
	// ProviderTools that models may use although their provider runs them, each as vendor/name.
	ProviderTools []string `json:"providerTools,omitempty"`
	// ModelProviders says whether an agent may reach providers of models without the gateway.
	ModelProviders ModelProviders `json:"modelProviders,omitempty"`
	// AllowedRoles of agents, sorted; nil allows every role, and agents without one. An empty list allows nothing.
	AllowedRoles []string `json:"allowedRoles,omitzero"`
	// Questions of agents to users.
	Questions Questions `json:"questions,omitzero"`
	// Reviewers of the work between two tasks.
	Reviewers Reviewers `json:"reviewers,omitzero"`
	// Knowledge of the team.
	Knowledge Knowledge `json:"knowledge,omitzero"`
	// Approval that the policies ask for, whatever the Feature says.
	Approval Approval `json:"approval"`
	// Concurrency of Features on one repository.
	Concurrency Concurrency `json:"concurrency"`
	// MaxRunning Features of a project; 0 if no policy could be found out.
	MaxRunning int `json:"maxRunning,omitempty"`
	// MaxRunningTotal Features of all projects together; 0 for no limit.
	MaxRunningTotal int `json:"maxRunningTotal,omitempty"`
	// Isolation says whether an agent may work while other network policies open its network.
	Isolation Isolation `json:"isolation"`
	// History says how Tidewaiter handles a delivery with a commit that breaks a rule of the policy in effect at that time.
	History History `json:"history"`
	// UnpromotedBytes is how much content the trusted repository keeps that was never promoted.
	UnpromotedBytes int64 `json:"unpromotedBytes"`
	// KeepCheckpoints is how many Checkpoint objects are kept for each Feature.
	KeepCheckpoints int `json:"keepCheckpoints"`
	// LedgerRetention is how long the ledger keeps the Feature's records.
	LedgerRetention time.Duration `json:"ledgerRetention,omitempty"`
	// Origins says for each value, by its path in a policy's rules, which source it comes from.
	Origins map[string]string `json:"origins,omitempty"`
}

// Execution says how writes become checkpoints.
type Execution struct {
	Mode              string `json:"mode"`
	Strategy          string `json:"strategy"`
	Promotion         string `json:"promotion"`
	RevertOnViolation string `json:"revertOnViolation"`
	// Interval between checkpoints of a workspace that changed.
	Interval time.Duration `json:"interval"`
	// MinInterval between any two checkpoints, except the final one.
	MinInterval time.Duration `json:"minInterval"`
	// MaxChanges is how many changed paths call for a checkpoint.
	MaxChanges int `json:"maxChanges"`
	// PauseTimeout bounds a freeze.
	PauseTimeout time.Duration `json:"pauseTimeout"`
}

// Paths that are guarded.
type Paths struct {
	// Protected globs must not change, also where nothing exists yet.
	Protected []string `json:"protected,omitempty"`
	// Rules say which roles may write where. Their order does not matter: see the rule path-rules in core/judge.
	Rules []PathRule `json:"rules,omitempty"`
	// Severity of a change to a path that must not change: protected, forbidden, not allowed, read-only, not locked.
	Severity Severity `json:"severity"`
}

// Roles of models. An agent's own calls use the primary one, and its small side calls the summarizer. The watchdog's own calls use the supervisor.
const (
	RolePrimary    = "primary"
	RoleSummarizer = "summarizer"
	RoleSupervisor = "supervisor"
)

// ModelRef names the backend and the model of the gateway that a role is answered by.
type ModelRef struct {
	Role    string `json:"role"`
	Backend string `json:"backend"`
	Model   string `json:"model"`
	// Key of the project for the backend; zero means the gateway's key.
	Key SecretKey `json:"key,omitzero"`
	// ProviderState says whether a request may refer to what the provider keeps: StateAllow, or empty.
	ProviderState ProviderState `json:"providerState,omitempty"`
}

// ProviderState says how the gateway handles a request that refers to state at its provider, or that makes the provider store some.
type ProviderState string

// StateAllow lets it pass.
const StateAllow ProviderState = "Allow"

// SecretKey names an entry of a Secret of the Feature's project.
type SecretKey struct {
	Secret string `json:"secret"`
	Key    string `json:"key"`
}

// Access that a path rule grants.
type Access string

// Accesses. What is not known is ReadOnly.
const (
	Write    Access = "Write"
	ReadOnly Access = "ReadOnly"
)

// PathRule says what access roles have to paths.
type PathRule struct {
	// Paths as patterns.
	Paths []string `json:"paths"`
	// Roles that the rule is about; empty means every role.
	Roles []string `json:"roles,omitempty"`
	// Access that they have.
	Access Access `json:"access"`
}

// Contract is what several Features agree on, such as an API's description: its paths change only under its lock.
type Contract struct {
	Name string `json:"name"`
	// Paths as patterns.
	Paths []string `json:"paths"`
}

// Concurrency says how Tidewaiter handles Features that would work on the same thing at the same time.
type Concurrency struct {
	// Locks is about a Feature that wants the lock of a contract which another one holds.
	Locks Contention `json:"locks"`
	// Overlap is about a Feature that may change the same paths as another one at work.
	Overlap Overlap `json:"overlap"`
	// Deliveries is about a working Feature when another one delivers a change to what it works on.
	Deliveries Deliveries `json:"deliveries,omitzero"`
}

// Approval says whether a user must approve a delivery.
type Approval string

// Approvals, in the API's own names.
const (
	ApprovalNone     Approval = "None"
	ApprovalRequired Approval = "Required"
)

// Overlap says how Tidewaiter handles a Feature that may change the same paths as another one.
type Overlap string

// Overlaps: OverlapAllow does not look for them, OverlapWarn reports them, OverlapWait waits for the other one.
const (
	OverlapAllow Overlap = "Allow"
	OverlapWarn  Overlap = "Warn"
	OverlapWait  Overlap = "Wait"
)

// Deliveries says who learns that another Feature has delivered a change to what a Feature works on.
type Deliveries string

// DeliveriesOff informs no one. DeliveriesCondition informs users, DeliveriesMessage the agent too, and DeliveriesDirective asks the agent
// to say what it has done about it.
const (
	DeliveriesOff       Deliveries = "Off"
	DeliveriesCondition Deliveries = "Condition"
	DeliveriesMessage   Deliveries = "Message"
	DeliveriesDirective Deliveries = "Directive"
)

// Contention says what happens to a Feature that wants what another one holds.
type Contention string

// Contentions: Wait until it is free, or Fail.
const (
	Wait Contention = "Wait"
	Fail Contention = "Fail"
)

// ModelProviders says whether an agent may reach providers of models without the gateway.
type ModelProviders string

// ModelProviders: the gateway keeps budgets, records and rules, and does not see calls that bypass it.
const (
	ModelProvidersAllow ModelProviders = "Allow"
	ModelProvidersDeny  ModelProviders = "Deny"
)

// Isolation says how Tidewaiter handles an agent whose network is opened by other network policies than Tidewaiter's.
type Isolation string

// Isolations: IsolationWarn reports it, IsolationEnforce starts no agent and ends a running one. Audit does not change that: a later report
// cannot take back what was sent.
const (
	IsolationWarn    Isolation = "Warn"
	IsolationEnforce Isolation = "Enforce"
)

// History says how Tidewaiter handles a delivery whose head is valid while its history is not.
type History string

// Histories: HistorySquash delivers one commit on the base, HistoryHold delivers nothing until a user has decided.
const (
	HistorySquash History = "Squash"
	HistoryHold   History = "Hold"
)

// Check is a rule that a user wrote in CEL.
type Check struct {
	// Name of the check, which is the name of its rule.
	Name string `json:"name"`
	// CEL is an expression over a changed file that is true if the file violates the check.
	CEL string `json:"cel"`
	// Message for users and for the agent.
	Message string `json:"message"`
	// Severity of a violation.
	Severity Severity `json:"severity"`
}
