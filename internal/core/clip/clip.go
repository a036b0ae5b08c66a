// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clip cuts texts to the size that may be stored of them. A text that was cut ends with Mark, so that a reader
// knows that there was more.
package clip

import (
	"strings"
	"unicode/utf8"
)

// Mark is the end of a text that was cut.
const Mark = "…"

// Bytes gives at most limit bytes of a text. It never cuts inside a character, and what is not UTF-8 becomes U+FFFD:
// the API server stores text alone. A limit below the size of Mark gives an empty text.
func Bytes(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	if limit < len(Mark) {
		return ""
	}
	end := limit - len(Mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + Mark
}

// Runes gives at most limit characters of a text, by which the API server counts a maxLength. What is not UTF-8 becomes
// U+FFFD. A limit below 1 gives an empty text.
func Runes(text string, limit int) string {
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
			return text[:end] + Mark
		}
		count++
	}
	return text
}

// List gives at most limit entries of a list.
func List[E any](list []E, limit int) []E { return list[:min(len(list), max(limit, 0))] }
