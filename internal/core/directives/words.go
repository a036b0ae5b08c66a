// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package directives

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/clip"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Outcome is what an agent says of a directive.
type Outcome string

// Outcomes, in the words that agents are asked for.
const (
	Done    Outcome = "ADDRESSED"
	Already Outcome = "ALREADY HANDLED"
	Cannot  Outcome = "CANNOT"
)

// Outcomes are all of them.
func Outcomes() []Outcome { return []Outcome{Done, Already, Cannot} }

const (
	// lead begins a line in which an agent speaks of a directive.
	lead = "DIRECTIVE "
	// maxWords are heard in one text, and maxReason characters of each are kept.
	maxWords, maxReason = 64, 300
	// maxLine is how much of a line is read, in bytes.
	maxLine = 4 << 10
	// marks surround a line where models write Markdown.
	marks = " \t\r\n*_`>-#"
)

// Word is what an agent says of a directive.
type Word struct {
	ID      string
	Outcome Outcome
	// Reason in the agent's own words.
	Reason string
}

// NewWord is what an agent says by a tool.
func NewWord(id string, outcome Outcome, reason string) Word {
	return Word{ID: id, Outcome: outcome, Reason: clip.Runes(strings.Join(strings.Fields(reason), " "), maxReason)}
}

// Words finds the lines of a text that speak of directives.
func Words(text string) (words []Word) {
	for len(words) < maxWords {
		at := strings.Index(text, lead)
		if at < 0 {
			return words
		}
		begin := strings.LastIndexByte(text[:at], '\n') + 1
		line, rest, _ := strings.Cut(text[at:], "\n")
		if strings.Trim(text[begin:at], marks+"0123456789.)") == "" {
			if w, ok := word(clip.Bytes(line, maxLine)); ok {
				words = append(words, w)
			}
		}
		text = rest
	}
	return words
}

// word reads "DIRECTIVE id: OUTCOME - reason".
func word(line string) (Word, bool) {
	line = strings.TrimRight(strings.TrimPrefix(line, lead), marks)
	id, rest, ok := strings.Cut(line, ":")
	id = strings.Trim(id, marks+`"<`)
	if !ok || id == "" || len(id) > protocol.MaxDirectiveID || strings.ContainsFunc(id, unicode.IsSpace) {
		return Word{}, false
	}
	rest = strings.TrimLeft(rest, marks)
	for _, o := range Outcomes() {
		reason, is := strings.CutPrefix(rest, string(o))
		if next, _ := utf8.DecodeRuneInString(reason); !is || unicode.IsLetter(next) || unicode.IsDigit(next) {
			continue
		}
		return NewWord(id, o, strings.TrimLeft(reason, marks+":.–—,")), true
	}
	return Word{}, false
}

// message for people.
func (w Word) message() string {
	says := map[Outcome]string{Done: "the agent says that it is addressed", Already: "the agent says that it was handled already", Cannot: "the agent says that it cannot be done"}[w.Outcome]
	if w.Reason == "" {
		return says
	}
	return fmt.Sprintf("%s: %q", says, w.Reason)
}
