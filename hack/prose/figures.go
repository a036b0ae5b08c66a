// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// long is the number of words from which on a sentence is counted as long. Plain-language guides recommend 15 to 20 words, and no sentence over 25.
const long = 25

// figures of texts, in sentences.
type figures struct{ sentences, you, passive, long int }

func (f figures) percent(n int) int { return n * 100 / max(f.sentences, 1) }

var (
	// sentenceEnd is a full stop, or a question or exclamation mark, before a space and what may begin a sentence.
	sentenceEnd = regexp.MustCompile("[.!?][)\"']? +(?:[A-Z`*\\[\"(])")
	you         = regexp.MustCompile(`(?i)\byou(r|rs|rself)?\b`)
	// passive is a form of "to be" before a participle, perhaps with one word between. It is an estimate: it counts "is red" of no verb, and "is tired".
	passive = regexp.MustCompile(`(?i)\b(is|are|was|were|be|been|being)( \w+ly| not| also| then| never| always)? (\w+ed|` +
		`begun|bound|bought|broken|brought|built|caught|chosen|cut|done|drawn|driven|eaten|fallen|fed|felt|fixed|forgotten|found|frozen|given|gone|held|hidden|hit|kept|known|laid|led|left|let|lost|made|meant|met|paid|put|` +
		`read|run|said|seen|sent|set|shown|shut|spent|split|stopped|stuck|sworn|taken|taught|told|thrown|understood|withdrawn|won|worn|written)\b`)
)

func measure(all []passage) figures {
	var f figures
	for _, p := range all {
		for _, s := range sentences(p.text) {
			f.sentences++
			if you.MatchString(s) {
				f.you++
			}
			if passive.MatchString(s) {
				f.passive++
			}
			if len(strings.Fields(s)) > long {
				f.long++
			}
		}
	}
	return f
}

// sentences of a paragraph. What has fewer than three words is a label, and counts for none.
func sentences(text string) []string {
	var all []string
	for len(text) > 0 {
		end := len(text)
		if at := sentenceEnd.FindStringIndex(text); at != nil {
			end = at[1] - 1
		}
		if s := strings.TrimSpace(text[:end]); len(strings.Fields(s)) > 2 {
			all = append(all, s)
		}
		text = text[end:]
	}
	return all
}
