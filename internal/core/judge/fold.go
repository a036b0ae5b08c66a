// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// fold maps names that some file system treats as the same to one key: without invisible characters, case-folded in
// full, composed by NFKC. Of names that are not UTF-8 only the ASCII letters are folded.
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
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		switch {
		case plain.Invisible(r):
		case foldRune(r) == 'ß':
			b.WriteString("ss")
		default:
			b.WriteRune(foldRune(r))
		}
	}
	return norm.NFKC.String(b.String())
}

// foldRune maps characters that differ by case to one of them. On decomposed text that is full case folding, "ß" aside:
// all other foldings to several characters decompose. x/text/cases would do, but v0.43 exchanges the cases of Cherokee
// instead of folding them, and brings the tables of all languages into what runs next to the agent.
func foldRune(r rune) rune {
	if r == 'ı' {
		return 'i' // to what compares capitals, a dotless i is one with a dot
	}
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return unicode.ToLower(least)
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

// IsGitDir says whether some file system treats a name as ".git". It may ignore case, composition or some characters, drop characters from
// the end, or know the name as the short name of ".git" on NTFS. A capture does not put such a name into a tree, but reports it as Found.
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
