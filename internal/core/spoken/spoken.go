// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spoken finds the lines of an exact form in which an agent answers its supervisor, among everything else that it says.
package spoken

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/clip"
)

const (
	// maxLine is how much of a line is read, and maxSubject how long a subject may be, in bytes.
	maxLine, maxSubject = 4 << 10, 128
	// maxReason characters of a reason are kept.
	maxReason = 300
	// marks surround a line where models write Markdown.
	marks = " \t\r\n*_`>-#"
)

// Sentence is a line "LEAD subject: what is said of it".
type Sentence struct {
	Subject string
	// rest is what follows the colon.
	rest string
}

// Sentences of a text that begin with a lead, such as "DIRECTIVE ", in their order.
func Sentences(text, lead string) iter.Seq[Sentence] { return sentences(text, lead, true) }

// Own are the Sentences of a text that stand neither in a block of code nor in a quotation.
func Own(text, lead string) iter.Seq[Sentence] { return sentences(text, lead, false) }

func sentences(text, lead string, quoted bool) iter.Seq[Sentence] {
	return func(yield func(Sentence) bool) {
		fence := ""
		for strings.Contains(text, lead) {
			var line string
			line, text, _ = strings.Cut(text, "\n")
			if next, is := fenced(line, fence); !quoted && is {
				fence = next
				continue
			}
			if s, is := sentence(line, lead); is && (quoted || fence == "" && !strings.HasPrefix(strings.TrimSpace(line), ">")) && !yield(s) {
				return
			}
		}
	}
}

// fenced says whether a line begins or ends a block of code, and what ends the block that is open behind it.
func fenced(line, open string) (next string, is bool) {
	line = strings.TrimSpace(line)
	for _, mark := range []string{"```", "~~~"} {
		switch {
		case !strings.HasPrefix(line, mark):
		case open == "":
			return mark, true
		case open == mark:
			return "", true
		}
	}
	return open, false
}

func sentence(line, lead string) (Sentence, bool) {
	at := strings.Index(line, lead)
	if at < 0 || strings.Trim(line[:at], marks+"0123456789.)") != "" {
		return Sentence{}, false
	}
	said := strings.TrimRight(clip.Bytes(line[at+len(lead):], maxLine), marks)
	subject, rest, ok := strings.Cut(said, ":")
	subject = strings.Trim(subject, marks+`"<`)
	if !ok || subject == "" || len(subject) > maxSubject || strings.ContainsFunc(subject, unicode.IsSpace) {
		return Sentence{}, false
	}
	return Sentence{Subject: subject, rest: strings.TrimLeft(rest, marks)}, true
}

// Says gives the reason behind a word, and whether the sentence says that word.
func (s Sentence) Says(word string) (reason string, is bool) {
	reason, is = strings.CutPrefix(s.rest, word)
	if next, _ := utf8.DecodeRuneInString(reason); !is || unicode.IsLetter(next) || unicode.IsDigit(next) {
		return "", false
	}
	return Reason(strings.TrimLeft(reason, marks+":.–—,")), true
}

// Reason is a text of an agent in one bounded line.
func Reason(text string) string {
	return clip.Runes(strings.Join(strings.Fields(clip.Bytes(text, maxLine)), " "), maxReason)
}
