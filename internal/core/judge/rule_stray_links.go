// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"path"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// strayLinks exists because a link in an allowed area that leads out of it makes what is outside look like a part of it, to
// people and to builds.
func strayLinks() Rule {
	in := func(p policy.Permission, c Change) Input {
		return Input{
			Plan: protocol.Plan{Allowed: []string{"web/**", "/docs/"}}, Changes: []Change{c},
			Policy: policy.Effective{Changes: policy.Changes{StrayLinks: p, Symlinks: policy.Allow}},
		}
	}
	return Rule{
		ID:         "stray-links",
		Reason:     "StrayLink",
		Doc:        "No new or changed symbolic link should lead to a place outside of the areas that the plan allows, if it names any. For links out of the repository, see symlinks.",
		Severity:   "changes.strayLinks of the policy, by default Warn",
		Suggestion: "let the link lead to a path in an allowed area, or remove it",
		check:      straying,
		Reject: []Sample{
			{"a link to a file elsewhere", in("", addLink("web/a", "../main.go"))},
			{"a link to a directory elsewhere", in("", addLink("web/a/b", "../../cmd"))},
			{"a link to everything", in("", addLink("web/a", ".."))},
		},
		Accept: []Sample{
			{"a link to a neighbour", in("", addLink("web/a", "b"))},
			{"a link to another area", in("", addLink("web/a", "../docs/b.md"))},
			{"a link to an area itself", in("", addLink("docs/a", "../web"))},
			{"no areas", Input{Changes: []Change{addLink("web/a", "../main.go")}}},
			{"if allowed", in(policy.Allow, addLink("web/a", "../main.go"))},
		},
	}
}

// straying finds links whose target, read as text, is in no allowed area.
func straying(v *view) []breach {
	severity, broken := v.Policy.Changes.StrayLinks.Severity()
	if !broken {
		return nil
	}
	var lists []*matcher
	for _, areas := range v.Plan.Areas() {
		allow, _ := newMatcher(areas, false) // what cannot be used is a violation already
		lists = append(lists, allow)
	}
	var found []breach
	for _, c := range v.changes {
		if c.New.Mode != ModeSymlink || targetFault(c.New) != "" || linkFault(c.Path, c.New.Target, "it") != "" {
			continue
		}
		to := path.Join(path.Dir(c.Path), c.New.Target)
		// A directory is inside where what it holds is.
		outside := func(allow *matcher) bool { return allow.match(to) == "" && (to == "." || allow.match(to+"/x") == "") }
		if !slices.ContainsFunc(lists, outside) {
			continue
		}
		found = append(found, breach{
			path: c.Path, severity: severity, message: "it is a symbolic link to " + v.shownTarget(c.New.Target) + ", which is in no allowed area",
		})
	}
	return found
}
