// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const team = "https://git.example.com/team/shop.git"

// source is a policy that bounds what Features use.
func source(name string, scope policy.Scope, repositories, branches []string) policy.Source {
	var r policy.Rules
	if repositories != nil {
		r.Repositories = []policy.Bound{{Globs: repositories}}
	}
	if branches != nil {
		r.Branches = []policy.Bound{{Globs: branches}}
	}
	return policy.Source{Name: name, Scope: scope, Defaults: r}
}

// TestCheck: a match is needed in the list of every policy, and the refusal names the one that has none.
func TestCheck(t *testing.T) {
	all := func(globs ...string) []string { return globs }
	for name, tc := range map[string]struct {
		policies []policy.Source
		use      Use
		reason   string
		message  string // how it begins
	}{
		"no policy":       {nil, Use{"ftp://who@cares", "main"}, "", ""},
		"empty lists":     {[]policy.Source{source("s/a", policy.Global, all(), all())}, Use{team, "main"}, "", ""},
		"allowed":         {[]policy.Source{source("s/a", policy.Global, all("git.example.com/other", "git.example.com/team/*"), all("main", "tidewaiter/**"))}, Use{team, "tidewaiter/login"}, "", ""},
		"another team":    {[]policy.Source{source("s/a", policy.Global, all("git.example.com/team/*", "git.example.com/docs"), nil)}, Use{"https://git.example.com/other/shop", "main"}, protocol.ReasonRepositoryNotAllowed, "spec.repository.url is https://git.example.com/other/shop, and the policy (git.repositories in defaults of s/a) allows git.example.com/docs, git.example.com/team/*. Create the Feature again"},
		"a URL to guess":  {[]policy.Source{source("s/a", policy.Global, all("git.example.com/team/**"), nil)}, Use{"https://git.example.com/team/../other/shop", "main"}, protocol.ReasonRepositoryNotAllowed, `spec.repository.url is https://git.example.com/team/../other/shop, and the policy (git.repositories in defaults of s/a) allows a URL that has only one reading: its path has the name ".."`},
		"another branch":  {[]policy.Source{source("s/a", policy.Global, nil, all("tidewaiter/**"))}, Use{team, "main"}, protocol.ReasonBranchNotAllowed, "The branch to deliver (spec.delivery.branch) is main, and the policy (delivery.branches in defaults of s/a) allows tidewaiter/**. Create the Feature again"},
		"nothing pushed":  {[]policy.Source{source("s/a", policy.Global, nil, all("tidewaiter/**"))}, Use{team, ""}, "", ""},
		"a project wider": {[]policy.Source{source("s/a", policy.Global, all("git.example.com/team/*"), nil), source("p/b", policy.Project, all("**.example.com/x", "*/**"), nil)}, Use{"https://git.example.com/other/shop", "main"}, protocol.ReasonRepositoryNotAllowed, "spec.repository.url is https://git.example.com/other/shop, and the policy (git.repositories in defaults of s/a) allows git.example.com/team/*."},
		"a project narrower": {[]policy.Source{source("s/a", policy.Global, all("git.example.com/team/*"), nil), source("p/b", policy.Project, all("*/team/web"), nil)}, Use{team, "main"}, protocol.ReasonRepositoryNotAllowed,
			"spec.repository.url is https://git.example.com/team/shop.git, and the policy (git.repositories in defaults of p/b) allows */team/web."},
		"two that say the same": {[]policy.Source{source("s/a", policy.Global, nil, all("main")), source("p/b", policy.Project, nil, all("main"))}, Use{team, "dev"}, protocol.ReasonBranchNotAllowed, "The branch to deliver (spec.delivery.branch) is dev, and the policy (delivery.branches in defaults of p/b, defaults of s/a) allows main."},
		"a glob that is none":   {[]policy.Source{source("s/a", policy.Global, nil, all("{main"))}, Use{team, "{main"}, protocol.ReasonBranchNotAllowed, ""},
	} {
		fault := Check(tc.use, policy.Merge(policy.Sources{Policies: tc.policies}))
		switch {
		case tc.reason == "" && fault != nil:
			t.Errorf("%s: %+v", name, *fault)
		case tc.reason != "" && (fault == nil || fault.Reason != tc.reason || !strings.HasPrefix(fault.Message, tc.message)):
			t.Errorf("%s: %+v, want %s %s", name, fault, tc.reason, tc.message)
		}
	}
}

// TestMessagesAreShort: however much a policy and a Feature have to say.
func TestMessagesAreShort(t *testing.T) {
	globs := make([]string, 64)
	for i := range globs {
		globs[i] = "git.example.com/" + strings.Repeat("a", 400+i)
	}
	for _, u := range []Use{{"https://git.example.com/" + strings.Repeat("b", 2000), "b"}, {team, strings.Repeat("c", 200)}} {
		if f := Check(u, policy.Merge(policy.Sources{Policies: []policy.Source{source("s/a", policy.Global, globs, globs)}})); f == nil || len(f.Message) > 1024 {
			t.Errorf("%+v", f)
		}
	}
}
