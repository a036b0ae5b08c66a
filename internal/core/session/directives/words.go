// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package directives

import (
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/core/session/spoken"
)

// Outcome is an agent's statement about a directive.
type Outcome string

// Outcomes, in the words that agents must use.
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
	// maxWords are heard in one text.
	maxWords = 64
)

// Word is an agent's statement about one directive.
type Word struct {
	ID      string
	Outcome Outcome
	// Reason in the agent's own words.
	Reason string
}

// NewWord is a statement that comes by a tool.
func NewWord(id string, outcome Outcome, reason string) Word {
	return Word{ID: id, Outcome: outcome, Reason: spoken.Reason(reason)}
}

// Words finds the lines of a text about directives: "DIRECTIVE id: OUTCOME - reason".
func Words(text string) (words []Word) {
	for s := range spoken.Sentences(text, lead) {
		for _, o := range Outcomes() {
			if reason, is := s.Says(string(o)); is {
				words = append(words, Word{ID: s.Subject, Outcome: o, Reason: reason})
				break
			}
		}
		if len(words) == maxWords {
			break
		}
	}
	return words
}

// message for people.
func (w Word) message() string {
	says := map[Outcome]string{Done: "the agent says that it is addressed", Already: "the agent says that it was handled already", Cannot: "the agent says that it cannot be done"}[w.Outcome]
	if w.Reason == "" {
		return says
	}
	return fmt.Sprintf("%s: %q", says, w.Reason)
}
