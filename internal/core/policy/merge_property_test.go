// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// maybe is a pointer to a value, or nil.
func maybe[T any](t *rapid.T, label string, g *rapid.Generator[T]) *T {
	return rapid.OneOf(rapid.Just[*T](nil), rapid.Map(g, func(v T) *T { return &v })).Draw(t, label)
}

func words[T ~string](t *rapid.T, label string, known ...T) T {
	return rapid.SampledFrom(append([]T{""}, known...)).Draw(t, label)
}

func drawHosts(t *rapid.T, label string) []Host {
	host := rapid.Custom(func(t *rapid.T) Host {
		return Host{
			Name:         rapid.SampledFrom([]string{"a", "b", "*.c"}).Draw(t, "name"),
			Port:         rapid.SampledFrom([]int{0, 443, 8443}).Draw(t, "port"),
			AllowPrivate: rapid.Bool().Draw(t, "private"),
		}
	})
	return rapid.OneOf(rapid.Just[[]Host](nil), rapid.SliceOfN(host, 1, 3)).Draw(t, label)
}

func drawPathRules(t *rapid.T) []PathRule {
	paths, roles := rapid.SampledFrom([]string{"x", "y/**"}), rapid.SampledFrom([]string{"dba", "reviewer"})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) PathRule {
		return PathRule{
			Paths:  rapid.SliceOfN(paths, 1, 2).Draw(t, "paths"),
			Roles:  rapid.SliceOfN(roles, 0, 2).Draw(t, "roles"),
			Access: rapid.SampledFrom([]Access{Write, ReadOnly}).Draw(t, "access"),
		}
	}), 0, 2).Draw(t, "pathRules")
}

func drawContracts(t *rapid.T) []Contract {
	paths := rapid.SliceOfN(rapid.SampledFrom([]string{"api.yaml", "db/**"}), 1, 2)
	var all []Contract
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"db", "openapi"}), 0, 2, rapid.ID).Draw(t, "contracts") {
		all = append(all, Contract{Name: name, Paths: paths.Draw(t, "paths")})
	}
	return all
}

func drawChecks(t *rapid.T) []Check {
	var all []Check
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b"}), 0, 2, rapid.ID).Draw(t, "checks") {
		all = append(all, Check{
			Name: name, CEL: rapid.SampledFrom([]string{"true", "false"}).Draw(t, "cel"), Message: "m",
			Severity: words(t, "checkSeverity", Info, Warning, Error, Critical),
		})
	}
	return all
}

func drawRules(t *rapid.T) Rules {
	seconds := rapid.Map(rapid.IntRange(1, 3), func(n int) time.Duration { return time.Duration(n) * time.Second })
	small, sizes := rapid.IntRange(1, 3), rapid.Int64Range(1, 3)
	return Rules{
		Execution: ExecutionRules{
			Mode:              words(t, "mode", ModeInteractive, ModeDeterministic),
			Strategy:          words(t, "strategy", StrategyDirect, StrategyShadow),
			Promotion:         words(t, "promotion", PromotionAtomic, PromotionIncremental),
			RevertOnViolation: words(t, "revert", RevertNone, RevertViolatingPaths, RevertFull),
			Interval:          maybe(t, "interval", seconds),
			MinInterval:       maybe(t, "minInterval", seconds),
			MaxChanges:        maybe(t, "maxChanges", small),
			PauseTimeout:      maybe(t, "pauseTimeout", seconds),
		},
		Protected:             rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y/**", "CODEOWNERS"}), 0, 2).Draw(t, "protected"),
		PathRules:             drawPathRules(t),
		PathSeverity:          words(t, "severity", Info, Warning, Error, Critical),
		MaxFiles:              maybe(t, "maxFiles", sizes),
		MaxLines:              maybe(t, "maxLines", sizes),
		MaxFileSize:           maybe(t, "maxFileSize", sizes),
		MaxWorkspaceSize:      maybe(t, "maxWorkspaceSize", sizes),
		MaxWorkspaceFiles:     maybe(t, "maxWorkspaceFiles", sizes),
		Symlinks:              words(t, "symlinks", Allow, Warn, Deny),
		SpecialFiles:          words(t, "specialFiles", Allow, Warn, Deny),
		Hardlinks:             words(t, "hardlinks", Allow, Warn, Deny),
		Executables:           words(t, "executables", Allow, Warn, Deny),
		Binaries:              words(t, "binaries", Allow, Warn, Deny),
		Secrets:               words(t, "secrets", Allow, Warn, Deny),
		Confusables:           words(t, "confusables", Allow, Warn, Deny),
		UnportableNames:       words(t, "unportableNames", Allow, Warn, Deny),
		HiddenCharacters:      words(t, "hiddenCharacters", Allow, Warn, Deny),
		StrayLinks:            words(t, "strayLinks", Allow, Warn, Deny),
		Contracts:             drawContracts(t),
		Checks:                drawChecks(t),
		MaxCheckpointFailures: maybe(t, "maxCheckpointFailures", small),
		GitHosts:              drawHosts(t, "gitHosts"),
		AgentHosts:            drawHosts(t, "agentHosts"),
		Locks:                 words(t, "locks", Wait, Fail),
		Overlap:               words(t, "overlap", OverlapAllow, OverlapWarn, OverlapWait),
		AllowedRoles:          drawRoles(t),
		Approval:              words(t, "approval", ApprovalNone, ApprovalRequired),
		MaxRunning:            maybe(t, "maxRunning", small),
		KeepCheckpoints:       maybe(t, "keepCheckpoints", small),
		UnpromotedBytes:       maybe(t, "unpromotedBytes", rapid.Int64Range(1, 3)),
		History:               words(t, "history", HistorySquash, HistoryHold),
		Isolation:             words(t, "isolation", IsolationWarn, IsolationEnforce),
	}
}

// drawRoles draws a list of roles, or none.
func drawRoles(t *rapid.T) []string {
	list := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"implementor", "dba", "writer"}), 0, 2, rapid.ID).Draw(t, "roles")
	if len(list) == 0 {
		return nil
	}
	return list
}

func drawSources(t *rapid.T) Sources {
	s := Sources{Feature: drawRules(t).Execution, RepositoryHost: Host{Name: "git", Port: 443}}
	for i := range rapid.IntRange(0, 4).Draw(t, "policies") {
		s.Policies = append(s.Policies, Source{
			Name:        fmt.Sprintf("ns/p%d", i),
			Scope:       rapid.SampledFrom([]Scope{Global, Project}).Draw(t, "scope"),
			Priority:    rapid.Int32Range(0, 1).Draw(t, "priority"),
			Enforcement: words(t, "enforcement", Enforce, Audit),
			Defaults:    drawRules(t),
			Overrides:   drawRules(t),
		})
	}
	return s
}

// asRules are rules that set every value as it is in effect.
func asRules(e Effective) Rules {
	return Rules{
		Execution: ExecutionRules{
			Mode: e.Execution.Mode, Strategy: e.Execution.Strategy, Promotion: e.Execution.Promotion,
			RevertOnViolation: e.Execution.RevertOnViolation, Interval: &e.Execution.Interval,
			MinInterval: &e.Execution.MinInterval, MaxChanges: &e.Execution.MaxChanges, PauseTimeout: &e.Execution.PauseTimeout,
		},
		Protected: e.Paths.Protected, PathRules: e.Paths.Rules, PathSeverity: e.Paths.Severity,
		Contracts: e.Contracts, Checks: e.Checks,
		MaxFiles: &e.Changes.MaxFiles, MaxLines: &e.Changes.MaxLines, MaxFileSize: &e.Changes.MaxFileSize,
		MaxWorkspaceSize: &e.Changes.MaxWorkspaceSize, MaxWorkspaceFiles: &e.Changes.MaxWorkspaceFiles,
		Symlinks: e.Changes.Symlinks, SpecialFiles: e.Changes.SpecialFiles,
		Hardlinks: e.Changes.Hardlinks, Executables: e.Changes.Executables,
		Binaries: e.Changes.Binaries, Secrets: e.Changes.Secrets,
		Confusables:           e.Changes.Confusables,
		UnportableNames:       e.Changes.UnportableNames,
		HiddenCharacters:      e.Changes.HiddenCharacters,
		StrayLinks:            e.Changes.StrayLinks,
		MaxCheckpointFailures: &e.MaxCheckpointFailures, GitHosts: e.GitHosts, AgentHosts: e.AgentHosts,
		Locks: e.Concurrency.Locks, Overlap: e.Concurrency.Overlap, MaxRunning: &e.MaxRunning, KeepCheckpoints: &e.KeepCheckpoints,
		AllowedRoles: e.AllowedRoles, Approval: e.Approval, History: e.History, Isolation: e.Isolation, UnpromotedBytes: &e.UnpromotedBytes,
	}
}

// TestMergeDoesNotDependOnOrder also covers that merging again says the same.
func TestMergeDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSources(t)
		want := Merge(s)
		s.Policies = rapid.Permutation(s.Policies).Draw(t, "permutation")
		if diff := cmp.Diff(want, Merge(s)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.Policies = append(s.Policies, s.Policies...)
		if diff := cmp.Diff(want, Merge(s)); diff != "" {
			t.Errorf("each policy twice (-want +got):\n%s", diff)
		}
	})
}

// TestMergeIsIdempotent: what was merged, as a policy that overrides everything, merges to itself.
func TestMergeIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSources(t)
		merged := Merge(s)
		s.Policies = append(s.Policies, Source{
			Name: "system/all", Scope: Global, Priority: 99, Enforcement: merged.Enforcement, Overrides: asRules(merged),
		})
		again := Merge(s)
		if again.Hash != merged.Hash {
			t.Errorf("(-once +again):\n%s", cmp.Diff(merged, again))
		}
		if len(again.Conflicts) > 0 {
			t.Errorf("conflicts below an override: %v", again.Conflicts)
		}
	})
}

// TestOverridesAlwaysWin: whatever all others say, a global override of the highest priority is what is in effect.
func TestOverridesAlwaysWin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSources(t)
		rules := drawRules(t)
		s.Policies = append(s.Policies, Source{Name: "system/z", Scope: Global, Priority: 99, Overrides: rules})
		with := Merge(s)
		alone := Merge(Sources{Policies: []Source{{Name: "system/z", Scope: Global, Overrides: rules}}})
		const origin = "overrides of system/z"
		got, want := valuesOf(t, with), valuesOf(t, alone)
		for name := range alone.Origins {
			if _, decided := want[name]; !decided || alone.Origins[name] != origin {
				continue // lists that are united are not won
			}
			if with.Origins[name] != origin || got[name] != want[name] {
				t.Errorf("%s: got %s from %s, want %s from %s", name, got[name], with.Origins[name], want[name], origin)
			}
		}
	})
}

// valuesOf are the values of a policy by the names that Origins has.
func valuesOf(t *rapid.T, e Effective) map[string]string {
	t.Helper()
	show := func(v any) string { return fmt.Sprintf("%v", v) }
	checks := func(name string) string {
		return show(slices.DeleteFunc(slices.Clone(e.Checks), func(c Check) bool { return c.Name != name }))
	}
	return map[string]string{
		"execution.mode": e.Execution.Mode, "execution.strategy": e.Execution.Strategy,
		"execution.promotion": e.Execution.Promotion, "execution.revertOnViolation": e.Execution.RevertOnViolation,
		"execution.checkpoint.interval":     show(e.Execution.Interval),
		"execution.checkpoint.minInterval":  show(e.Execution.MinInterval),
		"execution.checkpoint.maxChanges":   show(e.Execution.MaxChanges),
		"execution.checkpoint.pauseTimeout": show(e.Execution.PauseTimeout),
		"paths.severity":                    string(e.Paths.Severity),
		"changes.maxFiles":                  show(e.Changes.MaxFiles),
		"changes.maxLines":                  show(e.Changes.MaxLines),
		"changes.maxFileSize":               show(e.Changes.MaxFileSize),
		"changes.maxWorkspaceSize":          show(e.Changes.MaxWorkspaceSize),
		"changes.maxWorkspaceFiles":         show(e.Changes.MaxWorkspaceFiles),
		"changes.symlinks":                  string(e.Changes.Symlinks),
		"changes.specialFiles":              string(e.Changes.SpecialFiles),
		"changes.hardlinks":                 string(e.Changes.Hardlinks),
		"changes.executables":               string(e.Changes.Executables),
		"changes.binaries":                  string(e.Changes.Binaries),
		"changes.secrets":                   string(e.Changes.Secrets),
		"changes.confusables":               string(e.Changes.Confusables),
		"changes.unportableNames":           string(e.Changes.UnportableNames),
		"changes.hiddenCharacters":          string(e.Changes.HiddenCharacters),
		"changes.strayLinks":                string(e.Changes.StrayLinks),
		"checks.a":                          checks("a"),
		"checks.b":                          checks("b"),
		"breaker.maxCheckpointFailures":     show(e.MaxCheckpointFailures),
		"concurrency.locks":                 string(e.Concurrency.Locks),
		"concurrency.overlap":               string(e.Concurrency.Overlap),
		"capacity.maxRunning":               show(e.MaxRunning),
		"retention.checkpoints":             show(e.KeepCheckpoints),
		"delivery.history":                  string(e.History),
		"isolation":                         string(e.Isolation),
		"retention.unpromotedBytes":         show(e.UnpromotedBytes),
		"egress.git":                        show(e.GitHosts),
		"egress.agent":                      show(e.AgentHosts),
	}
}

// TestGuardsNeverShrink: one more policy guards at least what was guarded, and all sources' guards are there.
func TestGuardsNeverShrink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSources(t)
		before := guards(Merge(s))
		s.Policies = append(s.Policies, Source{Name: "ns/more", Scope: Project, Overrides: drawRules(t)})
		after := guards(Merge(s))
		for _, guard := range slices.Concat(before, BuiltinProtected()) {
			if !slices.Contains(after, guard) {
				t.Errorf("%s no longer holds", guard)
			}
		}
	})
}

// TestBoundsAreNeverLifted: an approval that any source requires is required, and a role is allowed only where every
// source that lists roles has it. Where the policy bounds anything, it says who does.
func TestBoundsAreNeverLifted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSources(t)
		want := ApprovalNone
		var lists [][]string
		for _, p := range s.Policies {
			for _, r := range []Rules{p.Defaults, p.Overrides} {
				if r.Approval == ApprovalRequired {
					want = ApprovalRequired
				}
				if r.AllowedRoles != nil {
					lists = append(lists, r.AllowedRoles)
				}
			}
		}
		e := Merge(s)
		if e.Approval != want || e.Origins["delivery.approval"] == "" || want == ApprovalRequired && strings.Contains(e.Origins["delivery.approval"], "built-in") {
			t.Errorf("approval %s by %q, want %s", e.Approval, e.Origins["delivery.approval"], want)
		}
		if (e.AllowedRoles != nil) != (len(lists) > 0) || (e.Origins["agents.allowedRoles"] != "") != (len(lists) > 0) {
			t.Errorf("roles %v by %q, where %d lists are", e.AllowedRoles, e.Origins["agents.allowedRoles"], len(lists))
		}
		for _, role := range []string{"implementor", "dba", "writer"} {
			allowed := !slices.ContainsFunc(lists, func(list []string) bool { return !slices.Contains(list, role) })
			if len(lists) > 0 && slices.Contains(e.AllowedRoles, role) != allowed {
				t.Errorf("role %s: allowed by all lists: %t, by the policy: %v", role, allowed, e.AllowedRoles)
			}
		}
	})
}

// guards are protected paths, path rules and the paths of contracts, as text.
func guards(e Effective) []string {
	all := slices.Clone(e.Paths.Protected)
	for _, r := range e.Paths.Rules {
		all = append(all, fmt.Sprint(r))
	}
	for _, c := range e.Contracts {
		for _, path := range c.Paths {
			all = append(all, c.Name+": "+path)
		}
	}
	return all
}

// TestConflictsAreOnlyTies: no two policies of equal scope and priority, no conflict.
func TestConflictsAreOnlyTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSources(t)
		for i := range s.Policies {
			s.Policies[i].Priority = int32(i)
		}
		if got := Merge(s).Conflicts; len(got) > 0 {
			t.Errorf("conflicts: %v", got)
		}
	})
}
