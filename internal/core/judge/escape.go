// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

const (
	// maxEscaped bounds what Escape returns, in characters. A Checkpoint holds 256 for a path.
	maxEscaped = 200
	// maxInMessage bounds a name inside a message, in characters, so that a message stays within maxMessage.
	maxInMessage = 100
	// maxMessage bounds messages and suggestions in characters, as a Checkpoint does.
	maxMessage = 256
	// maxSummary bounds Summary in bytes: it becomes the message of a condition.
	maxSummary = 1024
)

// Escape renders a name that an agent chose so that it is safe in a message, a log line or on a terminal: at most 200
// characters, all of them visible. Ordinary names come out as they are; others are quoted as in Go, and what is left
// out at the end is marked by "…".
func Escape(name string) string { return escapeTo(name, maxEscaped) }

// EscapeOnce is Escape for a text that may already be escaped: an escaped text stays the same.
func EscapeOnce(text string) string {
	if name, err := strconv.Unquote(text); err == nil && Escape(name) == text {
		return text
	}
	return Escape(text)
}

// quoteName is Escape for names inside messages.
func quoteName(name string) string { return escapeTo(name, maxInMessage) }

// quoteText makes a sentence that others wrote, and that may quote names, safe in a message: what cannot be seen is
// written as in Go. It stays without quotation marks.
func quoteText(text string) string {
	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if plain.Visible(r) && r != utf8.RuneError {
			b.WriteString(text[:size])
		} else {
			b.WriteString(quoteRune(text[:size]))
		}
		text = text[size:]
	}
	return b.String()
}

func escapeTo(name string, limit int) string {
	if ordinary(name) && utf8.RuneCountInString(name) <= limit {
		return name
	}
	const marks = 3 // two quotation marks and "…"
	var b strings.Builder
	b.WriteByte('"')
	length := 0
	for rest := name; rest != ""; {
		_, size := utf8.DecodeRuneInString(rest)
		part := quoteRune(rest[:size])
		rest = rest[size:]
		n := utf8.RuneCountInString(part)
		if length+n > limit-marks {
			b.WriteString("…")
			break
		}
		b.WriteString(part)
		length += n
	}
	b.WriteByte('"')
	return b.String()
}

// ordinary says whether a name needs no quotes: it is not empty, all visible, without spaces, quotes or backslashes, and
// does not look like the quoted form of another name.
func ordinary(name string) bool {
	if name == "" || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if r == ' ' || r == '"' || r == '\\' || r == '…' || !plain.Visible(r) {
			return false
		}
	}
	return true
}

// quoteRune quotes one character, or one byte that is none.
func quoteRune(s string) string {
	r, _ := utf8.DecodeRuneInString(s)
	quoted := strconv.Quote(s)
	if r != utf8.RuneError && !plain.Visible(r) {
		quoted = strconv.QuoteToASCII(s)
	}
	return quoted[1 : len(quoted)-1]
}
