// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"strings"
	"unicode/utf8"
)

// CutMark is the end of a text that was cut.
const CutMark = "…"

// CutBytes returns at most limit bytes of a text. It never cuts inside a character, and what is not UTF-8 becomes U+FFFD:
// the API server stores only text. A limit below the size of CutMark gives an empty text. Its cost depends on the limit, not on the text.
func CutBytes(text string, limit int) string {
	end := max(limit, 0) + utf8.UTFMax
	longer := len(text) > end
	if longer {
		for end > limit && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !longer && len(text) <= limit {
		return text
	}
	if limit < len(CutMark) {
		return ""
	}
	end = min(len(text), limit-len(CutMark))
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + CutMark
}

// CutRunes returns at most limit characters of a text, by which the API server counts a maxLength. What is not UTF-8 becomes
// U+FFFD. A limit below 1 gives an empty text.
func CutRunes(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	if limit < 1 {
		return ""
	}
	// end is where the mark goes once it is known that there is a character too many.
	count, end := 0, 0
	for i := range text {
		if count == limit-1 {
			end = i
		}
		if count == limit {
			return text[:end] + CutMark
		}
		count++
	}
	return text
}

// CutList returns at most limit entries of a list.
func CutList[E any](list []E, limit int) []E { return list[:min(len(list), max(limit, 0))] }

// Line returns a text as one line of visible characters, at most limit of them. A space stands for what is not visible.
func Line(text string, limit int) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || !Visible(r) })
	return CutRunes(strings.Join(words, " "), limit)
}
