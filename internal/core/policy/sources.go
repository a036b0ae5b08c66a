// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Scope of a source.
type Scope string

// Scopes: Global policies live in the system namespace, Project policies in the Feature's own.
const (
	Global  Scope = "Global"
	Project Scope = "Project"
)

// Sources is everything that the effective policy of one Feature is merged from.
type Sources struct {
	// Policies that select the Feature, in any order.
	Policies []Source
	// Feature has the Feature's own values, and FeatureBudget its own, lower limits for models.
	Feature       ExecutionRules
	FeatureBudget LimitRules
	// FeaturePod has the Feature's own values for its pods.
	FeaturePod PodRules
	// RepositoryHost of the Feature: the only Git host if no policy lists any. Its AllowPrivate does not count.
	RepositoryHost Host
}

// Source is one policy.
type Source struct {
	// Name is namespace/name.
	Name string
	// Scope of the policy.
	Scope Scope
	// Priority among policies of the same scope: higher wins.
	Priority int32
	// Enforcement that it asks for.
	Enforcement Enforcement
	// Suspend lets no agent work.
	Suspend bool
	// Defaults can be overridden by more specific sources; Overrides cannot.
	Defaults, Overrides Rules
}

// Rules are values that a source sets. The zero value of a field means that the source does not set it.
type Rules struct {
	Execution    ExecutionRules
	Protected    []string
	PathRules    []PathRule
	PathSeverity Severity
	ChangeRules
	Contracts             []Contract
	Checks                []Check
	Gates                 []Gate
	Models                []ModelRef
	Supervision           SupervisionRules
	LedgerFailure         LedgerFailure
	ToolResults           ToolResults
	Anomalies             AnomalyRules
	Roles                 []Role
	Budget                BudgetRules
	MaxCheckpointFailures *int
	GitHosts              []Host
	GitSilence            *time.Duration
	Repositories          []Bound
	Branches              []Bound
	AgentHosts            []Host
	ProviderTools         []string
	ModelProviders        ModelProviders
	Locks                 Contention
	Overlap               Overlap
	Deliveries            Deliveries
	AllowedRoles          []string
	Questions             QuestionRules
	Reviewers             ReviewerRules
	Knowledge             KnowledgeRules
	Approval              Approval
	MaxRunning            *int
	MaxRunningTotal       *int
	KeepCheckpoints       *int
	UnpromotedBytes       *int64
	LedgerRetention       *time.Duration
	History               History
	Isolation             Isolation
	Pod                   PodRules
}

// ExecutionRules are the values of Execution that a source sets.
type ExecutionRules struct {
	Mode              string
	Strategy          string
	Promotion         string
	RevertOnViolation string
	Interval          *time.Duration
	MinInterval       *time.Duration
	MaxChanges        *int
	PauseTimeout      *time.Duration
}
