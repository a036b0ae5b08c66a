// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClip(t *testing.T) {
	for name, tc := range map[string]struct{ got, want string }{
		"bytes: as it is":           {CutBytes("äöü", 6), "äöü"},
		"bytes: at a border":        {CutBytes("abcdef", 5), "ab…"},
		"bytes: inside a character": {CutBytes("äöüß", 6), "ä…"},
		"bytes: no room":            {CutBytes("abcdef", 2), ""},
		"bytes: not UTF-8":          {CutBytes("a\xffb", 10), "a\uFFFDb"},
		"bytes: a long run of none": {CutBytes(strings.Repeat("\xff", 99)+"tail", 10), "\uFFFD…"},
		"runes: as it is":           {CutRunes("äöü", 3), "äöü"},
		"runes: one too many":       {CutRunes("äöüß", 3), "äö…"},
		"runes: no room":            {CutRunes("ab", 0), ""},
		"runes: one":                {CutRunes("ab", 1), "…"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", name, tc.got, tc.want)
		}
	}
	if got := CutList([]int{1, 2, 3}, 2); len(got) != 2 {
		t.Errorf("list: %v", got)
	}
}

// TestClipKeepsItsWord: the result is text, within the limit, and the whole text or its beginning and the mark.
func TestClipKeepsItsWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "text"))
		if rapid.Bool().Draw(t, "valid") {
			text = rapid.String().Draw(t, "string")
		}
		limit := rapid.IntRange(0, 64).Draw(t, "limit")
		valid := strings.ToValidUTF8(text, "\uFFFD")
		for _, got := range []string{CutBytes(text, limit), CutRunes(text, limit)} {
			begins := strings.HasSuffix(got, CutMark) && strings.HasPrefix(valid, strings.TrimSuffix(got, CutMark))
			if !utf8.ValidString(got) || got != valid && got != "" && !begins {
				t.Fatalf("%q of %q", got, valid)
			}
		}
		if n := len(CutBytes(text, limit)); n > limit {
			t.Fatalf("%d bytes, more than %d", n, limit)
		}
		if n := utf8.RuneCountInString(CutRunes(text, limit)); n > limit {
			t.Fatalf("%d characters, more than %d", n, limit)
		}
	})
}
