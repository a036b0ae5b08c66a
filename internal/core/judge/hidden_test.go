// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// FuzzHidden: whatever a text is, a hidden character is named by a line that it has, and is really there.
func FuzzHidden(f *testing.F) {
	f.Add("a\u202eb\n\ufeff")
	f.Add("\xff\xf3\xa0\x80")
	f.Fuzz(func(t *testing.T, text string) {
		h := findHidden([]byte(text), func() bool { return false })
		if h.count == 0 {
			return
		}
		lines := strings.Split(text, "\n")
		if h.line < 1 || h.line > len(lines) || !strings.ContainsRune(lines[h.line-1], h.rune) || !plain.Invisible(h.rune) {
			t.Errorf("%U on line %d of %q", h.rune, h.line, text)
		}
	})
}

// TestEveryDirectionIsHidden: no character that turns the direction of text is missed.
func TestEveryDirectionIsHidden(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		if unicode.Is(unicode.Bidi_Control, r) && !(couldHide(r) && hides(r, 'a', 'b', false)) {
			t.Errorf("%U is not found", r)
		}
	}
}

// TestHiddenStops: a search that is told to stop does so within a part of the text.
func TestHiddenStops(t *testing.T) {
	text := []byte(strings.Repeat("漢", 4<<20))
	asked := 0
	findHidden(text, func() bool { asked++; return true })
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// TestLookalikes: each pair is one letter beside a letter of ASCII that it is not, and none that NFKC would map itself.
func TestLookalikes(t *testing.T) {
	if len(lookalike) < 100 {
		t.Errorf("only %d letters", len(lookalike))
	}
	for r, like := range lookalike {
		if r < utf8.RuneSelf || like >= utf8.RuneSelf || !unicode.IsLetter(r) || !unicode.IsLetter(like) || norm.NFKC.String(string(r)) != string(r) {
			t.Errorf("%U is like %U", r, like)
		}
	}
}
