// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package knowledge decides what an agent gets of the documents that a team keeps in docs/knowledge of its repository: which documents keep to their
// format, and which of them are about a task. Documents are data that anyone may have written: nothing in them changes what Tidewaiter does.
package knowledge

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Dir is the folder in the repository with one folder for each kind of document.
const Dir = policy.KnowledgeDir

// Bounds of documents.
const (
	// MaxSize of a document in bytes, and MaxTotal of all documents together.
	MaxSize  = 8 << 10
	MaxTotal = 256 << 10
	// MaxDocuments is how many documents are read.
	MaxDocuments = 200
	// MaxRules of a document, in characters.
	MaxRules = 500
	// MaxChangelog is the number of lines of a changelog.
	MaxChangelog = 10
	// MaxAuthor bounds the text after "Last updated by", in characters.
	MaxAuthor = 200
	// MaxPaths of a document.
	MaxPaths = 16
	// MaxPath bounds each of them, in bytes.
	MaxPath = 128
	// MaxSuperseded documents that a document supersedes.
	MaxSuperseded = 16
	// maxShown bounds what a reason quotes, in characters.
	maxShown = 60
)

// Kind of a document, which is the name of its folder.
type Kind string

// Kinds of documents.
const (
	Conventions Kind = "conventions"
	Design      Kind = "design"
	Lessons     Kind = "lessons"
	Domain      Kind = "domain"
)

// Kinds are all kinds, in the order in which agents get their documents.
func Kinds() []Kind { return []Kind{Conventions, Design, Lessons, Domain} }

// Status of a document.
type Status string

// Statuses. StatusEstablished documents come before StatusProvisional ones, and agents never get StatusDeprecated ones.
const (
	StatusEstablished Status = "established"
	StatusProvisional Status = "provisional"
	StatusDeprecated  Status = "deprecated"
)

// Confidence that a document is right. It orders documents of the same status.
type Confidence string

// Confidences, the highest first. Medium is that of a document that names none.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Document of the knowledge of a team.
type Document struct {
	// Path in the repository, and the Kind and Name that follow from it.
	Path string
	Kind Kind
	Name string
	// Author says who has updated it last, and in which task.
	Author     string
	Status     Status
	Confidence Confidence
	// Supersedes are the paths of the documents instead of which this one holds.
	Supersedes []string
	// Paths are patterns of what it is about; none for a document that is found by its words.
	Paths []string
	// Title is its heading; empty if it has none.
	Title string
	// Rules are the lines that agents get.
	Rules []string
	// Examples, Rationale and Changelog are the lines of the sections that no agent gets.
	Examples, Rationale, Changelog []string
}

// name of a document.
var name = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// Locate says of which kind a document is and what its name is, by its path.
func Locate(file string) (Kind, string, error) {
	below, is := strings.CutPrefix(file, Dir+"/")
	folder, base, in := strings.Cut(below, "/")
	stem, md := strings.CutSuffix(base, ".md")
	switch {
	case !is || !in || !slices.Contains(Kinds(), Kind(folder)):
		return "", "", fmt.Errorf("no document stands there: move it to %s/conventions, design, lessons or domain", Dir)
	case !md || !name.MatchString(stem):
		return "", "", errors.New("its name is not 1 to 63 lower-case letters, digits and dashes with .md after them: rename it, for example to error-handling.md")
	}
	return Kind(folder), stem, nil
}

// Parse reads a document. The error says in words for its author what does not keep to the format and how to mend it. Its cost is linear in the content.
func Parse(file string, content []byte) (Document, error) {
	kind, stem, err := Locate(file)
	switch {
	case err != nil:
		return Document{}, err
	case len(content) > MaxSize:
		return Document{}, tooLarge(int64(len(content)))
	case !utf8.Valid(content):
		return Document{}, errors.New("it is not UTF-8: save it in that encoding")
	}
	r := reader{d: Document{Path: file, Kind: kind, Name: stem}, seen: map[string]bool{}}
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		err := checkLine(line, path.Dir(file))
		if err == nil {
			err = r.line(line)
		}
		if err != nil {
			return Document{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return r.done()
}

func tooLarge(size int64) error {
	return fmt.Errorf("it has %d bytes, and a document has at most %d: shorten it, or divide it into documents of one concern each", size, MaxSize)
}

// Fields of the head of a document, and its sections.
const (
	fieldAuthor     = "Last updated by"
	fieldStatus     = "Status"
	fieldSupersedes = "Supersedes"
	fieldConfidence = "Confidence"
	fieldPaths      = "Paths"

	sectionRules     = "Rules"
	sectionExamples  = "Examples"
	sectionRationale = "Rationale"
	sectionChangelog = "Changelog"
)

func fields() []string {
	return []string{fieldAuthor, fieldStatus, fieldSupersedes, fieldConfidence, fieldPaths}
}

func sections() []string {
	return []string{sectionRules, sectionExamples, sectionRationale, sectionChangelog}
}

// reader of a document, line by line.
type reader struct {
	d Document
	// seen fields and sections, the latter with "## " before them.
	seen map[string]bool
	// section in which the next line stands; empty in the head. fence is what ends the block of code in which it stands; empty outside of one.
	section, fence string
	// size is the number of characters of the rules.
	size int
}

// line takes the next line.
func (r *reader) line(line string) error {
	text := strings.TrimSpace(line)
	if r.fence == "" {
		if title, is := strings.CutPrefix(line, "## "); is {
			return r.begin(strings.TrimSpace(title))
		}
	}
	switch {
	case r.section == "" && text == "":
		return nil
	case r.section == "":
		return r.head(text)
	case r.fence != "" && strings.Trim(text, r.fence[:1]) == "" && strings.HasPrefix(text, r.fence):
		r.fence = ""
	case r.fence == "" && (strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~")):
		r.fence = text[:3]
	}
	switch r.section {
	case sectionExamples:
		r.d.Examples = append(r.d.Examples, line)
		return nil
	case sectionRationale:
		r.d.Rationale = append(r.d.Rationale, line)
		return nil
	}
	if text == "" {
		return nil
	}
	switch line = strings.TrimRight(line, " \t"); r.section {
	case sectionRules:
		if r.size += utf8.RuneCountInString(line) + 1; r.size-1 > MaxRules {
			return fmt.Errorf("the section Rules has more than %d characters: shorten it, or divide the document", MaxRules)
		}
		r.d.Rules = append(r.d.Rules, line)
	case sectionChangelog:
		if r.d.Changelog = append(r.d.Changelog, line); len(r.d.Changelog) > MaxChangelog {
			return fmt.Errorf("the section Changelog has more than %d lines: remove the oldest", MaxChangelog)
		}
	}
	return nil
}

// begin a section.
func (r *reader) begin(title string) error {
	switch {
	case !slices.Contains(sections(), title):
		return fmt.Errorf("%q is not a section of a document: use %s", shown(title), listed(sections()))
	case r.seen["## "+title]:
		return fmt.Errorf("the section %s stands there twice: join the two", title)
	}
	r.section, r.seen["## "+title] = title, true
	return nil
}

// head takes a line before the sections.
func (r *reader) head(text string) error {
	if title, is := strings.CutPrefix(text, "# "); is && r.d.Title == "" {
		r.d.Title = strings.TrimSpace(title)
		return nil
	}
	inner, begins := strings.CutPrefix(text, "_")
	inner, ends := strings.CutSuffix(inner, "_")
	field, value, is := strings.Cut(inner, ":")
	if value = strings.TrimSpace(value); !begins || !ends || !is || !slices.Contains(fields(), field) {
		return fmt.Errorf("%q is not a line of the head: write _%s: …_, use another of the fields %s, or move the text below a section", shown(text), fieldStatus, listed(fields()))
	}
	switch {
	case r.seen[field]:
		return fmt.Errorf("the field %s stands there twice: remove one", field)
	case value == "":
		return fmt.Errorf("the field %s is empty: write a value, or remove the line", field)
	}
	r.seen[field] = true
	return r.field(field, value)
}

// field of the head with its value.
func (r *reader) field(field, value string) (err error) {
	switch field {
	case fieldAuthor:
		if r.d.Author = value; utf8.RuneCountInString(value) > MaxAuthor {
			return fmt.Errorf("the field %s has more than %d characters: shorten it", field, MaxAuthor)
		}
	case fieldStatus:
		r.d.Status, err = word(field, value, StatusEstablished, StatusProvisional, StatusDeprecated)
	case fieldConfidence:
		r.d.Confidence, err = word(field, value, High, Medium, Low)
	case fieldSupersedes:
		r.d.Supersedes, err = entries(field, value, MaxSuperseded, func(other string) error {
			if _, _, err := Locate(other); err != nil {
				return fmt.Errorf("%q: %w", shown(other), err)
			}
			if other == r.d.Path {
				return errors.New("it names the document itself: name another one")
			}
			return nil
		})
	case fieldPaths:
		r.d.Paths, err = entries(field, value, MaxPaths, func(pattern string) error {
			if len(pattern) > MaxPath {
				return fmt.Errorf("%q has more than %d bytes: shorten it", shown(pattern), MaxPath)
			}
			return judge.ValidatePattern(pattern)
		})
	}
	return err
}

// word of a field that has one of a few words as its value.
func word[T ~string](field, value string, words ...T) (T, error) {
	if w := T(value); slices.Contains(words, w) {
		return w, nil
	}
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return "", fmt.Errorf("the field %s is %q: write %s", field, shown(value), listed(all))
}

// entries of a field that has a list with commas as its value, sorted and each once.
func entries(field, value string, most int, check func(string) error) (list []string, err error) {
	for entry := range strings.SplitSeq(value, ",") {
		entry = strings.Trim(strings.TrimSpace(entry), "`")
		if list = append(list, entry); len(list) > most {
			return nil, fmt.Errorf("the field %s has more than %d entries: shorten it, or divide the document", field, most)
		}
		if err := check(entry); err != nil {
			return nil, fmt.Errorf("the field %s: %w", field, err)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// done says what a whole document lacks.
func (r *reader) done() (Document, error) {
	switch {
	case r.fence != "":
		return Document{}, fmt.Errorf("a block of code does not end: write %s after it", r.fence)
	case r.d.Author == "":
		return Document{}, missing("_" + fieldAuthor + ": …_")
	case r.d.Status == "":
		return Document{}, missing("_" + fieldStatus + ": " + string(StatusProvisional) + "_")
	case len(r.d.Rules) == 0:
		return Document{}, errors.New("it has no rules: write them below ## Rules")
	case r.d.Confidence == "":
		r.d.Confidence = Medium
	}
	r.d.Examples, r.d.Rationale = trimmed(r.d.Examples), trimmed(r.d.Rationale)
	return r.d, nil
}

// trimmed are lines without the empty ones at the beginning and the end; nil if all are empty.
func trimmed(lines []string) []string {
	full := func(line string) bool { return strings.TrimSpace(line) != "" }
	first := slices.IndexFunc(lines, full)
	if first < 0 {
		return nil
	}
	last := len(lines)
	for !full(lines[last-1]) {
		last--
	}
	return lines[first:last]
}

func missing(line string) error {
	return fmt.Errorf("it lacks a line in its head: write %s before the first section", line)
}

// shown is a text of others in a reason.
func shown(text string) string { return plain.Line(text, maxShown) }

// listed are words as "a, b or c".
func listed(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
