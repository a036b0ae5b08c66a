// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestTokensAreNotUndercounted: the numbers are the largest of what the tokenizers cl100k_base, o200k_base (gpt-tokenizer 4.0.0) and that of Claude 2
// (@anthropic-ai/tokenizer 0.0.4) count, taken on 2026-11-27.
func TestTokensAreNotUndercounted(t *testing.T) {
	t.Parallel()
	for text, counted := range map[string]int{
		"": 0,
		"- For other roles to change, where the policy does not name yours as well: db/**.":                                                                       20,
		"Planned to be changed: docs/a.md, \"docs/\\nb.md\".":                                                                                                     19,
		"the README, the CHANGELOG and NOTICE":                                                                                                                    8,
		"a/b/c/0/**, a/b/c/1/**, a/b/c/2/**, a/b/c/3/**, a/b/c/4/**":                                                                                              44,
		"web/directory-000/**, web/directory-001/**, web/directory-002/**, web/directory-003/**, web/directory-004/**":                                            34,
		"src/main/java/com/example/shop/CustomerAccountController0.java, src/main/java/com/example/shop/CustomerAccountController1.java, and 198 more.":           42,
		"xvlbzgbaicmrajwwhthc/**, tcuaxhxkqfdafplsjfbc/**, xoeffrswxpldnjobcsnv/**, lgtemapezqleqyhyzryw/**, jjpjzpfrfegmotafeths/**":                             65,
		"hdwkrfxzztsnsqvtmlvj/**, rfpcqsmpkknrbxzhksrz/**, pgwdfwbktwbzhfgsgwnx/**, pnfnhdddjtbksbckwqdh/**, bhphgxpxfhfqxskphpwf/**":                             65,
		"gwPKlwELHlxvTQhjhCtr/**, plBvuqQXwEILvTeBHuvg/**, CadkyCSbywbsQPjcfedd/**, KpYyJMvjtLHAOYlAsBLu/**, CRVzHrmUfNXpQJHkRBZW/**":                             75,
		"GHVJRUFKOEENUWMWNSYE/**, ABPGKCSLYFFHZOZCKSOU/**, VESXIXCJEXHBEBFLGSZE/**, ZQBKSXTZXNVGVFGXJLGQ/**, LFJHMDHDWZKYVEWJNXVI/**":                             70,
		"43744042a07562a6876ab9bbfd3586dee6bed188, f3136838d35eb1eaac4cf66859c5f9ccc58490cf, 2ab57efa92c32579a9d873bb3ff2c01795ee4555":                            67,
		"4591502748427485002326027380673460675481, 7661277331404377553466400295837309152789, 9658353875497782334110781584267010964163, 5826121123247085163631210": 65,
		"документы/раздел-0/**, документы/раздел-1/**, and 198 more.":                                                                                             30,
		"文档/部分0/**, 文档/部分1/**, 文档/部分2/**, 文档/部分3/**, 文档/部分4/**":                                                                                                   44,
		`"/[,./ [!{}!{-/},!/ ][]*_ ]./ . *_,,[/{,_", "}}/_/,/ ]-[{**_{*] *-_![],,] ,-. _]!-_ /", and 198 more.`:                                                   54,
		"]oZxIU{ReG}A}P0dyYWnRuYW{21Wpr, yYgwJW{OSHGddPs[F/RzjMwT{/YU}Q, rHZxfVFKM3psI_sjXROqW]_FCAVJay, u_D57-wjfb7JT7xlA{3RwlA442xPhs, and 196 more.":           96,
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa":                                                                                                                5,
		"0000000000000000000000000000": 10,
		"\u202e\u202e\u202e\u202e":     8,
		"🦀🦀🦀/**":                       10,
	} {
		if got := tokens(text); got < counted {
			t.Errorf("%d tokens, and a model counts %d: %s", got, counted, text)
		}
	}
}

// TestOrdinaryWords: a count that is far too high would leave no room.
func TestOrdinaryWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"a": 1, "web/**": 4, "docs and web": 4, "README": 3, "cmd.go": 4, "2026": 2, "ä": 2, "…": 3} {
		if got := tokens(text); got != want {
			t.Errorf("%q has %d tokens, want %d", text, got, want)
		}
	}
}

// names of all kinds, of a path's letters and of others.
func names(least int) *rapid.Generator[[]string] {
	letters := []*rapid.Generator[string]{
		rapid.StringMatching(`[a-d0-9](/[a-d0-9]){0,20}(/\*\*)?`), rapid.StringMatching(`[a-z]{1,12}(/[a-z]{1,12}){0,5}`), rapid.StringMatching(`[A-Z0-9_]{1,60}`),
		rapid.StringMatching(`[-_./*{}, ]{1,60}`), rapid.StringMatching(`[а-я文档🦀]{1,30}`), rapid.String(),
	}
	return rapid.Custom(func(t *rapid.T) []string {
		return rapid.SliceOfN(rapid.SampledFrom(letters).Draw(t, "letters"), least, 60).Draw(t, "names")
	})
}

// TestBoundsHaveFewTokens: of whatever names, an agent is told no more than 600 tokens, in whole characters, and each time the same.
func TestBoundsHaveFewTokens(t *testing.T) {
	t.Parallel()
	many := func(pattern string) (list []string) {
		for i := range 200 {
			list = append(list, fmt.Sprintf(pattern, i))
		}
		return list
	}
	if text := Bounds(protocol.Plan{Allowed: many("a/b/c/%d/**"), Forbidden: many("d/e/f/%d/**"), Files: &protocol.FilePlan{Create: many("g/h/%d"), Modify: many("i/j/%d")}}, policy.Effective{}, "", nil); tokens(text) > 600 || tokens(text) < 500 {
		t.Errorf("of directories of one letter: %d tokens", tokens(text))
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) []string { return names(0).Draw(t, what) }
		plan := protocol.Plan{Allowed: draw("allowed"), Forbidden: draw("forbidden")}
		if rapid.Bool().Draw(t, "planned") {
			plan.Files = &protocol.FilePlan{Create: draw("create"), Modify: draw("modify"), Delete: draw("delete")}
		}
		p := policy.Effective{Paths: policy.Paths{Protected: draw("protected"), Rules: []policy.PathRule{{Paths: draw("closed")}, {Paths: draw("others"), Access: policy.Write, Roles: []string{"other"}}}}, Changes: policy.Changes{MaxFiles: 20}}
		for _, name := range draw("contracts") {
			p.Contracts = append(p.Contracts, policy.Contract{Name: name, Paths: []string{name}})
		}
		text := Bounds(plan, p, "writer", nil)
		if n := tokens(text); n > 600 || !utf8.ValidString(text) {
			t.Fatalf("%d tokens: %q", n, text)
		}
		if again := Bounds(plan, p, "writer", nil); again != text {
			t.Fatalf("another time: %q", again)
		}
	})
}

// TestWithin: what fits stays, and of the rest the longest beginning that does, in whole characters.
func TestWithin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, limit := strings.Join(names(1).Draw(t, "names"), ", "), rapid.IntRange(3, 60).Draw(t, "limit")
		got := within(text, limit)
		if tokens(text) <= limit {
			if got != text {
				t.Fatalf("%q is cut: %q", text, got)
			}
			return
		}
		begins, cut := strings.CutSuffix(got, plain.CutMark)
		if !cut || !strings.HasPrefix(text, begins) || tokens(got) > limit || !utf8.ValidString(got) {
			t.Fatalf("%d tokens of %d: %q", tokens(got), limit, got)
		}
		_, size := utf8.DecodeRuneInString(text[len(begins):])
		if more := text[:len(begins)+size]; tokens(more)+len(plain.CutMark) <= limit {
			t.Fatalf("there is room for %q", more)
		}
	})
}
