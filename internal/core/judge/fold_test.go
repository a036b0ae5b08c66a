// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

func TestIsGitDir(t *testing.T) {
	tests := map[string]bool{
		".git": true, ".GIT": true, ".Git": true, ".gıt": true,
		".git ": true, ".git.": true, ".git. . ": true, ".git:x": true, ".GIT::$INDEX_ALLOCATION": true,
		"git~1": true, "GIT~1": true, "Git~1 .": true, "git~2": true, "git~": false, "git~x": false,
		".g\u200cit": true, ".\u200dgit": true, "\ufeff.git": true, ".git\u206f": true, ".gi\u202at": true,
		".ｇｉｔ": true, "．git": true, ".\u0121it": false,
		`x\.git`: true, `.git\x`: true,
		".gitignore": false, "git": false, ".gi": false, "..git": false, ".git~": false, "": false, ".": false,
	}
	for name, want := range tests {
		if got := IsGitDir(name); got != want {
			t.Errorf("IsGitDir(%q) = %t, want %t", name, got, want)
		}
	}
}

func TestTwinKey(t *testing.T) {
	same := [][2]string{
		{"README", "readme"}, {"straße", "STRASSE"}, {"café", "cafe\u0301"}, {"ﬁle", "file"}, {"Å", "\u212b"},
		{"K", "\u212a"}, {"a", "a."}, {"a", "a "}, {"a\u200b", "a"}, {"２", "2"}, {"ΣΑΣ", "σας"},
	}
	for _, pair := range same {
		if collisionKey(pair[0]) != collisionKey(pair[1]) {
			t.Errorf("%q and %q: want the same key", pair[0], pair[1])
		}
	}
	different := [][2]string{{"a", "b"}, {"e", "é"}, {"a", ".a"}, {"a:b", "a:c"}, {"\xff", "\xfe"}, {".", ".."}, {" ", "  "}}
	for _, pair := range different {
		if collisionKey(pair[0]) == collisionKey(pair[1]) {
			t.Errorf("%q and %q: want different keys", pair[0], pair[1])
		}
	}
}

// TestFoldOfEveryCharacter: the fold of a fold is itself, for every character by itself and after a letter.
func TestFoldOfEveryCharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		for _, name := range []string{string(r), "a" + string(r)} {
			if key := fold(name); fold(key) != key {
				t.Errorf("fold(%q) = %q, folded again %q", name, key, fold(key))
			}
		}
	}
}

// TestFoldAgainstReference: what full case folding or compatibility composition maps to one, fold maps to one.
func TestFoldAgainstReference(t *testing.T) {
	reference := cases.Fold()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		name := string(r)
		for _, same := range []string{
			reference.String(name), norm.NFKC.String(name), norm.NFD.String(name),
			strings.ToLower(name), strings.ToUpper(name),
		} {
			// İ is lower-cased to an i without its dot, which full folding keeps.
			if r != 'İ' && utf8.ValidString(name) && fold(same) != fold(name) {
				t.Errorf("fold(%q) = %q, but fold(%q) = %q", name, fold(name), same, fold(same))
			}
		}
	}
}

// FuzzFold: folding is stable, and a fold of a fold changes nothing, or two names could collide with a third and not with
// each other.
func FuzzFold(f *testing.F) {
	for _, seed := range []string{"README", "straße", "cafe\u0301", "ﬁ", "\u0345\u1fb3", "İ", "\xc2\x1c\x9a", "Ꭰ", "\xff\u200b", "\u2105", "ͅα"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		key := fold(name)
		if again := fold(key); again != key {
			t.Errorf("fold(%q) = %q, folded again %q", name, key, again)
		}
		if utf8.ValidString(name) && strings.ContainsFunc(key, plain.Invisible) {
			t.Errorf("fold(%q) = %q has invisible characters", name, key)
		}
	})
}
