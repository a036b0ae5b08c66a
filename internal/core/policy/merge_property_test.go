// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

func drawGates(t *rapid.T) []Gate {
	var all []Gate
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b"}), 0, 2, rapid.ID).Draw(t, "gates") {
		all = append(all, Gate{
			Name: name, Command: rapid.SampledFrom([][]string{{"make"}, {"make", "test"}}).Draw(t, "command"),
			Image: rapid.SampledFrom([]string{"", "i"}).Draw(t, "image"), Timeout: time.Minute,
		})
	}
	return all
}

func drawCustomReviewers(t *rapid.T) []CustomReviewer {
	var all []CustomReviewer
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b"}), 0, 2, rapid.ID).Draw(t, "custom") {
		all = append(all, CustomReviewer{
			Name: name, Instructions: rapid.SampledFrom([]string{"Look.", "Look twice."}).Draw(t, "instructions"), EveryTasks: rapid.IntRange(0, 2).Draw(t, "every"),
			Paths: rapid.SampledFrom([][]string{nil, {"a/**"}, {"b", "a/**"}}).Draw(t, "paths"), Priority: rapid.SampledFrom([]string{ReviewNormal, ReviewLow}).Draw(t, "reviewPriority"),
		})
	}
	return all
}

func drawModels(t *rapid.T) []ModelRef {
	var all []ModelRef
	for _, role := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"primary", "supervisor"}), 0, 2, rapid.ID).Draw(t, "roles") {
		all = append(all, ModelRef{Role: role, Backend: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "backend"), Model: "m", ProviderState: rapid.SampledFrom([]ProviderState{"", StateAllow}).Draw(t, "state")})
	}
	return all
}

func drawProfiles(t *rapid.T) []Role {
	var all []Role
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"implementor", "dba"}), 0, 2, rapid.ID).Draw(t, "profiles") {
		all = append(all, Role{Name: name, Stall: rapid.IntRange(0, 2).Draw(t, "stall"), Alternate: rapid.SampledFrom([]string{"", "ask", "stop"}).Draw(t, "alternate")})
	}
	return all
}

// drawRules sets each value of the table to something that it may be, or leaves it out.
func drawRules(t *rapid.T) Rules {
	var r Rules
	small := rapid.Int64Range(1, 3)
	for _, row := range Rows() {
		switch p := row.rules(&r).(type) {
		case *[]string:
			if row.addsUp {
				*p = drawRoles(t)
				continue
			}
			*p = rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y/**", "CODEOWNERS"}), 0, 2).Draw(t, row.Path)
		case *[]Bound:
			*p = drawBounds(t, row.Path)
		case *[]PathRule:
			*p = drawPathRules(t)
		case *[]Contract:
			*p = drawContracts(t)
		case *[]Check:
			*p = drawChecks(t)
		case *[]Gate:
			*p = drawGates(t)
		case *[]CustomReviewer:
			*p = drawCustomReviewers(t)
		case *[]ModelRef:
			*p = drawModels(t)
		case *[]Role:
			*p = drawProfiles(t)
		case *[]Host:
			*p = drawHosts(t, row.Path)
		case **int:
			*p = maybe(t, row.Path, rapid.IntRange(1, 3))
		case **string:
			*p = maybe(t, row.Path, rapid.SampledFrom([]string{"", "high", "low"}))
		case *map[string]string:
			*p = rapid.MapOfN(rapid.SampledFrom([]string{"pool", "zone"}), rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, row.Path)
		case *map[string]Quantity:
			*p = rapid.MapOfN(rapid.SampledFrom([]string{"cpu", "memory"}), rapid.SampledFrom([]Quantity{{1000, "1"}, {2000, "2"}, {2000, "2k"}}), 0, 2).Draw(t, row.Path)
		case *[]Toleration:
			*p = drawTolerations(t)
		case *[]Spread:
			*p = drawSpreads(t)
		case **bool:
			*p = maybe(t, row.Path, rapid.Bool())
		case **int64:
			*p = maybe(t, row.Path, small)
		case **time.Duration:
			*p = maybe(t, row.Path, rapid.Map(small, func(n int64) time.Duration { return time.Duration(n) * time.Second }))
		default:
			word := reflect.ValueOf(p).Elem() // fails for anything but a word
			word.SetString(words(t, row.Path, strings.Split(row.Allowed, ", ")...))
		}
	}
	return r
}

// drawRoles draws a list of roles, or none.
func drawRoles(t *rapid.T) []string {
	list := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"implementor", "dba", "writer"}), 0, 2, rapid.ID).Draw(t, "roles")
	if len(list) == 0 {
		return nil
	}
	return list
}

// drawBounds draws the list of a source, an empty one, or none.
func drawBounds(t *rapid.T, label string) []Bound {
	list := rapid.SliceOfN(rapid.SampledFrom([]string{"a/*", "b/*", "c"}), 0, 2)
	return rapid.OneOf(rapid.Just[[]Bound](nil), rapid.Map(list, func(l []string) []Bound { return []Bound{{Globs: l}} })).Draw(t, label)
}

// drawTolerations draws the list of a source, an empty one, or none.
func drawTolerations(t *rapid.T) []Toleration {
	list := rapid.SliceOfN(rapid.SampledFrom([]Toleration{{Key: "a", Operator: "Exists"}, {Key: "a", Value: "x"}, {Key: "b", Seconds: Seconds{Set: true}}}), 0, 3)
	return rapid.OneOf(rapid.Just[[]Toleration](nil), list).Draw(t, "tolerations")
}

// drawSpreads draws the list of a source, an empty one, or none.
func drawSpreads(t *rapid.T) []Spread {
	list := rapid.SliceOfN(rapid.SampledFrom([]Spread{{Key: "zone", MaxSkew: 1}, {Key: "zone", MaxSkew: 2}, {Key: "host", MaxSkew: 1}}), 0, 3)
	return rapid.OneOf(rapid.Just[[]Spread](nil), list).Draw(t, "spreads")
}

func drawSources(t *rapid.T) Sources {
	feature := drawRules(t)
	s := Sources{Feature: feature.Execution, FeaturePod: feature.Pod, RepositoryHost: Host{Name: "git", Port: 443}}
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

// asRules sets every value to what it is in an effective policy.
func asRules(e Effective) Rules {
	var r Rules
	for _, row := range Rows() {
		to, from := reflect.ValueOf(row.rules(&r)).Elem(), reflect.ValueOf(row.effective(&e))
		if from.Type() != to.Type() {
			from = from.Elem()
		}
		to.Set(from)
	}
	return r
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
		if diff := cmp.Diff(merged.Pod, again.Pod, cmpopts.EquateEmpty()); diff != "" { // the hash does not count it
			t.Errorf("pods (-once +again):\n%s", diff)
		}
		if conflicts := ties(again); len(conflicts) > 0 {
			t.Errorf("conflicts below an override: %v", conflicts)
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
		got, want := valuesOf(with), valuesOf(alone)
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

// valuesOf an effective policy, by path; checks by name, and without what all sources add to.
func valuesOf(e Effective) map[string]string {
	values := map[string]string{}
	for _, row := range Rows() {
		if row.addsUp {
			continue
		}
		switch p := row.effective(&e).(type) {
		case *[]string, *[]PathRule, *[]Contract:
		case *[]Check:
			for _, c := range *p {
				values[row.Path+"."+c.Name] += fmt.Sprint(c)
			}
		case *[]Gate:
			for _, g := range *p {
				values[row.Path+"."+g.Name] += fmt.Sprint(g)
			}
		default:
			values[row.Path] = string(text(reflect.ValueOf(p).Elem().Interface()))
		}
	}
	return values
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
		if got := ties(Merge(s)); len(got) > 0 {
			t.Errorf("conflicts: %v", got)
		}
	})
}

// ties are the conflicts that come from equal priorities, and not from what a project may not set.
func ties(e Effective) []string {
	return slices.DeleteFunc(slices.Clone(e.Conflicts), func(c string) bool {
		return strings.Contains(c, "no global policy permits that") || strings.Contains(c, "only global policies may")
	})
}

// TestAProjectDoesNotSwitchSupervisionOff: only where a global policy switches it off as well.
func TestAProjectDoesNotSwitchSupervisionOff(t *testing.T) {
	off, on := false, true
	source := func(name string, scope Scope, defaults, overrides *bool) Source {
		return Source{Name: name, Scope: scope, Defaults: Rules{Supervision: SupervisionRules{Enabled: defaults}}, Overrides: Rules{Supervision: SupervisionRules{Enabled: overrides}}}
	}
	for name, tc := range map[string]struct {
		policies []Source
		want     bool
		conflict string
	}{
		"nobody":                     {nil, true, ""},
		"a project":                  {[]Source{source("shop/p", Project, &off, nil)}, true, "supervision.enabled: defaults of shop/p sets it to false, and no global policy permits that; it stays true"},
		"a project that overrides":   {[]Source{source("shop/p", Project, nil, &off), source("sys/g", Global, &on, nil)}, true, "supervision.enabled: overrides of shop/p sets it to false, and no global policy permits that; it stays true"},
		"all":                        {[]Source{source("sys/g", Global, &off, nil)}, false, ""},
		"a project that takes leave": {[]Source{source("shop/p", Project, &off, nil), source("sys/g", Global, &off, nil)}, false, ""},
		"a project that wants it":    {[]Source{source("shop/p", Project, &on, nil), source("sys/g", Global, &off, nil)}, true, ""},
		"a global one that insists":  {[]Source{source("shop/p", Project, &off, nil), source("sys/g", Global, nil, &on)}, true, ""},
	} {
		e := Merge(Sources{Policies: tc.policies})
		if got := strings.Join(e.Conflicts, "\n"); e.Supervision.Enabled != tc.want || got != tc.conflict {
			t.Errorf("%s: %v, %q; want %v, %q", name, e.Supervision.Enabled, got, tc.want, tc.conflict)
		}
	}
}

// TestAProjectSetsNoTotalCapacity: what bounds all projects is the platform's.
func TestAProjectSetsNoTotalCapacity(t *testing.T) {
	e := Merge(Sources{Policies: []Source{
		{Name: "sys/g", Scope: Global, Defaults: Rules{MaxRunningTotal: new(50)}}, {Name: "shop/p", Scope: Project, Overrides: Rules{MaxRunningTotal: new(1)}},
	}})
	want := []string{"capacity.maxRunningTotal: overrides of shop/p sets it, and only global policies may; it is not followed"}
	if e.MaxRunningTotal != 50 || !slices.Equal(e.Conflicts, want) {
		t.Errorf("%d, conflicts %q", e.MaxRunningTotal, e.Conflicts)
	}
}

// TestAProjectDoesNotLiftAnswerRules: what checks answers is as built in, unless a global policy permits something else.
func TestAProjectDoesNotLiftAnswerRules(t *testing.T) {
	off, on := false, true
	lifted := Rules{Supervision: SupervisionRules{FailOnViolation: &off, AllowRawOutput: &on, AllowOutputReplacement: &on, RequireFormatValidation: &off}}
	project := Source{Name: "shop/p", Scope: Project, Defaults: lifted}
	if e := Merge(Sources{Policies: []Source{project}}); e.Supervision.Answers != builtinAnswers || len(e.Conflicts) != 4 {
		t.Errorf("%+v, %q", e.Supervision.Answers, e.Conflicts)
	}
	e := Merge(Sources{Policies: []Source{project, {Name: "sys/g", Scope: Global, Defaults: lifted}}})
	if e.Supervision.Answers != (AnswerRules{MaxRetries: builtinRetries, AllowRawOutput: true, AllowOutputReplacement: true}) || len(e.Conflicts) != 0 {
		t.Errorf("%+v, %q", e.Supervision.Answers, e.Conflicts)
	}
}
