// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	goflag "flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = goflag.Bool("update", false, "write the built-in policy into testdata/builtin.json")

// TestBuiltin is the whole policy of a Feature that no policy applies to: a change here is a change for every user.
func TestBuiltin(t *testing.T) {
	got := Merge(Sources{RepositoryHost: Host{Name: "Git.Example.com", AllowPrivate: true}})
	got.Origins = nil
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/builtin.json"
	if *update {
		if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)+"\n"); diff != "" {
		t.Errorf("(-want +got), -update accepts it:\n%s", diff)
	}
}

// TestOrderOfSources: each source is asked in turn, which shows as the sources before it are taken away.
func TestOrderOfSources(t *testing.T) {
	set := func(seconds time.Duration) Rules {
		return Rules{Execution: ExecutionRules{Interval: new(seconds * time.Second)}}
	}
	s := Sources{
		Policies: []Source{
			{Name: "system/base", Scope: Global, Overrides: set(1), Defaults: set(5)},
			{Name: "shop/base", Scope: Project, Priority: 9, Overrides: set(2), Defaults: set(4)},
		},
		Feature: set(3).Execution,
	}
	const field = "execution.checkpoint.interval"
	steps := []struct {
		want   time.Duration
		origin string
		remove func()
	}{
		{1, "overrides of system/base", func() { s.Policies[0].Overrides = Rules{} }},
		{2, "overrides of shop/base", func() { s.Policies[1].Overrides = Rules{} }},
		{3, "the Feature", func() { s.Feature = ExecutionRules{} }},
		{4, "defaults of shop/base", func() { s.Policies[1].Defaults = Rules{} }},
		{5, "defaults of system/base", func() { s.Policies[0].Defaults = Rules{} }},
		{30, "built-in", func() {}},
	}
	for _, step := range steps {
		got := Merge(s)
		if got.Execution.Interval != step.want*time.Second || got.Origins[field] != step.origin {
			t.Errorf("got %v from %s, want %vs from %s", got.Execution.Interval, got.Origins[field], int(step.want), step.origin)
		}
		step.remove()
	}
}

func TestPriorityAndTies(t *testing.T) {
	source := func(name string, priority int32, r Rules) Source {
		return Source{Name: name, Scope: Global, Priority: priority, Defaults: r}
	}
	tests := map[string]struct {
		policies      []Source
		want          func(*Effective)
		wantConflicts []string
	}{
		"the higher priority wins, strict or not": {
			[]Source{source("s/a", 1, Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(10))}}), source("s/b", 2, Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(20))}})},
			func(e *Effective) { e.Changes.MaxFileSize = 20 }, nil,
		},
		"a policy that does not set the value does not count": {
			[]Source{source("s/a", 1, Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(10))}}), source("s/b", 2, Rules{})},
			func(e *Effective) { e.Changes.MaxFileSize = 10 }, nil,
		},
		"equal values are no tie": {
			[]Source{source("s/a", 1, Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(10))}}), source("s/b", 1, Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(10))}})},
			func(e *Effective) { e.Changes.MaxFileSize = 10 }, nil,
		},
		"of a tie the stricter is taken": {
			[]Source{
				source("s/a", 1, Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(10)), Symlinks: Allow, Secrets: Deny}, History: HistorySquash, Isolation: IsolationEnforce, PathSeverity: Warning, KeepCheckpoints: new(5)}),
				source("s/b", 1, Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(20)), Symlinks: Deny, Secrets: DenyCritical}, History: HistoryHold, Isolation: IsolationWarn, PathSeverity: Critical, KeepCheckpoints: new(6)}),
			},
			func(e *Effective) {
				e.Changes.Secrets = DenyCritical
				e.Changes.MaxFileSize, e.Changes.Symlinks, e.Paths.Severity, e.KeepCheckpoints, e.History = 10, Deny, Critical, 6, HistoryHold
			},
			[]string{
				"changes.maxFileSize: defaults of s/a and defaults of s/b disagree at priority 1; the stricter value is taken, give one of them a higher priority",
				"changes.secrets: defaults of s/a and defaults of s/b disagree at priority 1; the stricter value is taken, give one of them a higher priority",
				"changes.symlinks: defaults of s/a and defaults of s/b disagree at priority 1; the stricter value is taken, give one of them a higher priority",
				"delivery.history: defaults of s/a and defaults of s/b disagree at priority 1; the stricter value is taken, give one of them a higher priority",
				"isolation: defaults of s/a and defaults of s/b disagree at priority 1; the stricter value is taken, give one of them a higher priority",
				"paths.severity: defaults of s/a and defaults of s/b disagree at priority 1; the stricter value is taken, give one of them a higher priority",
				"retention.checkpoints: defaults of s/a and defaults of s/b disagree at priority 1; the stricter value is taken, give one of them a higher priority",
			},
		},
		"a tie below the highest priority is none": {
			[]Source{
				source("s/a", 1, Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(10))}}), source("s/b", 1, Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(20))}}),
				source("s/c", 2, Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(30))}}),
			},
			func(e *Effective) { e.Changes.MaxFileSize = 30 }, nil,
		},
		"a tie over hosts leaves what both have": {
			[]Source{
				source("s/a", 0, Rules{GitHosts: []Host{{Name: "both", AllowPrivate: true}, {Name: "one"}}}),
				source("s/b", 0, Rules{GitHosts: []Host{{Name: "both", Port: 443}, {Name: "one", Port: 8443}}}),
			},
			func(e *Effective) { e.GitHosts = []Host{{Name: "both", Port: 443}} },
			[]string{"egress.git: defaults of s/a and defaults of s/b disagree at priority 0; the stricter value is taken, give one of them a higher priority"},
		},
		"a tie over hosts may leave none, and not the repository's": {
			[]Source{source("s/a", 0, Rules{GitHosts: []Host{{Name: "a"}}}), source("s/b", 0, Rules{GitHosts: []Host{{Name: "b"}}})},
			func(e *Effective) { e.GitHosts = []Host{} },
			[]string{"egress.git: defaults of s/a and defaults of s/b disagree at priority 0; the stricter value is taken, give one of them a higher priority"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			repository := Host{Name: "git.example.com", Port: 443}
			want := Merge(Sources{RepositoryHost: repository})
			tt.want(&want)
			got := Merge(Sources{Policies: tt.policies, RepositoryHost: repository})
			if diff := cmp.Diff(tt.wantConflicts, got.Conflicts); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
			for _, e := range []*Effective{&want, &got} {
				e.Hash, e.Conflicts, e.Origins, e.Sources = "", nil, nil, nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOnePolicyIsEnoughToSuspend: whatever others say, and however high their priority is, and it does not change what work is judged by.
func TestOnePolicyIsEnoughToSuspend(t *testing.T) {
	project := Source{Name: "shop/all", Scope: Project, Priority: 100, Overrides: Rules{MaxRunning: new(9)}}
	before := Merge(Sources{Policies: []Source{project, {Name: "system/stop", Scope: Global}}})
	if before.SuspendedBy != nil {
		t.Errorf("suspended by %v", before.SuspendedBy)
	}
	after := Merge(Sources{Policies: []Source{project, {Name: "system/stop", Scope: Global, Suspend: true}, {Name: "shop/stop", Scope: Project, Suspend: true}}})
	if want := []string{"shop/stop", "system/stop"}; !slices.Equal(after.SuspendedBy, want) {
		t.Errorf("suspended by %v, want %v", after.SuspendedBy, want)
	}
	if after.Hash != before.Hash {
		t.Error("a stop changes what work is judged by")
	}
}

func TestEnforcement(t *testing.T) {
	tests := map[string]struct {
		policies []Enforcement
		want     Enforcement
	}{
		"no policy":             {nil, Enforce},
		"all audit":             {[]Enforcement{Audit, Audit}, Audit},
		"one enforces":          {[]Enforcement{Audit, Enforce}, Enforce},
		"one does not say":      {[]Enforcement{Audit, ""}, Enforce},
		"one says what is none": {[]Enforcement{Audit, "audit"}, Enforce},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var s Sources
			for i, e := range tt.policies {
				s.Policies = append(s.Policies, Source{Name: string(rune('a' + i)), Scope: Project, Enforcement: e})
			}
			if got := Merge(s).Enforcement; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestProtectedPathsAreUnited(t *testing.T) {
	got := Merge(Sources{Policies: []Source{
		{Name: "s/a", Scope: Global, Overrides: Rules{Protected: []string{"z", "CODEOWNERS"}}},
		{Name: "p/b", Scope: Project, Defaults: Rules{Protected: []string{"api/**"}}},
	}})
	want := append([]string{"api/**", "z"}, BuiltinProtected()...)
	slices.Sort(want)
	if diff := cmp.Diff(want, got.Paths.Protected); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "overrides of s/a, defaults of p/b, built-in"; got.Origins["paths.protected"] != want {
		t.Errorf("origin %q, want %q", got.Origins["paths.protected"], want)
	}
}

func TestSourcesMostSpecificFirst(t *testing.T) {
	got := Merge(Sources{Policies: []Source{
		{Name: "s/b", Scope: Global}, {Name: "s/a", Scope: Global}, {Name: "p/a", Scope: Project},
		{Name: "p/b", Scope: Project, Priority: 1}, {Name: "s/a", Scope: Global},
	}})
	if diff := cmp.Diff([]string{"p/b", "p/a", "s/a", "s/b"}, got.Sources); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGates: an override of the platform cannot be changed by a project, and two gates of one name that differ must both pass.
func TestGates(t *testing.T) {
	gate := func(name, program string) Gate {
		return Gate{Name: name, Command: []string{program}, Timeout: time.Minute}
	}
	got := Merge(Sources{Policies: []Source{
		{Name: "s/a", Scope: Global, Overrides: Rules{Gates: []Gate{gate("fixed", "audit")}}, Defaults: Rules{Gates: []Gate{gate("general", "lint")}}},
		{Name: "p/a", Scope: Project, Overrides: Rules{Gates: []Gate{gate("fixed", "true")}}, Defaults: Rules{Gates: []Gate{gate("both", "1"), gate("same", "3")}}},
		{Name: "p/b", Scope: Project, Defaults: Rules{Gates: []Gate{gate("both", "2"), gate("same", "3")}}},
	}})
	want := []Gate{gate("both", "1"), gate("both", "2"), gate("fixed", "audit"), gate("general", "lint"), gate("same", "3")}
	if diff := cmp.Diff(want, got.Gates); diff != "" || len(got.Conflicts) != 1 || got.Origins["gates.fixed"] != "overrides of s/a" {
		t.Errorf("conflicts %v, origins %v (-want +got):\n%s", got.Conflicts, got.Origins, diff)
	}
	if err := (&Rules{Gates: []Gate{{Name: "g", Command: []string{"x"}}}}).Validate("at"); err == nil || !strings.Contains(err.Error(), "gates.g.timeout") {
		t.Errorf("a gate without time: %v", err)
	}
}

// TestLists: guards of all sources are united, checks are decided by name.
func TestLists(t *testing.T) {
	check := func(name, cel string) Check { return Check{Name: name, CEL: cel, Message: "m", Severity: Warning} }
	got := Merge(Sources{Policies: []Source{
		{Name: "s/a", Scope: Global, Overrides: Rules{Checks: []Check{check("fixed", "1")}}, Defaults: Rules{
			PathRules: []PathRule{{Paths: []string{"b", "a", "a"}, Roles: []string{"dba"}, Access: Write}},
			Contracts: []Contract{{Name: "openapi", Paths: []string{"z", "api.yaml"}}},
			Checks:    []Check{check("both", "2"), check("general", "3"), {Name: "plain", CEL: "4", Message: "m"}},
		}},
		{Name: "shop/a", Scope: Project, Defaults: Rules{
			PathRules: []PathRule{{Paths: []string{"a", "b"}, Roles: []string{"dba"}, Access: Write}, {Paths: []string{"a"}, Access: ReadOnly}},
			Contracts: []Contract{{Name: "db", Paths: []string{"db/**"}}, {Name: "openapi", Paths: []string{"api.yaml", "a"}}},
			Checks:    []Check{check("fixed", "5"), check("both", "6"), check("general", "7")},
		}},
		{Name: "shop/b", Scope: Project, Defaults: Rules{Checks: []Check{check("both", "8")}}},
	}})
	want := Effective{
		Paths:     Paths{Rules: []PathRule{{Paths: []string{"a"}, Access: ReadOnly}, {Paths: []string{"a", "b"}, Roles: []string{"dba"}, Access: Write}}},
		Contracts: []Contract{{Name: "db", Paths: []string{"db/**"}}, {Name: "openapi", Paths: []string{"a", "api.yaml", "z"}}},
		Checks: []Check{
			check("both", "6"), check("both", "8"), check("fixed", "1"), check("general", "7"),
			{Name: "plain", CEL: "4", Message: "m", Severity: Error},
		},
		Conflicts: []string{"checks.both: defaults of shop/a and defaults of shop/b disagree at priority 0; the stricter value is taken, give one of them a higher priority"},
	}
	if diff := cmp.Diff(want, Effective{
		Paths: Paths{Rules: got.Paths.Rules}, Contracts: got.Contracts, Checks: got.Checks, Conflicts: got.Conflicts,
	}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, origin := range map[string]string{
		"paths.rules": "defaults of shop/a, defaults of s/a", "contracts.openapi": "defaults of shop/a, defaults of s/a",
		"contracts.db": "defaults of shop/a", "checks.fixed": "overrides of s/a", "checks.plain": "defaults of s/a",
	} {
		if got.Origins[name] != origin {
			t.Errorf("%s is from %q, want %q", name, got.Origins[name], origin)
		}
	}
}

// TestBoundsNameTheirPolicies: where one policy says all of it, it alone is named; where several do together, all are.
func TestBoundsNameTheirPolicies(t *testing.T) {
	policy := func(name string, scope Scope, defaults, overrides Rules) Source {
		return Source{Name: name, Scope: scope, Defaults: defaults, Overrides: overrides}
	}
	list := func(roles ...string) Rules { return Rules{AllowedRoles: roles} }
	for name, tc := range map[string]struct {
		policies []Source
		roles    []string
		by       string
	}{
		"none":     {},
		"one":      {[]Source{policy("s/a", Global, list("b", "a"), Rules{})}, []string{"a", "b"}, "defaults of s/a"},
		"narrower": {[]Source{policy("s/a", Global, Rules{}, list("a", "b")), policy("p/b", Project, list("b"), Rules{})}, []string{"b"}, "defaults of p/b"},
		"together": {[]Source{policy("s/a", Global, Rules{}, list("a", "b")), policy("p/b", Project, list("b", "c"), Rules{})}, []string{"b"}, "overrides of s/a, defaults of p/b"},
		"nothing":  {[]Source{policy("s/a", Global, Rules{}, list("a")), policy("p/b", Project, list("b"), Rules{})}, []string{}, "overrides of s/a, defaults of p/b"},
	} {
		e := Merge(Sources{Policies: tc.policies})
		if diff := cmp.Diff(tc.roles, e.AllowedRoles); diff != "" || e.Origins["agents.allowedRoles"] != tc.by {
			t.Errorf("%s: by %q, want %q (-want +got):\n%s", name, e.Origins["agents.allowedRoles"], tc.by, diff)
		}
	}
	e := Merge(Sources{Policies: []Source{policy("s/a", Global, Rules{Approval: ApprovalRequired}, Rules{}), policy("p/b", Project, Rules{}, Rules{Approval: ApprovalNone})}})
	if e.Approval != ApprovalRequired || e.Origins["delivery.approval"] != "defaults of s/a" || len(e.Conflicts) > 0 {
		t.Errorf("approval %s by %q, conflicts %v", e.Approval, e.Origins["delivery.approval"], e.Conflicts)
	}
}

// TestBoundsOfUseKeepEveryList: no list is lost or widened, and each has its sources.
func TestBoundsOfUseKeepEveryList(t *testing.T) {
	policy := func(name string, scope Scope, defaults, overrides []string) Source {
		return Source{Name: name, Scope: scope, Defaults: Rules{Repositories: []Bound{{Globs: defaults}}}, Overrides: Rules{Repositories: []Bound{{Globs: overrides}}}}
	}
	e := Merge(Sources{Policies: []Source{
		policy("s/a", Global, []string{"b/*", "a/*", "a/*"}, nil), policy("p/b", Project, []string{"c/**"}, []string{"a/*", "b/*"}), policy("p/c", Project, []string{}, nil),
	}})
	want := []Bound{{Globs: []string{"a/*", "b/*"}, From: "overrides of p/b, defaults of s/a"}, {Globs: []string{"c/**"}, From: "defaults of p/b"}}
	if diff := cmp.Diff(want, e.Repositories); diff != "" || e.Origins["git.repositories"] != "overrides of p/b, defaults of p/b, defaults of s/a" || len(e.Conflicts) > 0 {
		t.Errorf("by %q, conflicts %v (-want +got):\n%s", e.Origins["git.repositories"], e.Conflicts, diff)
	}
	other := Merge(Sources{Policies: []Source{policy("s/x", Global, []string{"c/**"}, []string{"b/*", "a/*"})}})
	if plain := Merge(Sources{}); e.Hash != other.Hash || e.Hash == plain.Hash {
		t.Errorf("hashes %s, %s and without lists %s", e.Hash, other.Hash, plain.Hash)
	}
}

// TestModels: each role is decided by itself, by the first source that has it.
func TestModels(t *testing.T) {
	ref := func(role, backend string) ModelRef { return ModelRef{Role: role, Backend: backend, Model: "m"} }
	rules := func(refs ...ModelRef) Rules { return Rules{Models: refs} }
	e := Merge(Sources{Policies: []Source{
		{Name: "s/a", Scope: Global, Defaults: rules(ref("primary", "global"), ref("summarizer", "small")), Overrides: Rules{}},
		{Name: "p/b", Scope: Project, Defaults: rules(ref("primary", "theirs")), Overrides: Rules{}},
		{Name: "s/c", Scope: Global, Defaults: Rules{}, Overrides: rules(ref("supervisor", "y"))},
		{Name: "s/d", Scope: Global, Defaults: Rules{}, Overrides: rules(ref("supervisor", "x"))},
	}})
	if diff := cmp.Diff([]ModelRef{ref("primary", "theirs"), ref("summarizer", "small"), ref("supervisor", "x")}, e.Models); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e.Origins["models.primary"] != "defaults of p/b" || len(e.Conflicts) != 1 {
		t.Errorf("origins %v, conflicts %v", e.Origins, e.Conflicts)
	}
}

// TestRoles: each role is decided by its name; of two at one priority the stricter doctrine counts.
func TestRoles(t *testing.T) {
	rules := func(roles ...Role) Rules { return Rules{Roles: roles} }
	e := Merge(Sources{Policies: []Source{
		{Name: "p/a", Scope: Project, Defaults: rules(Role{Name: "implementor", Stall: 20, Alternate: "ask"}, Role{Name: "tester", Emergency: "stop"})},
		{Name: "p/b", Scope: Project, Defaults: rules(Role{Name: "implementor", Alternate: "write it down"})},
		{Name: "s/c", Scope: Global, Defaults: rules(Role{Name: "tester", Stall: 1})},
		{Name: "s/d", Scope: Global, Overrides: rules(Role{Name: "writer", SaluteEveryTurns: 2})},
	}})
	want := []Role{{Name: "implementor", Alternate: "write it down"}, {Name: "tester", Emergency: "stop"}, {Name: "writer", SaluteEveryTurns: 2}}
	if diff := cmp.Diff(want, e.Roles); diff != "" || len(e.Conflicts) != 1 || e.Origins["roles.implementor"] != "defaults of p/a, defaults of p/b" {
		t.Errorf("origins %v, conflicts %v (-want +got):\n%s", e.Origins, e.Conflicts, diff)
	}
	writer, named := e.Role("writer")
	if _, stranger := e.Role("nobody"); writer.SaluteEveryTurns != 2 || !named || stranger {
		t.Errorf("%+v: named %t; another one: named %t", writer, named, stranger)
	}
	if err := (&Rules{Roles: []Role{{Name: "r", Stall: -1}}}).Validate("at"); err == nil || !strings.Contains(err.Error(), "roles[r].doctrine") {
		t.Errorf("%v", err)
	}
}

// TestEveryValueHasAnOrigin keeps `kubectl tw explain` complete: a value that is decided is explained. Lists and
// texts that are not set have none.
func TestEveryValueHasAnOrigin(t *testing.T) {
	got := Merge(Sources{RepositoryHost: Host{Name: "h"}}).Origins
	want := map[string]string{}
	for _, row := range Rows() {
		want[row.Path] = "built-in"
	}
	want["egress.git"] = "the repository's host"
	for _, list := range []string{"paths.rules", "contracts", "checks", "gates", "models", "roles", "reviewers.custom", "egress.agent", "egress.providerTools", "agents.allowedRoles", "git.repositories", "delivery.branches",
		"agents.scheduling.nodeSelector", "agents.scheduling.tolerations", "agents.scheduling.priorityClassName", "agents.scheduling.topologySpreadConstraints",
		"agents.imagePullSecrets", "agents.resources.limits", "agents.resources.requests",
		"reviewers.codeStyle.enabled", "reviewers.codeStyle.instructions", "reviewers.design.enabled", "reviewers.design.instructions", "reviewers.knowledge.enabled", "reviewers.knowledge.instructions", "reviewers.assessor.enabled", "reviewers.assessor.instructions"} {
		if want[list] == "" {
			t.Errorf("%s has no row", list)
		}
		delete(want, list)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHash: the hash of the built-in policy is written down, since Checkpoints and a watchdog's journal outlive the
// manager that made them; it may change only together with the policy's values or fields.
func TestHash(t *testing.T) {
	plain := Merge(Sources{})
	const want = "35c1591823fd5aada4c5839a34c78903e72adcfb14405527f8349dc135bd0776"
	if plain.Hash != want {
		t.Errorf("hash of the built-in policy is %s, want %s", plain.Hash, want)
	}
	same := Merge(Sources{Policies: []Source{{Name: "s/a", Scope: Global, Defaults: Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(50 << 20))}}}}})
	if same.Hash != plain.Hash {
		t.Error("the same values from another source have another hash")
	}
	other := Merge(Sources{Policies: []Source{{Name: "s/a", Scope: Global, Defaults: Rules{ChangeRules: ChangeRules{MaxFileSize: new(int64(50<<20 + 1))}}}}})
	if other.Hash == plain.Hash {
		t.Error("other values have the same hash")
	}
	text, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	var read Effective
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if got := read.hash(); got != plain.Hash {
		t.Errorf("after a trip through JSON the hash is %s, want %s", got, plain.Hash)
	}
}

func TestValidate(t *testing.T) {
	good := builtin()
	for _, row := range Rows() {
		if row.Builtin == "no limit" || row.Path == "anomalies.contextPercent" { // 0 stands for it, which a policy says by leaving the value out
			reflect.ValueOf(row.rules(&good)).Elem().SetZero()
		}
	}
	good.GitHosts = []Host{{Name: "git.example.com"}}
	if err := good.Validate("spec.defaults"); err != nil {
		t.Errorf("the built-in rules: %v", err)
	}
	if err := (&Rules{}).Validate("spec.defaults"); err != nil {
		t.Errorf("no rules: %v", err)
	}
	bad := Rules{
		Execution:   ExecutionRules{Mode: "Fast", Interval: new(time.Duration(0)), MinInterval: new(-time.Second)},
		ChangeRules: ChangeRules{Symlinks: "Perhaps", MaxFileSize: new(int64(-1))},
		GitHosts:    []Host{{Name: "h", Port: 70000}},
		PathRules:   []PathRule{{Paths: []string{"a"}, Access: ReadOnly}, {Access: "Own"}},
		Checks:      []Check{{Name: "c", Severity: "Grave"}},
	}
	want := `spec.overrides.execution.mode: "Fast" is not one of [Interactive Deterministic]
spec.overrides.execution.checkpoint.interval: 0s must be 1s or more
spec.overrides.execution.checkpoint.minInterval: -1s must be 0s or more
spec.overrides.paths.rules[1].access: "Own" is not one of [Write ReadOnly]
spec.overrides.paths.rules[1].paths: at least one is needed
spec.overrides.checks.c.severity: "Grave" is not one of [Info Warning Error Critical]
spec.overrides.changes.maxFileSize: -1 must be from 1 to 1Pi
spec.overrides.changes.symlinks: "Perhaps" is not one of [Allow Warn Deny Critical]
spec.overrides.egress.git: host "h" with port 70000: a name and a port from 1 to 65535 are needed`
	if err := bad.Validate("spec.overrides"); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestSeverities(t *testing.T) {
	order := []Severity{Info, Warning, Error, Critical}
	for i, a := range order {
		for j, b := range order {
			if got := a.Compare(b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s.Compare(%s) = %d", a, b, got)
			}
		}
		if got, want := a.Blocks(), i >= 2; got != want {
			t.Errorf("%s.Blocks() = %t, want %t", a, got, want)
		}
	}
	if unknown := Severity("?"); !unknown.Blocks() || unknown.OrError() != Error || unknown.Compare(Error) != 0 {
		t.Error("a severity that is not known must weigh as Error")
	}
}
