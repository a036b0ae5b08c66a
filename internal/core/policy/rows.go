// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Row is one value of a policy. Merging, the built-in values, validation and the reference page loop over all rows, so a new
// value is a row here, a field of Rules and one of Effective.
type Row struct {
	// Path of the value in the defaults and overrides of a SupervisorPolicy.
	Path string
	// Purpose says what the value is for.
	Purpose string
	// Allowed says which values are allowed.
	Allowed string
	// Builtin is the value if no source sets it.
	Builtin string
	// Merging says which value counts if policies of one scope and priority set different values.
	Merging string

	// SetWord sets a value that is a name or a text, SetNumber one that is a number of things or bytes, and SetFlag one that is on or off. Each is nil
	// for a value of another type.
	SetWord   func(*Rules, string)
	SetNumber func(*Rules, int64)
	SetFlag   func(*Rules, bool)
	// SetMoney sets a value in millionths of the currency; nil for other values.
	SetMoney func(*Rules, int64)
	// SetHundredths sets a decimal number in hundredths; nil for other values.
	SetHundredths func(*Rules, int64)

	// preset sets the built-in value; nil where there is none.
	preset func(*Rules)
	// check finds what is wrong with the value; unset values are not.
	check func(*Rules) error
	// merge sets the value in effect; together does so for values that add up over all sources.
	merge, together func(*merger, *Effective)
	addsUp          bool
	// rules and effective point to the value.
	rules     func(*Rules) any
	effective func(*Effective) any
	// later than the first version: see there. cut takes the value out.
	later bool
	cut   func(*Effective) (now, builtin any)
}

// Rows are all values, in the order of the reference page.
func Rows() []Row {
	return slices.Concat(executionRows(), pathRows(), changeRows(), featureRows(), podRows(), later(conversationRows()...), later(budgetRows()...), later(anomalyRows()...), later(questionRows()...), later(reviewerRows()...), later(knowledgeRows()...), later(capacityRow(), totalCapacityRow(), deliveriesRow(), providerToolsRow(), modelProvidersRow(), gitSilenceRow(), repositoriesRow(), branchesRow(), gatesRow()))
}

func executionRows() []Row {
	type r = Rules
	type e = Effective
	return []Row{
		choice("execution.mode", "Whether the agent writes files itself (Interactive), or sends patches that the watchdog checks before it applies them (Deterministic).",
			func(x *r) *string { return &x.Execution.Mode }, func(x *e) *string { return &x.Execution.Mode },
			ModeInteractive, ModeInteractive, ModeDeterministic),
		choice("execution.strategy", "Whether an invalid workspace stays as it is (Direct), or the watchdog puts it back at once (Shadow). Auto is Shadow for an attempt whose plan names contracts or may change what `paths.rules` are about, and Direct for any other.",
			func(x *r) *string { return &x.Execution.Strategy }, func(x *e) *string { return &x.Execution.Strategy },
			StrategyDirect, StrategyDirect, StrategyAuto, StrategyShadow),
		choice("execution.promotion", "Whether the watchdog promotes the valid paths of an invalid checkpoint (Incremental), or nothing of it (Atomic).",
			func(x *r) *string { return &x.Execution.Promotion }, func(x *e) *string { return &x.Execution.Promotion },
			PromotionAtomic, PromotionIncremental, PromotionAtomic),
		choice("execution.revertOnViolation", "What the watchdog puts back in the workspace after an invalid checkpoint.",
			func(x *r) *string { return &x.Execution.RevertOnViolation }, func(x *e) *string { return &x.Execution.RevertOnViolation },
			RevertNone, RevertNone, RevertViolatingPaths, RevertFull),
		span("execution.checkpoint.interval", "Time between checkpoints of a workspace that changed.",
			func(x *r) **duration { return &x.Execution.Interval }, func(x *e) *duration { return &x.Execution.Interval },
			builtinInterval, smaller, from[duration](time.Second, endless)),
		span("execution.checkpoint.minInterval", "Time between any two checkpoints, except the last one.",
			func(x *r) **duration { return &x.Execution.MinInterval }, func(x *e) *duration { return &x.Execution.MinInterval },
			builtinMinInterval, smaller, from[duration](0, endless)),
		count("execution.checkpoint.maxChanges", "How many changed paths call for a checkpoint.",
			func(x *r) **int { return &x.Execution.MaxChanges }, func(x *e) *int { return &x.Execution.MaxChanges },
			builtinMaxChanges, smaller, from(1, maxCount)),
		span("execution.checkpoint.pauseTimeout", "How long a freeze of the agent may take.",
			func(x *r) **duration { return &x.Execution.PauseTimeout }, func(x *e) *duration { return &x.Execution.PauseTimeout },
			builtinPauseTimeout, smaller, from(1, 10*time.Minute)),
	}
}

func pathRows() []Row {
	return []Row{
		protectedRow(),
		pathRulesRow(),
		choice("paths.severity", "Severity of a change to a path that must not change.",
			func(x *Rules) *Severity { return &x.PathSeverity }, func(x *Effective) *Severity { return &x.Paths.Severity },
			Error, Info, Warning, Error, Critical),
		contractsRow(),
		checksRow(),
		modelsRow(),
	}
}

func featureRows() []Row {
	type r = Rules
	type e = Effective
	return []Row{
		count("breaker.maxCheckpointFailures", "How many failed checkpoints in a row open the breaker.",
			func(x *r) **int { return &x.MaxCheckpointFailures }, func(x *e) *int { return &x.MaxCheckpointFailures }, builtinMaxCheckpointFailures, smaller, from(1, 100)),
		choice("concurrency.onLockConflict", "What happens to a Feature that wants a lock that another Feature holds.",
			func(x *r) *Contention { return &x.Locks }, func(x *e) *Contention { return &x.Concurrency.Locks }, Wait, Wait, Fail),
		choice("concurrency.onOverlap", "What happens to a Feature that may change the same paths as another Feature at work.",
			func(x *r) *Overlap { return &x.Overlap }, func(x *e) *Overlap { return &x.Concurrency.Overlap },
			OverlapWarn, OverlapAllow, OverlapWarn, OverlapWait),
		count("retention.checkpoints", "How many Checkpoint objects the manager keeps for each Feature.",
			func(x *r) **int { return &x.KeepCheckpoints }, func(x *e) *int { return &x.KeepCheckpoints }, builtinKeepCheckpoints, larger, from(1, 1000)),
		size("retention.maxUnpromotedSize", "How much unpromoted content the trusted repository keeps.",
			func(x *r) **int64 { return &x.UnpromotedBytes }, func(x *e) *int64 { return &x.UnpromotedBytes }, builtinUnpromotedBytes, larger, from[int64](1<<20, maxSize)),
		choice("isolation", "What happens to an agent whose network another NetworkPolicy opens.",
			func(x *r) *Isolation { return &x.Isolation }, func(x *e) *Isolation { return &x.Isolation }, IsolationEnforce, IsolationWarn, IsolationEnforce),
		bound(choice("delivery.approval", "Whether an approver must approve a delivery, whatever the Feature says.",
			func(x *r) *Approval { return &x.Approval }, func(x *e) *Approval { return &x.Approval }, ApprovalNone, ApprovalNone, ApprovalRequired)),
		bound(roles("agents.allowedRoles", "Roles that an agent can have.",
			func(x *r) *[]string { return &x.AllowedRoles }, func(x *e) *[]string { return &x.AllowedRoles })),
		choice("delivery.history", "What happens to a delivery with an earlier commit that breaks a rule of the policy in effect now.",
			func(x *r) *History { return &x.History }, func(x *e) *History { return &x.History }, HistorySquash, HistorySquash, HistoryHold),
		hosts("egress.agent", "Hosts that the agent can reach, through the proxy that its environment names.", "none",
			func(x *r) *[]Host { return &x.AgentHosts }, func(x *e) *[]Host { return &x.AgentHosts }),
		hosts("egress.git", "Hosts that the watchdog can reach with Git.", "the repository's own, on public addresses",
			func(x *r) *[]Host { return &x.GitHosts }, func(x *e) *[]Host { return &x.GitHosts }),
	}
}

// providerToolsRow is about what the providers of models do themselves.
func providerToolsRow() Row {
	const path = "egress.providerTools"
	return rowOf(Row{
		Path: path, Purpose: "What model providers can do for an agent where no gateway sees it: run tools and connectors, read addresses, use features that cost more.",
		Allowed: "names such as `anthropic/web_search`, from [provider-tools.md](provider-tools.md)", Builtin: "none", Merging: "the names that all of them have",
		check: func(r *Rules) error { return validProviderTools(path, r.ProviderTools) },
	}, value[[]string]{
		name: path,
		of: func(r *Rules) ([]string, bool) {
			if r.ProviderTools == nil {
				return nil, false
			}
			return append([]string{}, set(r.ProviderTools)...), true
		},
		stricter: func(a, b []string) []string {
			return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return !slices.Contains(b, name) })
		},
		equal: slices.Equal[[]string],
	}, func(r *Rules) any { return &r.ProviderTools }, func(e *Effective) *[]string { return &e.ProviderTools })
}

// providerTool is the name of what a provider does: whose it is, and what.
var providerTool = regexp.MustCompile(`^[a-z0-9_.$-]{1,64}/[a-z0-9_.$-]{1,64}$`)

func validProviderTools(path string, list []string) error {
	var errs []error
	for _, name := range list {
		if !providerTool.MatchString(name) {
			errs = append(errs, fmt.Errorf("%s: %q is not the name of a provider and of what it does, such as anthropic/web_search", path, name))
		}
	}
	return errors.Join(errs...)
}

// capacityRow is about how much runs at once. The value counts in the hash of a policy: a project whose policies set none has another hash since
// there is a built-in one.
func capacityRow() Row {
	return count("capacity.maxRunning", "How many Features of a project run at once.",
		func(x *Rules) **int { return &x.MaxRunning }, func(x *Effective) *int { return &x.MaxRunning }, builtinMaxRunning, smaller, from(1, maxCount))
}

// totalCapacityRow is about how much runs at once in the cluster. A project that could set a limit of its own would wait longer than others, and
// what waits keeps its turn.
func totalCapacityRow() Row {
	return globalOnly(count("capacity.maxRunningTotal", "How many Features of all projects together run at once. The projects take turns by the age of their waiting Features. Only a global policy may set it.",
		func(x *Rules) **int { return &x.MaxRunningTotal }, func(x *Effective) *int { return &x.MaxRunningTotal }, 0, smaller, from(1, maxCount)))
}

// modelProvidersRow is about model calls that no gateway sees.
func modelProvidersRow() Row {
	return choice("egress.modelProviders", "Whether an agent can reach model providers directly instead of through the gateway, with a key of its own.",
		func(x *Rules) *ModelProviders { return &x.ModelProviders }, func(x *Effective) *ModelProviders { return &x.ModelProviders },
		ModelProvidersDeny, ModelProvidersAllow, ModelProvidersDeny)
}

// gitSilenceRow is about Git servers that do not answer.
func gitSilenceRow() Row {
	return span("git.silenceTimeout", "How long a Git server can be silent before the watchdog treats it as dead. Progress and empty packets count as signs of life.",
		func(x *Rules) **duration { return &x.GitSilence }, func(x *Effective) *duration { return &x.GitSilence },
		builtinGitSilence, smaller, from(10*time.Second, MaxGitSilence))
}

// deliveriesRow is about what other Features deliver.
func deliveriesRow() Row {
	return choice("concurrency.onDelivery", "Who learns that another Feature of the project has delivered a change to what a running Feature of the same repository works on. Off tells nobody. Condition tells users by a condition. Message also tells the agent. Directive asks the agent to address the change.",
		func(x *Rules) *Deliveries { return &x.Deliveries }, func(x *Effective) *Deliveries { return &x.Concurrency.Deliveries },
		DeliveriesMessage, DeliveriesOff, DeliveriesCondition, DeliveriesMessage, DeliveriesDirective)
}
