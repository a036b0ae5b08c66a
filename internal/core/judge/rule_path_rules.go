// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// pathRules lets a policy say who works where: an agent that implements has no business in the migrations, one that
// writes documentation none in the code. The rules have no order, and each only closes: the more there are, from
// however many policies, the less may be written.
func pathRules() Rule {
	write := func(path string, roles ...string) policy.PathRule {
		return policy.PathRule{Paths: []string{path}, Roles: roles, Access: policy.Write}
	}
	readOnly := func(path string, roles ...string) policy.PathRule {
		return policy.PathRule{Paths: []string{path}, Roles: roles, Access: policy.ReadOnly}
	}
	held := func(rules ...policy.PathRule) policy.Effective {
		return policy.Effective{Paths: policy.Paths{Rules: rules}}
	}
	return Rule{
		ID:     "path-rules",
		Reason: "RoleMayNotWrite",
		Doc: "The rule applies if paths.rules of the policy give access to roles. A path that a ReadOnly rule for the agent's role (or for every role) names must not change. If Write rules name a path, only the roles of these rules may change it. " +
			"ReadOnly wins over Write; the order of rules does not matter. Closed paths match as in forbidden-areas, opened paths match exactly.",
		Severity:   "paths.severity of the policy, by default Error",
		Suggestion: "undo the change; it is for an agent with another spec.agent.role, or for a user",
		placement: &placement{
			prepare: func(v *view) closes { return closesBy(v.access().deny) },
			message: func(v *view, c Change, pattern string) string {
				return fmt.Sprintf("it was %s although %s is read-only for %s", c.done(), quoteName(pattern), roleOf(v.Role))
			},
		},
		Reject: []Sample{
			{"what is read-only for the role", Input{Role: "writer", Policy: held(readOnly("src/**", "writer")), Changes: []Change{modifyFile("src/a.go")}}},
			{"what is read-only for every role", Input{Policy: held(readOnly("src/**")), Changes: []Change{deleteFile("src/a.go")}}},
			{"what another role may write", Input{Role: "writer", Policy: held(write("db/**", "dba")), Changes: []Change{addFile("db/1.sql")}}},
			{"without a role", Input{Policy: held(write("db/**", "dba")), Changes: []Change{addFile("db/1.sql")}}},
			{"read-only and to be written", Input{Role: "dba", Policy: held(write("db/**", "dba"), readOnly("db/old/**", "dba")), Changes: []Change{modifyFile("db/old/1.sql")}}},
			{"in another case", Input{Role: "dba", Policy: held(write("db/**", "dba")), Changes: []Change{addFile("DB/1.sql")}}},
			{"a link instead of its directory", Input{Role: "dba", Policy: held(write("db/live/**", "dba")), Changes: []Change{addLink("db", "other")}}},
			{"an access that is not known", Input{Policy: held(policy.PathRule{Paths: []string{"a"}, Access: "Own"}), Changes: []Change{addFile("a")}}},
		},
		Accept: []Sample{
			{"what the role may write", Input{Role: "dba", Policy: held(write("db/**", "dba"), readOnly("src/**", "dba")), Changes: []Change{addFile("db/1.sql")}}},
			{"what one of several rules lets the role write", Input{Role: "writer", Policy: held(write("db/**", "dba"), write("db/README.md", "writer")), Changes: []Change{modifyFile("db/README.md")}}},
			{"what every role may write", Input{Policy: held(write("db/**", "dba"), write("db/**")), Changes: []Change{addFile("db/1.sql")}}},
			{"what is read-only for another role", Input{Role: "dba", Policy: held(readOnly("src/**", "writer")), Changes: []Change{addFile("src/a.go")}}},
			{"what no rule names", Input{Role: "writer", Policy: held(write("db/**", "dba")), Changes: []Change{addFile("docs/a.md")}}},
		},
	}
}

// access is what path rules say to one role.
type access struct {
	// closed for the role, opened for some role, opened for this one.
	closed, some, mine *matcher
}

// access compiles the path rules for the agent's role.
func (v *view) access() access {
	var closed, some, mine []string
	for _, rule := range v.Policy.Paths.Rules {
		about := len(rule.Roles) == 0 || slices.Contains(rule.Roles, v.Role)
		switch {
		case rule.Access != policy.Write && about:
			closed = append(closed, rule.Paths...)
		case rule.Access != policy.Write:
		case about:
			mine = append(mine, rule.Paths...)
			fallthrough
		default:
			some = append(some, rule.Paths...)
		}
	}
	return access{closed: v.compile(closed, true), some: v.compile(some, true), mine: v.compile(mine, false)}
}

// deny returns the pattern that keeps the role from writing a path, or "".
func (a access) deny(path string) string {
	if by := a.closed.match(path); by != "" {
		return by
	}
	if by := a.some.match(path); by != "" && a.mine.match(path) == "" {
		return by
	}
	return ""
}

// roleOf names the agent's role in messages.
func roleOf(role string) string {
	if role == "" {
		return "an agent without a role"
	}
	return "the role " + quoteName(role)
}
