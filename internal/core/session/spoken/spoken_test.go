// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package spoken_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/session/spoken"
)

func subjects(text string, own bool) (list []string) {
	found := spoken.Sentences(text, "SAY ")
	if own {
		found = spoken.Own(text, "SAY ")
	}
	for s := range found {
		list = append(list, s.Subject)
	}
	return list
}

// TestOwn: what stands in a block of code or in a quotation is not the agent's own word. Blocks end with the mark that they begin with.
func TestOwn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text     string
		all, own string
	}{
		"plain":                  {"SAY a: x\r\nSAY b: x", "a b", "a b"},
		"a list":                 {"1. SAY a: x\n- **SAY b:** x\n  * `SAY c`: x", "a b c", "a b c"},
		"in a sentence":          {"I SAY a: x", "", ""},
		"no colon":               {"SAY a", "", ""},
		"two words":              {"SAY a b: x", "", ""},
		"no subject":             {"SAY : x", "", ""},
		"a long subject":         {"SAY " + strings.Repeat("a", 129) + ": x", "", ""},
		"code":                   {"```go\nSAY a: x\n```\nSAY b: x", "a b", "b"},
		"code that never ends":   {"SAY a: x\n~~~\nSAY b: x", "a b", "a"},
		"another mark in a code": {"```\n~~~\nSAY a: x\n```\nSAY b: x", "a b", "b"},
		"a longer mark":          {"````\n```\nSAY a: x\n````\nSAY b: x", "a b", "b"},
		"a language ends none":   {"```md\n```go\nSAY a: x\n```\nSAY b: x", "a b", "b"},
		"two marks":              {"``\nSAY a: x", "a", "a"},
		"a quotation":            {" > SAY a: x\nSAY b: x", "a b", "b"},
	} {
		if all, own := strings.Join(subjects(tc.text, false), " "), strings.Join(subjects(tc.text, true), " "); all != tc.all || own != tc.own {
			t.Errorf("%s: all %q, want %q; own %q, want %q", name, all, tc.all, own, tc.own)
		}
	}
}

// TestSays: a word is a whole one, and the reason behind it is one line.
func TestSays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"SAY a: DONE":                     "is ",
		"SAY a: **DONE** — by\tweb/a.ts ": "is by web/a.ts",
		"SAY a: DONE.":                    "is ",
		"SAY a: DONELY":                   "is not",
		"SAY a: NOT DONE":                 "is not",
		"SAY a: DONE2":                    "is not",
	} {
		got := "is not"
		for s := range spoken.Sentences(text, "SAY ") {
			if reason, is := s.Says("DONE"); is {
				got = "is " + reason
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func FuzzOwn(f *testing.F) {
	f.Add("SAY a: DONE - x\n```\nSAY b: DONE\n```\n> SAY c: DONE")
	f.Fuzz(func(t *testing.T, text string) {
		all := subjects(text, false)
		at := 0
		for s := range spoken.Own(text, "SAY ") {
			i := slices.Index(all[at:], s.Subject)
			if i < 0 {
				t.Fatalf("%q is found in none of %q", s.Subject, all)
			}
			at += i + 1
			if reason, _ := s.Says("DONE"); len(s.Subject) > 128 || utf8.RuneCountInString(reason) > 300 || strings.ContainsAny(reason, "\n\r") {
				t.Fatalf("%q, %q", s.Subject, reason)
			}
		}
	})
}

// TestManyLines: the cost of a text grows with its length, whatever is in it. With the square of it, this test takes hours.
func TestManyLines(t *testing.T) {
	t.Parallel()
	const much = 32 << 20
	for name, text := range map[string]string{
		"empty lines":       strings.Repeat("\n", much) + "SAY a: x",
		"one long line":     strings.Repeat("x", much) + "SAY a: x\nSAY a: x",
		"marks":             strings.Repeat("`", much) + "\n" + strings.Repeat("`", much) + "\nSAY a: x",
		"leads in one line": strings.Repeat("SAY ", much/4) + "\nSAY a: x",
	} {
		for _, own := range []bool{false, true} {
			if list := subjects(text, own); !slices.Equal(list, []string{"a"}) {
				t.Errorf("%s: %q", name, list)
			}
		}
	}
}
