// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// invisible says whether a character cannot be seen, or changes how its neighbours are shown: controls, format
// characters (bidirectional overrides and zero-width ones among them), line separators, fillers, variation selectors.
// HFS+ leaves some of them out when it compares names, which is how ".g\u200cit" once became ".git".
func invisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// fold maps names that some file system takes for the same one to one key: without invisible characters, composed by
// NFKC, case-folded in full. Of names that are not UTF-8 only the ASCII letters are folded.
func fold(name string) string {
	if visibleASCII(name) {
		return strings.ToLower(name)
	}
	if !utf8.ValidString(name) {
		key := []byte(name)
		for i, c := range key {
			if 'A' <= c && c <= 'Z' {
				key[i] = c - 'A' + 'a'
			}
		}
		return string(key)
	}
	shown := strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, name)
	// Folding can decompose, hence the second NFKC. Lower case comes first because x/text v0.43 exchanges the two cases
	// of Cherokee instead of folding them.
	return norm.NFKC.String(cases.Fold().String(strings.ToLower(norm.NFKC.String(shown))))
}

// visibleASCII says whether a name has visible ASCII characters only, as nearly all have: those need no Unicode tables.
func visibleASCII(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// alias is fold, and without what NTFS drops from the end of a name: dots, spaces, and a stream (":$DATA").
func alias(name string) string {
	key := fold(name)
	if i := strings.IndexByte(key, ':'); i > 0 {
		key = key[:i]
	}
	if trimmed := strings.TrimRight(key, ". "); trimmed != "" {
		key = trimmed
	}
	return key
}

// IsGitDir says whether some file system takes a name for ".git": by case, by composition, by characters that it leaves
// out, by what it drops from the end, or because it is the short name that NTFS gives to ".git". A capture does not put
// such a name into a tree: it is Found instead.
func IsGitDir(name string) bool {
	// Windows takes a backslash for a separator.
	for part := range strings.SplitSeq(name, `\`) {
		key := alias(part)
		if key == ".git" {
			return true
		}
		if number, ok := strings.CutPrefix(key, "git~"); ok && digits(number) {
			return true
		}
	}
	return false
}

// digits says whether s is a decimal number.
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
