// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestBounds: an agent is told where it may write, in words, and of nothing that there is no rule about.
func TestBounds(t *testing.T) {
	t.Parallel()
	if got, want := notice.Bounds(protocol.Plan{}, policy.Effective{Knowledge: policy.Knowledge{Inject: true}}, "", nil), "Only for users to change, because agents read it as the knowledge of their team: docs/knowledge/**."; !strings.HasSuffix(got, want) {
		t.Errorf("with knowledge: %q", got)
	}
	if got := notice.Bounds(protocol.Plan{}, policy.Effective{}, "", nil); got != "" {
		t.Errorf("of no rules: %q", got)
	}
	plan := protocol.Plan{Allowed: []string{"web/**", "docs"}, Forbidden: []string{"web/legacy"}, Files: &protocol.FilePlan{Create: []string{"web/login.html"}, Modify: []string{"docs/a.md", "docs/\nb.md"}}}
	p := policy.Effective{
		Paths: policy.Paths{Protected: []string{".github/**"}, Rules: []policy.PathRule{
			{Paths: []string{"src/**"}, Roles: []string{"writer"}, Access: policy.ReadOnly}, {Paths: []string{"db/**"}, Roles: []string{"dba"}, Access: policy.Write},
			{Paths: []string{"docs/**"}, Roles: []string{"writer"}, Access: policy.Write}, {Paths: []string{"lib/**"}, Roles: []string{"dba"}, Access: policy.ReadOnly},
		}},
		Contracts: []policy.Contract{{Name: "openapi", Paths: []string{"api/openapi.yaml"}}, {Name: "db", Paths: []string{"db/schema/**"}}},
		Changes:   policy.Changes{MaxFiles: 20, MaxFileSize: 1 << 20},
	}
	want := `You may write within these bounds. The supervisor does not deliver what breaks them, and may put it back:
- Write only to these areas: web/**, docs.
- Leave these areas as they are: web/legacy.
- Only the planned files may change.
- Planned to be made: web/login.html.
- Planned to be changed: docs/a.md, "docs/\nb.md".
- Protected, for nobody to change: .github/**.
- Read-only for your role: src/**.
- For other roles to change, where the policy does not name yours as well: db/**.
- Contract db, which another work may change, and yours not: db/schema/**.
- Contract openapi, which is locked for your work: api/openapi.yaml.
- Limits: at most 20 files may change; a changed file has at most 1048576 bytes.`
	if diff := cmp.Diff(want, notice.Bounds(plan, p, "writer", []string{"openapi"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBoundsAreBounded: long lists are cut, each to the same number of names, and always the same.
func TestBoundsAreBounded(t *testing.T) {
	t.Parallel()
	many := func(what string) (list []string) {
		for i := range 200 {
			list = append(list, fmt.Sprintf("%s/directory-%03d/**", what, i))
		}
		return list
	}
	plan := protocol.Plan{Allowed: many("web"), Forbidden: many("legacy"), Files: &protocol.FilePlan{Create: many("new")}}
	p := policy.Effective{Paths: policy.Paths{Protected: many(strings.Repeat("\u202e", 300))}, Changes: policy.Changes{MaxFiles: 20}}
	for i := range 100 {
		p.Contracts = append(p.Contracts, policy.Contract{Name: fmt.Sprint("contract-", i), Paths: many("api")})
	}
	first := notice.Bounds(plan, p, "", nil)
	if len(first) > 1800 || !strings.Contains(first, "web/directory-000/**, ") || !strings.Contains(first, " more contracts.") || !strings.HasSuffix(first, "Limits: at most 20 files may change.") {
		t.Errorf("%d bytes: %s", len(first), first)
	}
	if again := notice.Bounds(plan, p, "", nil); again != first {
		t.Errorf("another time: %s", again)
	}
	p.Contracts = nil
	if rest := notice.Bounds(plan, p, "", nil); strings.Count(rest, "web/directory-") <= strings.Count(first, "web/directory-") {
		t.Errorf("less to say makes no room: %s", rest)
	}
}

// TestRemains names what went back, and how much more did.
func TestRemains(t *testing.T) {
	t.Parallel()
	_, changes := many(20)
	got := notice.Remains("login-3", changes)
	if !strings.Contains(got, `: "web/000.html", "web/001.html", `) || !strings.Contains(got, `"web/011.html", and 8 more. Checkpoint login-3 keeps them`) {
		t.Error(got)
	}
	if got := notice.Remains("login-3", nil); got != "" {
		t.Error(got)
	}
}
