// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"strings"
)

// united says how lists are merged to which every source can only add.
const united = "all of them, together with the entries of every other source"

// byRole says how a list is merged whose entries exclude each other.
const byRole = "for each role, the first source that has it; at equal priority, the source whose names come first"

func protectedRow() Row {
	return Row{
		Path: "paths.protected", Purpose: "Paths that must not change, even if nothing exists there yet.", Allowed: "patterns as in .gitignore",
		Builtin: "`" + strings.Join(BuiltinProtected(), "`, `") + "`", Merging: united,
		preset: func(r *Rules) { r.Protected = BuiltinProtected() },
		merge:  func(m *merger, e *Effective) { e.Paths.Protected = m.protected() },
		rules:  func(r *Rules) any { return &r.Protected }, effective: func(e *Effective) any { return &e.Paths.Protected },
	}
}

func pathRulesRow() Row {
	const path = "paths.rules"
	return Row{
		Path: path, Purpose: "Which roles can write to which paths.", Allowed: "patterns, roles, and Write or ReadOnly", Builtin: "none", Merging: united,
		check: func(r *Rules) error { return validPathRules(path, r.PathRules) },
		merge: func(m *merger, e *Effective) { e.Paths.Rules = m.pathRules() },
		rules: func(r *Rules) any { return &r.PathRules }, effective: func(e *Effective) any { return &e.Paths.Rules },
	}
}

func contractsRow() Row {
	return Row{
		Path: "contracts", Purpose: "Groups of paths that a Feature can change only while it holds their lock.", Allowed: "names with patterns", Builtin: "none", Merging: united + ", by name",
		merge: func(m *merger, e *Effective) { e.Contracts = m.contracts() },
		rules: func(r *Rules) any { return &r.Contracts }, effective: func(e *Effective) any { return &e.Contracts },
	}
}

func checksRow() Row {
	const path = "checks"
	return Row{
		Path: path, Purpose: "Rules that users write in CEL about each changed file.", Allowed: "names with a CEL expression, a message and a severity", Builtin: "none",
		Merging: "both, if checks of one name differ",
		check:   func(r *Rules) error { return checkSeverities(path, r.Checks) },
		merge:   func(m *merger, e *Effective) { e.Checks = m.checks() },
		rules:   func(r *Rules) any { return &r.Checks }, effective: func(e *Effective) any { return &e.Checks },
	}
}

func modelsRow() Row {
	return Row{
		Path: "models", Purpose: "Which backend and which of its models answers a role. The role primary is for what agents ask, summarizer for their small side calls, and supervisor for what Tidewaiter itself asks.",
		Allowed: "roles with a backend and a model", Builtin: "the first backend that speaks the runtime's dialect, with its first model", Merging: byRole,
		merge: func(m *merger, e *Effective) { e.Models = m.models() },
		rules: func(r *Rules) any { return &r.Models }, effective: func(e *Effective) any { return &e.Models },
	}
}

// Paths of the bounds of what Features use.
const (
	PathRepositories = "git.repositories"
	PathBranches     = "delivery.branches"
)

func repositoriesRow() Row {
	return boundsRow(PathRepositories, "Repositories that Features can work on.", "globs as host/path, such as `git.example.com/team/*`", "every repository",
		func(r *Rules) *[]Bound { return &r.Repositories }, func(e *Effective) *[]Bound { return &e.Repositories })
}

func branchesRow() Row {
	return boundsRow(PathBranches, "Branches that Features can deliver.", "globs, such as `tidewaiter/**`", "every branch",
		func(r *Rules) *[]Bound { return &r.Branches }, func(e *Effective) *[]Bound { return &e.Branches })
}

// boundsRow makes a row of lists that all count. Nobody can write down in one list of globs what two of them have in common.
func boundsRow(path, purpose, allowed, builtin string, rules func(*Rules) *[]Bound, effective func(*Effective) *[]Bound) Row {
	return Row{
		Path: path, Purpose: purpose, Allowed: allowed, Builtin: builtin, addsUp: true,
		Merging: "does not matter: the lists of all sources count, whatever their scope and priority, and each needs a match",
		merge: func(m *merger, e *Effective) {
			*effective(e) = m.bounds(path, func(r *Rules) []Bound { return *rules(r) })
		},
		rules: func(r *Rules) any { return rules(r) }, effective: func(e *Effective) any { return effective(e) },
		cut: func(e *Effective) (now, builtin any) {
			var lists, none [][]string
			for _, b := range *effective(e) {
				lists = append(lists, b.Globs)
			}
			*effective(e) = nil
			return lists, none
		},
	}
}

// bounds are the lists of all sources, each once, with the sources that have it. An empty list bounds nothing.
func (m *merger) bounds(path string, of func(*Rules) []Bound) []Bound {
	var all []Bound
	var origins []string
	for _, l := range m.levels {
		for _, member := range l {
			for _, b := range of(member.rules) {
				globs := set(b.Globs)
				if len(globs) == 0 {
					continue
				}
				if !slices.Contains(origins, member.origin) {
					origins = append(origins, member.origin)
				}
				if i := slices.IndexFunc(all, func(o Bound) bool { return slices.Equal(o.Globs, globs) }); i >= 0 {
					all[i].From += ", " + member.origin
				} else {
					all = append(all, Bound{Globs: globs, From: member.origin})
				}
			}
		}
	}
	if len(origins) > 0 {
		m.origins[path] = strings.Join(origins, ", ")
	}
	slices.SortFunc(all, func(a, b Bound) int { return slices.Compare(a.Globs, b.Globs) })
	return all
}

// protected unites the protected paths of all sources.
func (m *merger) protected() []string {
	return unite(m, "paths.protected", func(r *Rules) []string { return r.Protected }, strings.Compare)
}

// pathRules unites the path rules of all sources. None of them can lift another, so that there is nothing to decide.
func (m *merger) pathRules() []PathRule {
	return unite(m, "paths.rules", func(r *Rules) []PathRule {
		var normal []PathRule
		for _, rule := range r.PathRules {
			normal = append(normal, PathRule{Paths: set(rule.Paths), Roles: set(rule.Roles), Access: rule.Access})
		}
		return normal
	}, func(a, b PathRule) int {
		return cmp.Or(slices.Compare(a.Paths, b.Paths), slices.Compare(a.Roles, b.Roles), cmp.Compare(a.Access, b.Access))
	})
}

// contracts unites the paths of each contract: a source can add to one and never take from it.
func (m *merger) contracts() []Contract {
	var all []Contract
	for _, name := range m.names(func(r *Rules) (names []string) {
		for _, c := range r.Contracts {
			names = append(names, c.Name)
		}
		return names
	}) {
		paths := unite(m, "contracts."+name, func(r *Rules) (paths []string) {
			for _, c := range r.Contracts {
				if c.Name == name {
					paths = append(paths, c.Paths...)
				}
			}
			return paths
		}, strings.Compare)
		all = append(all, Contract{Name: name, Paths: paths})
	}
	return all
}

// checks decides each check by its name. Nobody can say which of two expressions is the stricter: both hold then.
func (m *merger) checks() []Check {
	var all []Check
	for _, name := range m.names(func(r *Rules) (names []string) {
		for _, c := range r.Checks {
			names = append(names, c.Name)
		}
		return names
	}) {
		all = append(all, decide(m, value[[]Check]{
			name:     "checks." + name,
			of:       func(r *Rules) ([]Check, bool) { named := checksNamed(r, name); return named, named != nil },
			stricter: func(a, b []Check) []Check { return sortedSet(slices.Concat(a, b), compareChecks) },
			equal:    slices.Equal[[]Check],
		})...)
	}
	return all
}

// checksNamed are the checks of this name; one without a severity is an Error, as in the API.
func checksNamed(r *Rules, name string) []Check {
	var named []Check
	for _, c := range r.Checks {
		if c.Name == name {
			c.Severity = c.Severity.OrError()
			named = append(named, c)
		}
	}
	return sortedSet(named, compareChecks)
}

func compareChecks(a, b Check) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.CEL, b.CEL), strings.Compare(a.Message, b.Message),
		a.Severity.Compare(b.Severity), cmp.Compare(a.Severity, b.Severity))
}

// models decides each role. No backend is stricter than another: where sources of one priority disagree, which one it is only
// must not depend on their order.
func (m *merger) models() []ModelRef {
	var all []ModelRef
	for _, role := range m.names(func(r *Rules) (roles []string) {
		for _, ref := range r.Models {
			roles = append(roles, ref.Role)
		}
		return roles
	}) {
		all = append(all, decide(m, value[ModelRef]{
			name: "models." + role,
			of: func(r *Rules) (ModelRef, bool) {
				i := slices.IndexFunc(r.Models, func(ref ModelRef) bool { return ref.Role == role })
				if i < 0 {
					return ModelRef{}, false
				}
				return r.Models[i], true
			},
			stricter: func(a, b ModelRef) ModelRef {
				if cmp.Or(strings.Compare(a.Backend, b.Backend), strings.Compare(a.Model, b.Model), strings.Compare(a.Key.Secret, b.Key.Secret), strings.Compare(a.Key.Key, b.Key.Key), strings.Compare(string(a.ProviderState), string(b.ProviderState))) <= 0 {
					return a
				}
				return b
			},
			equal: func(a, b ModelRef) bool { return a == b },
		}))
	}
	return all
}

// names of the things that any source has, each once, sorted.
func (m *merger) names(of func(*Rules) []string) []string {
	var all []string
	for _, l := range m.levels {
		for _, member := range l {
			all = append(all, of(member.rules)...)
		}
	}
	return set(all)
}

// unite joins the lists of all sources into a sorted set, and notes where it is from.
func unite[T any](m *merger, name string, of func(*Rules) []T, compare func(a, b T) int) []T {
	var all []T
	var origins []string
	for _, l := range m.levels {
		for _, member := range l {
			if list := of(member.rules); len(list) > 0 {
				all = append(all, list...)
				origins = append(origins, member.origin)
			}
		}
	}
	if len(origins) > 0 {
		m.origins[name] = strings.Join(origins, ", ")
	}
	return sortedSet(all, compare)
}

// set is a list sorted, each entry once; nil where it is empty.
func set(list []string) []string { return sortedSet(list, strings.Compare) }

func sortedSet[T any](list []T, compare func(a, b T) int) []T {
	if len(list) == 0 {
		return nil
	}
	return slices.CompactFunc(slices.SortedFunc(slices.Values(list), compare), func(a, b T) bool { return compare(a, b) == 0 })
}
