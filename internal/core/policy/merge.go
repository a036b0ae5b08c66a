// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Merge makes the one policy that a Feature is held to. Each value comes from the first of these that sets it: overrides
// of global policies, overrides of project policies, the Feature, defaults of project policies, defaults of global
// policies, the built-in rules. Protected paths, path rules and the paths of a contract are united; checks are decided
// name by name. What bounds Features is bounded by every source together: a role must be allowed by all that list roles, and
// an approval that any source requires is required. Among policies of one scope the higher priority wins; where equal ones disagree the stricter value is
// taken and the disagreement is named in Conflicts.
//
// Merge is pure, and the order of the policies does not matter.
func Merge(s Sources) Effective {
	m := newMerger(s)
	e := Effective{
		Sources:     sourceNames(m.policies),
		Enforcement: enforcement(m.policies),
		Origins:     m.origins,
	}
	m.execution(&e.Execution)
	m.changes(&e.Changes)
	e.Paths.Protected = m.protected()
	e.Paths.Rules = m.pathRules()
	e.Paths.Severity = decide(m, severityValue("paths.severity", func(r *Rules) Severity { return r.PathSeverity }))
	e.Contracts = m.contracts()
	e.Checks = m.checks()
	e.MaxCheckpointFailures = decide(m, least("breaker.maxCheckpointFailures", func(r *Rules) *int { return r.MaxCheckpointFailures }))
	e.Concurrency.Locks = decide(m, word("concurrency.locks", func(r *Rules) Contention { return r.Locks }, Wait, Fail))
	e.Concurrency.Overlap = decide(m, word("concurrency.overlap", func(r *Rules) Overlap { return r.Overlap }, OverlapAllow, OverlapWarn, OverlapWait))
	e.AllowedRoles = together(m, roles("agents.allowedRoles", func(r *Rules) []string { return r.AllowedRoles }))
	e.Approval = together(m, word("delivery.approval", func(r *Rules) Approval { return r.Approval }, ApprovalNone, ApprovalRequired))
	e.MaxRunning = decide(m, least("capacity.maxRunning", func(r *Rules) *int { return r.MaxRunning }))
	e.KeepCheckpoints = decide(m, most("retention.checkpoints", func(r *Rules) *int { return r.KeepCheckpoints }))
	e.UnpromotedBytes = decide(m, most("retention.unpromotedBytes", func(r *Rules) *int64 { return r.UnpromotedBytes }))
	e.Isolation = decide(m, word("isolation", func(r *Rules) Isolation { return r.Isolation }, IsolationWarn, IsolationEnforce))
	e.History = decide(m, word("delivery.history", func(r *Rules) History { return r.History }, HistorySquash, HistoryHold))
	e.AgentHosts = decide(m, hosts("egress.agent", func(r *Rules) []Host { return r.AgentHosts }))
	e.GitHosts = decide(m, hosts("egress.git", func(r *Rules) []Host { return r.GitHosts }))
	e.Conflicts = slices.Sorted(slices.Values(m.conflicts))
	e.Hash = e.hash()
	return e
}

func (m *merger) execution(e *Execution) {
	e.Mode = decide(m, word("execution.mode", func(r *Rules) string { return r.Execution.Mode }, ModeInteractive, ModeDeterministic))
	e.Strategy = decide(m, word("execution.strategy", func(r *Rules) string { return r.Execution.Strategy }, StrategyDirect, StrategyShadow))
	e.Promotion = decide(m, word("execution.promotion", func(r *Rules) string { return r.Execution.Promotion }, PromotionIncremental, PromotionAtomic))
	e.RevertOnViolation = decide(m, word("execution.revertOnViolation", func(r *Rules) string { return r.Execution.RevertOnViolation },
		RevertNone, RevertViolatingPaths, RevertFull))
	e.Interval = decide(m, least("execution.checkpoint.interval", func(r *Rules) *duration { return r.Execution.Interval }))
	e.MinInterval = decide(m, least("execution.checkpoint.minInterval", func(r *Rules) *duration { return r.Execution.MinInterval }))
	e.MaxChanges = decide(m, least("execution.checkpoint.maxChanges", func(r *Rules) *int { return r.Execution.MaxChanges }))
	e.PauseTimeout = decide(m, least("execution.checkpoint.pauseTimeout", func(r *Rules) *duration { return r.Execution.PauseTimeout }))
}

func (m *merger) changes(c *Changes) {
	c.MaxFiles = decide(m, least("changes.maxFiles", func(r *Rules) *int64 { return r.MaxFiles }))
	c.MaxLines = decide(m, least("changes.maxLines", func(r *Rules) *int64 { return r.MaxLines }))
	c.MaxFileSize = decide(m, least("changes.maxFileSize", func(r *Rules) *int64 { return r.MaxFileSize }))
	c.MaxWorkspaceSize = decide(m, least("changes.maxWorkspaceSize", func(r *Rules) *int64 { return r.MaxWorkspaceSize }))
	c.MaxWorkspaceFiles = decide(m, least("changes.maxWorkspaceFiles", func(r *Rules) *int64 { return r.MaxWorkspaceFiles }))
	c.Symlinks = decide(m, permission("changes.symlinks", func(r *Rules) Permission { return r.Symlinks }))
	c.SpecialFiles = decide(m, permission("changes.specialFiles", func(r *Rules) Permission { return r.SpecialFiles }))
	c.Hardlinks = decide(m, permission("changes.hardlinks", func(r *Rules) Permission { return r.Hardlinks }))
	c.Executables = decide(m, permission("changes.executables", func(r *Rules) Permission { return r.Executables }))
	c.Binaries = decide(m, permission("changes.binaries", func(r *Rules) Permission { return r.Binaries }))
	c.Secrets = decide(m, permission("changes.secrets", func(r *Rules) Permission { return r.Secrets }))
	c.Confusables = decide(m, permission("changes.confusables", func(r *Rules) Permission { return r.Confusables }))
	c.UnportableNames = decide(m, permission("changes.unportableNames", func(r *Rules) Permission { return r.UnportableNames }))
	c.HiddenCharacters = decide(m, permission("changes.hiddenCharacters", func(r *Rules) Permission { return r.HiddenCharacters }))
	c.StrayLinks = decide(m, permission("changes.strayLinks", func(r *Rules) Permission { return r.StrayLinks }))
}

// merger holds the sources in the order in which they are asked.
type merger struct {
	// policies sorted most specific first, each once.
	policies []Source
	levels   []level
	origins  map[string]string
	// conflicts found so far.
	conflicts []string
}

// level is one place in the order of sources. Its members have priorities among each other.
type level []member

// member is one set of rules of a level.
type member struct {
	// origin for people, such as "overrides of tidewaiter-system/base".
	origin   string
	name     string
	priority int32
	rules    *Rules
}

func newMerger(s Sources) *merger {
	m := &merger{policies: ordered(s.Policies), origins: map[string]string{}}
	overrides := func(p *Source) *Rules { return &p.Overrides }
	defaults := func(p *Source) *Rules { return &p.Defaults }
	m.levels = []level{
		m.level(Global, "overrides", overrides),
		m.level(Project, "overrides", overrides),
		{{origin: "the Feature", rules: &Rules{Execution: s.Feature}}},
		m.level(Project, "defaults", defaults),
		m.level(Global, "defaults", defaults),
		{{origin: "the repository's host", rules: repositoryRules(s.RepositoryHost)}},
		{{origin: "built-in", rules: new(builtin())}},
	}
	return m
}

// repositoryRules lets Git reach the repository's own host, on public addresses, where no policy lists hosts.
func repositoryRules(host Host) *Rules {
	if host.Name == "" {
		return &Rules{}
	}
	return &Rules{GitHosts: []Host{{Name: host.Name, Port: host.Port}}}
}

// ordered sorts policies, most specific first, and drops those that are listed twice.
func ordered(policies []Source) []Source {
	sorted := slices.Clone(policies)
	slices.SortStableFunc(sorted, func(a, b Source) int {
		return cmp.Or(
			-strings.Compare(string(a.Scope), string(b.Scope)), // Project before Global
			-cmp.Compare(a.Priority, b.Priority),
			strings.Compare(a.Name, b.Name),
		)
	})
	return slices.CompactFunc(sorted, func(a, b Source) bool { return a.Scope == b.Scope && a.Name == b.Name })
}

func (m *merger) level(scope Scope, part string, rules func(*Source) *Rules) level {
	var l level
	for i := range m.policies {
		p := &m.policies[i]
		if (p.Scope == Global) == (scope == Global) {
			l = append(l, member{origin: part + " of " + p.Name, name: p.Name, priority: p.Priority, rules: rules(p)})
		}
	}
	return l
}

// value is one value of the policy, and how sources set it.
type value[T any] struct {
	// name is its path in a SupervisorPolicy's rules.
	name string
	// of returns it; false where the rules do not set it.
	of func(*Rules) (T, bool)
	// stricter returns the stricter of two; equal says whether they are the same.
	stricter func(a, b T) T
	equal    func(a, b T) bool
}

// decide takes a value from the first level that sets it.
func decide[T any](m *merger, v value[T]) T {
	for _, l := range m.levels {
		var set []member
		for _, member := range l {
			if _, ok := v.of(member.rules); ok {
				set = append(set, member)
			}
		}
		if len(set) > 0 {
			return settle(m, v, set)
		}
	}
	var none T
	return none
}

// together takes the strictest of what all levels say: no source takes back what another one asks for. Its origins are the
// sources that say just that; all of them where only several together are as strict.
func together[T any](m *merger, v value[T]) T {
	var result T
	var set []member
	for _, l := range m.levels {
		for _, x := range l {
			got, ok := v.of(x.rules)
			switch {
			case !ok:
				continue
			case len(set) == 0:
				result = got
			default:
				result = v.stricter(result, got)
			}
			set = append(set, x)
		}
	}
	var all, decisive []string
	for _, x := range set {
		all = append(all, x.origin)
		if got, _ := v.of(x.rules); v.equal(got, result) {
			decisive = append(decisive, x.origin)
		}
	}
	if len(decisive) == 0 {
		decisive = all
	}
	if len(decisive) > 0 {
		m.origins[v.name] = strings.Join(decisive, ", ")
	}
	return result
}

// settle takes the value of the highest priority, and the strictest where several have that. Members are in order of
// priority.
func settle[T any](m *merger, v value[T], set []member) T {
	end := slices.IndexFunc(set, func(x member) bool { return x.priority != set[0].priority })
	if end > 0 {
		set = set[:end]
	}
	result, _ := v.of(set[0].rules)
	agree := true
	for _, x := range set[1:] {
		other, _ := v.of(x.rules)
		agree = agree && v.equal(result, other)
		result = v.stricter(result, other)
	}
	if agree {
		m.origins[v.name] = set[0].origin
		return result
	}
	names := make([]string, len(set))
	for i, x := range set {
		names[i] = x.origin
	}
	m.origins[v.name] = strings.Join(names, ", ")
	m.conflicts = append(m.conflicts, fmt.Sprintf(
		"%s: %s disagree at priority %d; the stricter value is taken, give one of them a higher priority",
		v.name, strings.Join(names, " and "), set[0].priority))
	return result
}

// sourceNames are the names of policies in their order.
func sourceNames(policies []Source) []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.Name)
	}
	return names
}

// enforcement is Audit only where every policy asks for it: what one policy enforces, no other can lift.
func enforcement(policies []Source) Enforcement {
	if len(policies) == 0 {
		return Enforce
	}
	for _, p := range policies {
		if p.Enforcement != Audit {
			return Enforce
		}
	}
	return Audit
}
