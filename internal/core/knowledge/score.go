// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// The score of a document says how much it has to do with a task. It is the sum of these points.
const (
	// samePaths: a path that the plan lets the work change, or that the task names, can match a pattern of the document.
	samePaths = 10
	// nameWord for each word of its name that the task has.
	nameWord = 3
	// otherWord for each other word of its title and rules that the task has, up to maxOther of them.
	otherWord, maxOther = 1, 9
	// meets is the score from which on a document meets the task: a common path, one word of the name, or three other words.
	meets = 3
)

const (
	// maxWords of a task and maxNamed paths that it names count; the first ones.
	maxWords, maxNamed = 20_000, 64
	// minWord is the least length of words that count, in characters.
	minWord = 3
	// mostSteps bounds the comparison of the paths of one document, with the areas of the plan and with the named paths each. So no document takes the time of
	// others, which would then seem to meet the task. 16 patterns and 500 files take 40,000 steps. All documents take fewer than two comparisons of plans.
	mostSteps = 64 << 10
)

// common words say nothing about a task.
var common = strings.Fields("add all also and any are but can change file for from has have how into its make new not now one our out set should that the then this use was when where which will with work you your")

// subject is what a task is about.
type subject struct {
	words map[string]bool
	// areas and named are nil if the plan bounds nothing, or if the task names no path.
	areas, named *judge.PlanComparison
}

func newSubject(t Task) subject {
	s := subject{words: map[string]bool{}}
	for word := range words(t.Text) {
		if s.words[word] = true; len(s.words) == maxWords {
			break
		}
	}
	if f := t.Plan.Files; len(t.Plan.Areas()) > 0 || f != nil && len(f.Create)+len(f.Modify)+len(f.Delete) > 0 {
		s.areas = judge.Compare(t.Plan)
	}
	if paths := named(t.Text); len(paths) > 0 {
		s.named = judge.Compare(protocol.Plan{Allowed: paths})
	}
	return s
}

// score of a document for the task.
func (s subject) score(d *Document) int {
	score := 0
	if about := (protocol.Plan{Allowed: d.Paths}); len(d.Paths) > 0 && (overlaps(s.areas, about) || overlaps(s.named, about)) {
		score += samePaths
	}
	seen := map[string]bool{}
	for word := range words(d.Name) {
		if s.words[word] && !seen[word] {
			score += nameWord
		}
		seen[word] = true
	}
	others := 0
	for word := range words(d.Title + " " + strings.Join(d.Rules, " ")) {
		if s.words[word] && !seen[word] {
			others++
		}
		seen[word] = true
	}
	return score + otherWord*min(others, maxOther)
}

func overlaps(c *judge.PlanComparison, about protocol.Plan) bool {
	if c == nil {
		return false
	}
	_, _, is := c.Within(mostSteps).Overlaps(about)
	return is
}

// words of a text that count, in lower case and without the s of a plural.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if word = strings.ToLower(word); utf8.RuneCountInString(word) < minWord || slices.Contains(common, word) {
				continue
			}
			if stem, is := strings.CutSuffix(word, "s"); is && len(stem) >= minWord && !strings.HasSuffix(stem, "s") {
				word = stem
			}
			if !slices.Contains(common, word) && !yield(word) {
				return
			}
		}
	}
}

// named are the paths that a text names: words with a slash inside.
func named(text string) (paths []string) {
	for field := range strings.FieldsSeq(text) {
		field = strings.Trim(field, "`'\"()[]{}<>,;:.!?*")
		if !strings.Contains(strings.Trim(field, "/"), "/") || len(field) > MaxPath || strings.Contains(field, "://") || judge.ValidatePattern(field) != nil {
			continue
		}
		if paths = append(paths, field); len(paths) == maxNamed {
			break
		}
	}
	return paths
}
