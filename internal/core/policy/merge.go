// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Merge makes the effective policy of a Feature. Each value comes from the first of these that sets it: overrides
// of global policies, overrides of project policies, the Feature, defaults of project policies, defaults of global
// policies, the built-in rules. Protected paths, path rules and the paths of a contract are united; checks are decided
// name by name. Every source can tighten the bounds of Features. All sources that list roles must allow a role, and an approval that any
// source requires is required. A Feature may lower its budget, and not raise it. Among policies of one scope the higher priority wins;
// where equal ones disagree the stricter value is taken and the disagreement is named in Conflicts.
//
// Merge is pure, and the order of the policies does not matter.
func Merge(s Sources) Effective {
	m := newMerger(s)
	e := Effective{
		Sources:     sourceNames(m.policies),
		Enforcement: enforcement(m.policies),
		SuspendedBy: suspendedBy(m.policies),
		Origins:     m.origins,
	}
	for _, row := range Rows() {
		row.merge(m, &e)
	}
	e.Conflicts = slices.Sorted(slices.Values(m.conflicts))
	e.Hash = e.hash()
	return e
}

// merger holds the sources by precedence.
type merger struct {
	// policies sorted most specific first, each once.
	policies []Source
	levels   []level
	origins  map[string]string
	// conflicts found so far.
	conflicts []string
}

// Levels in their order; what the repository and Tidewaiter itself say comes last.
const (
	levelGlobalOverrides = iota
	levelProjectOverrides
	levelFeature
	levelProjectDefaults
	levelGlobalDefaults
)

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
		levelGlobalOverrides:  m.level(Global, "overrides", overrides),
		levelProjectOverrides: m.level(Project, "overrides", overrides),
		levelFeature:          {{origin: "the Feature", rules: &Rules{Execution: s.Feature, Budget: BudgetRules{Feature: s.FeatureBudget}, Pod: s.FeaturePod}}},
		levelProjectDefaults:  m.level(Project, "defaults", defaults),
		levelGlobalDefaults:   m.level(Global, "defaults", defaults),
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

// ordered sorts policies, most specific first, and drops duplicates.
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

// settle takes the value of the highest priority, and the strictest where several have that. Members are sorted by priority.
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

// suspendedBy names every policy that suspends: what one policy stops, no other can start, whatever their scope and priority.
func suspendedBy(policies []Source) []string {
	var names []string
	for _, p := range policies {
		if p.Suspend {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
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
