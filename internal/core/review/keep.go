// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/compose"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/marks"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Reason why a finding does not count.
type Reason string

// Reasons, in the order in which Keep looks for them.
const (
	// NotInTree: its path is not a file of the tree.
	NotInTree Reason = "NotInTree"
	// QuoteNotThere: its quote does not stand in the file, or says nothing.
	QuoteNotThere Reason = "QuoteNotThere"
	// Outdated: the reviewer says that the changes are right, and a document is not.
	Outdated Reason = DesignOutdated
	// Unusable: one of its texts cannot go to an agent.
	Unusable Reason = "Unusable"
	// Known: there was a directive for it before.
	Known Reason = "Known"
	// Repeated: the answer has it twice.
	Repeated Reason = "Repeated"
	// TooMany: others are more urgent, and there is no room for all.
	TooMany Reason = "TooMany"
	// NotShown: it is about an answered directive that the question has not shown.
	NotShown Reason = "NotShown"
)

// Reasons are all of them.
func Reasons() []Reason {
	return []Reason{NotInTree, QuoteNotThere, Outdated, Unusable, Known, Repeated, TooMany, NotShown}
}

// Discarded is a finding that does not count.
type Discarded struct {
	// Path and Rule of the finding, in visible characters.
	Path   string `json:"path,omitempty"`
	Rule   string `json:"rule,omitempty"`
	Reason Reason `json:"reason"`
}

// String is the reason, the rule and the path, as far as they are known.
func (d Discarded) String() string {
	text := string(d.Reason)
	if d.Rule != "" {
		text += ", rule " + d.Rule
	}
	if d.Path != "" {
		text += ", in " + judge.Escape(d.Path)
	}
	return text
}

// UnmarshalJSON also reads a text: journals of earlier versions have only the reason.
func (d *Discarded) UnmarshalJSON(text []byte) error {
	*d = Discarded{}
	if err := json.Unmarshal(text, &d.Reason); err == nil {
		return nil
	}
	type whole Discarded
	return json.Unmarshal(text, (*whole)(d))
}

// Keep decides which findings of a reviewer become directives: the most urgent first, and no more than most. Text gives the content of a file
// of the tree, and whether there is a file that is text. Known says whether there was a directive with an id before. Every other finding is discarded.
func Keep(r Reviewer, a Answer, text func(path string) (content string, is bool), known func(id string) bool, most int) (kept []protocol.Directive, discarded []Discarded) {
	type found struct {
		protocol.Directive
		rule string
	}
	var all []found
	seen := map[string]bool{}
	for _, f := range a.Findings {
		d, reason := directive(r, f, text)
		switch {
		case reason != "":
		case known(d.ID):
			reason = Known
		case seen[d.ID]:
			reason = Repeated
		}
		if reason != "" {
			discarded = append(discarded, discard(f.Path, f.Rule, reason))
			continue
		}
		seen[d.ID] = true
		all = append(all, found{d, f.Rule})
	}
	plain.SortStable(all, func(a, b *found) int { return cmp.Compare(rank(a.Priority), rank(b.Priority)) })
	for i, f := range all {
		if i < most {
			kept = append(kept, f.Directive)
		} else {
			discarded = append(discarded, discard(f.Files[0], f.rule, TooMany))
		}
	}
	return kept, discarded
}

func discard(path, rule string, reason Reason) Discarded {
	return Discarded{Path: plain.Line(path, MaxPath), Rule: kebab(rule), Reason: reason}
}

// directive that a finding is; otherwise the reason why it does not count.
func directive(r Reviewer, f Finding, text func(path string) (string, bool)) (d protocol.Directive, reason Reason) {
	name, quote, line, reason := stands(f.Path, f.Quote, f.Line, text)
	if reason != "" {
		return d, reason
	}
	if f.Cause == DesignOutdated {
		return d, Outdated
	}
	rule, rationale := kebab(f.Rule), plain.Line(f.Rationale, MaxRationale)
	description := strings.TrimRight(plain.Line(f.Description, MaxDescription), ". ")
	if rule == "" || description == "" || forged(name) || forged(description) || forged(rationale) {
		return d, Unusable
	}
	return protocol.Directive{
		ID: id(r.Name, rule, name, quote), Source: r.Name, Type: r.Directive, Priority: lowered(f.Priority, r.MaxPriority),
		Description: fmt.Sprintf("%s (%s:%d).", description, judge.Escape(name), line), Rationale: rationale, Files: []string{name},
	}, ""
}

// stands is where a quote of words stands in the tree; otherwise it is the reason why it does not.
func stands(file, said string, near int, text func(path string) (string, bool)) (name, quote string, line int, reason Reason) {
	name = strings.TrimPrefix(strings.TrimSpace(file), "./")
	if quoted, err := strconv.Unquote(name); err == nil { // as the question writes a path with a space
		name = quoted
	}
	if !printable(name) || path.Clean(name) != name || path.IsAbs(name) || strings.HasPrefix(name, "../") {
		return "", "", 0, NotInTree
	}
	content, is := text(name)
	if !is {
		return "", "", 0, NotInTree
	}
	quote = words(said)
	if line, is = place(content, quote, near); !is {
		return "", "", 0, QuoteNotThere
	}
	return name, quote, line, ""
}

// printable says whether a path is one that users and agents can read.
func printable(name string) bool {
	return name != "" && len(name) <= MaxPath && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r != ' ' && !plain.Visible(r) })
}

// words of a text, with one space between them. Models copy white space badly.
func words(text string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(text) { // without a list of them: a file can have a million
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}

// minQuote is the length, in bytes, from which a quote proves that the model has read the file: a brace stands in every file.
const minQuote = 3

// place is the line of a file in which a quote of words begins, the nearest to the one that the model names; is says whether it stands there.
func place(content, quote string, near int) (line int, is bool) {
	if len(quote) < minQuote || len(quote) > MaxQuote || !strings.ContainsFunc(quote, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return 0, false
	}
	text := words(content)
	at := strings.Index(text, quote)
	near = max(near, 1)
	number, offset := 0, 0
	for l := range strings.Lines(content) {
		number++
		length := len(words(l))
		if length == 0 {
			continue
		}
		for at >= 0 && at < offset+length {
			if !is || distance(number, near) < distance(line, near) {
				line, is = number, true
			}
			from := at + len(quote)
			if at = strings.Index(text[from:], quote); at >= 0 {
				at += from
			}
		}
		if at < 0 || is && number-near >= distance(line, near) {
			break
		}
		offset += length + len(" ")
	}
	return line, is
}

func distance(a, b int) int { return max(a-b, b-a) }

// forged says whether a text has what only Tidewaiter writes to agents, or a link: an agent is not sent out of its repository.
func forged(text string) bool {
	return strings.Contains(text, "://") || marks.Find(text) != "" || compose.CheckText(text) != nil
}

// id of a finding: the same one for the same reviewer, rule, path and quote. No directive of a user has a slash in its id.
func id(reviewer, rule, path, quote string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{reviewer, rule, path, quote}, "\x00")))
	return kebab(reviewer) + "/" + hex.EncodeToString(sum[:4])
}

// kebab is a name in lower case with dashes, such as code-style; at most MaxRule bytes.
func kebab(name string) string {
	var b strings.Builder
	dash, lower := false, false
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		upper := r >= 'A' && r <= 'Z'
		if !letter && !upper {
			dash = true
			continue
		}
		if b.Len() > 0 && (dash || upper && lower) {
			b.WriteByte('-')
		}
		if b.Len() >= MaxRule {
			break
		}
		b.WriteRune(unicode.ToLower(r))
		dash, lower = false, letter
	}
	return strings.TrimRight(b.String(), "-")
}

// rank of a priority, the most urgent first.
func rank(priority string) int {
	return slices.Index([]string{protocol.PriorityCritical, protocol.PriorityNormal, protocol.PriorityLow}, priority)
}

// lowered is a priority, at most the given one.
func lowered(priority, most string) string {
	switch {
	case rank(priority) < 0:
		return protocol.PriorityLow
	case rank(priority) < rank(most):
		return most
	}
	return priority
}
