// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spoken finds the lines of an exact form in which an agent answers its supervisor, among everything else that it says.
package spoken

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

const (
	// maxLine is how much of a line is read, and maxSubject how long a subject may be, in bytes.
	maxLine, maxSubject = 4 << 10, 128
	// maxReason characters of a reason are kept.
	maxReason = 300
	// marks surround a line where models write Markdown.
	marks = " \t\r\n*_`>-#"
)

// Sentence is a line "LEAD subject: statement".
type Sentence struct {
	Subject string
	// rest is what follows the colon.
	rest string
}

// Sentences of a text that begin with a lead, such as "DIRECTIVE ", in their order.
func Sentences(text, lead string) iter.Seq[Sentence] { return sentences(text, lead, true) }

// Own are the Sentences of a text that stand neither in a block of code nor in a quotation.
func Own(text, lead string) iter.Seq[Sentence] { return sentences(text, lead, false) }

// sentences looks at the lines that have the lead and, where quotations do not count, at those in between for the blocks of code that they are in:
// at each byte a few times at most.
func sentences(text, lead string, quoted bool) iter.Seq[Sentence] {
	return func(yield func(Sentence) bool) {
		fence := ""
		for {
			at := strings.Index(text, lead)
			if at < 0 {
				return
			}
			begin := strings.LastIndexByte(text[:at], '\n') + 1
			if !quoted {
				fence = behind(text[:begin], fence)
			}
			line, rest, _ := strings.Cut(text[begin:], "\n")
			text = rest
			if next := fenced(line, fence); !quoted && next != fence {
				fence = next
				continue
			}
			own := fence == "" && !strings.HasPrefix(strings.TrimSpace(line), ">")
			if s, is := sentence(line, lead); is && (quoted || own) && !yield(s) {
				return
			}
		}
	}
}

// behind some lines: the mark of the block of code that is open then; "" for none.
func behind(lines, fence string) string {
	for line := range strings.Lines(lines) {
		fence = fenced(line, fence)
	}
	return fence
}

// fenced is the mark of the block of code that is open behind a line: it begins with three marks or more, and ends with a line of nothing but as
// many, as CommonMark says.
func fenced(line, open string) string {
	line = strings.TrimSpace(line)
	if len(line) < 3 || line[0] != '`' && line[0] != '~' {
		return open
	}
	rest := strings.TrimLeft(line, line[:1])
	mark := line[:len(line)-len(rest)]
	switch {
	case len(mark) < 3:
		return open
	case open == "":
		return mark
	case rest == "" && strings.HasPrefix(mark, open):
		return ""
	}
	return open
}

func sentence(line, lead string) (Sentence, bool) {
	at := strings.Index(line, lead)
	if at < 0 || strings.Trim(line[:at], marks+"0123456789.)") != "" {
		return Sentence{}, false
	}
	said := strings.TrimRight(plain.CutBytes(line[at+len(lead):], maxLine), marks)
	subject, rest, ok := strings.Cut(said, ":")
	subject = strings.Trim(subject, marks+`"<`)
	if !ok || subject == "" || len(subject) > maxSubject || strings.ContainsFunc(subject, unicode.IsSpace) {
		return Sentence{}, false
	}
	return Sentence{Subject: subject, rest: strings.TrimLeft(rest, marks)}, true
}

// Says returns the reason behind a keyword, and whether the sentence has that keyword.
func (s Sentence) Says(word string) (reason string, is bool) {
	reason, is = strings.CutPrefix(s.rest, word)
	if next, _ := utf8.DecodeRuneInString(reason); !is || unicode.IsLetter(next) || unicode.IsDigit(next) {
		return "", false
	}
	return Reason(strings.TrimLeft(reason, marks+":.–—,")), true
}

// Reason is a text of an agent in one bounded line.
func Reason(text string) string {
	return plain.CutRunes(strings.Join(strings.Fields(plain.CutBytes(text, maxLine)), " "), maxReason)
}
