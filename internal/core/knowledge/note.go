// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// Bounds of what reviewers write.
const (
	// MaxLook is how many documents one review changes.
	MaxLook = 2
	// MaxWritten is how many documents the reviewers of a Feature write, and MaxWrittenSize their bytes together.
	MaxWritten     = 32
	MaxWrittenSize = 64 << 10
	// ProvingTasks is in how many tasks a provisional document proves itself before it is established.
	ProvingTasks = 5
	// MaxWhy bounds the reason why a document does not hold any more, in characters.
	MaxWhy = 200
)

// Note is what a reviewer proposes to write down: a document, that another one does not hold any more, or both. Its texts are as a model wrote them.
type Note struct {
	Kind  string `json:"kind,omitempty"`
	Name  string `json:"name,omitempty"`
	Title string `json:"title,omitempty"`
	// Rules of the document; none if the note only contradicts another one.
	Rules []string `json:"rules,omitempty"`
	// Good and Bad are examples, usually of code.
	Good       string   `json:"good,omitempty"`
	Bad        string   `json:"bad,omitempty"`
	Rationale  string   `json:"rationale,omitempty"`
	Paths      []string `json:"paths,omitempty"`
	Supersedes []string `json:"supersedes,omitempty"`
	Confidence string   `json:"confidence,omitempty"`
	// NeedsUserReview: agents get the document once a user has merged it, and not before.
	NeedsUserReview bool `json:"needsUserReview,omitempty"`
	// Contradicts is a document that the work contradicts; nil for none.
	Contradicts *Contradiction `json:"contradicts,omitempty"`
}

// Contradiction says why a document does not hold any more.
type Contradiction struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Author of notes.
type Author struct {
	// Reviewer is its name, and Kinds the kinds of documents that it writes.
	Reviewer string
	Kinds    []Kind
	// Feature and Task after which it looks.
	Feature, Task string
}

// String is the author as the head of a document names it.
func (a Author) String() string { return plain.Line(a.Reviewer+", "+a.where(), MaxAuthor) }

// where the author looks, as a changelog names it.
func (a Author) where() string {
	if a.Task == a.Feature { // the prompt is its only task
		return a.Feature
	}
	return strings.Trim(a.Feature+"/"+a.Task, "/")
}

// Cause why a note does not count.
type Cause string

// Causes.
const (
	// NotOwned: the reviewer does not write documents of that kind.
	NotOwned Cause = "NotOwned"
	// Unfit: the document would not keep to the format, or says nothing.
	Unfit Cause = "Unfit"
	// Taken: the name is that of a document that the reviewer does not change.
	Taken Cause = "Taken"
	// Unknown: no document stands at a path that it supersedes or contradicts.
	Unknown Cause = "Unknown"
	// Unchanged: the documents say so already.
	Unchanged Cause = "Unchanged"
	// Full: there is no room for it, in the review, the Feature or the repository.
	Full Cause = "Full"
	// Closed: one of the folders of documents cannot be read, so nobody writes there.
	Closed Cause = "Closed"
	// Secret: it has something that looks like a secret.
	Secret Cause = "Secret"
)

// Causes are all of them.
func Causes() []Cause {
	return []Cause{NotOwned, Unfit, Taken, Unknown, Unchanged, Full, Closed, Secret}
}

// Store is what reviewers can read, and where they write.
type Store struct {
	// Files are all files in the folders of documents at the base.
	Files []File
	// Closed says why some of them are not known, so that nobody writes there; empty if all are.
	Closed string
	// Base has the documents at the base, and Written the documents that reviewers have written since, the newest of each path.
	Base, Written []Document
	// Unconfirmed are the paths of written documents that a user has to merge before agents get them.
	Unconfirmed []string
}

// Documents that hold: the written ones take the place of those at the base with the same path. They are sorted by kind and name.
func (s Store) Documents() []Document {
	all := slices.Clone(s.Written)
	for _, d := range s.Base {
		if find(s.Written, d.Path) == nil {
			all = append(all, d)
		}
	}
	plain.SortStable(all, func(a, b *Document) int { return byPath(a.Path, b.Path) })
	return all
}

// Confirmed is the store without unconfirmed documents. Agents get what stood at their paths before.
func (s Store) Confirmed() Store {
	s.Written = slices.DeleteFunc(slices.Clone(s.Written), func(d Document) bool { return slices.Contains(s.Unconfirmed, d.Path) })
	return s
}

// find the document with a path; nil if there is none.
func find(documents []Document, file string) *Document {
	if i := slices.IndexFunc(documents, func(d Document) bool { return d.Path == file }); i >= 0 {
		return &documents[i]
	}
	return nil
}

// document that holds at a path; nil if there is none.
func (s Store) document(file string) *Document {
	if d := find(s.Written, file); d != nil {
		return d
	}
	return find(s.Base, file)
}

// Write decides which notes of one review count, in their sequence, and returns the documents that they change. Unconfirmed are the paths of documents that a user has to merge
// before agents get them: a reviewer that writes such a document again does not confirm it. Of every other note it says why not.
func (s Store) Write(notes []Note, by Author) (changed []Document, unconfirmed []string, refused []Cause) {
	for _, n := range notes {
		next, cause := s.Apply(n, by)
		switch {
		case cause != "":
		case slices.ContainsFunc(next, func(d Document) bool { return find(changed, d.Path) != nil }):
			cause = Taken
		case len(changed)+len(next) > MaxLook:
			cause = Full
		}
		if cause != "" {
			refused = append(refused, cause)
			continue
		}
		changed = append(changed, next...)
		for _, d := range next {
			if (n.NeedsUserReview || slices.Contains(s.Unconfirmed, d.Path)) && d.Status != StatusDeprecated {
				unconfirmed = append(unconfirmed, d.Path)
			}
		}
		s.Written = s.with(next)
	}
	return changed, unconfirmed, refused
}

// with are the written documents with others.
func (s Store) with(next []Document) []Document {
	all := slices.DeleteFunc(slices.Clone(s.Written), func(d Document) bool { return find(next, d.Path) != nil })
	return append(all, next...)
}

// Apply decides what comes of a note: the documents that it changes, or the cause why it does not count. A new document is provisional, and its confidence
// is at most Medium. A reviewer changes only provisional documents that it has written itself. It deprecates any document of its kinds, and leaves the rest of it as it is.
func (s Store) Apply(n Note, by Author) (changed []Document, cause Cause) {
	if n.Contradicts == nil && len(n.Rules) == 0 {
		return nil, Unfit
	}
	if len(n.Rules) > 0 {
		d, cause := s.noted(n, by)
		if cause != "" {
			return nil, cause
		}
		changed = append(changed, d)
	}
	if c := n.Contradicts; c != nil {
		d, cause := s.deprecated(*c, by)
		switch {
		case cause != "":
			return nil, cause
		case find(changed, d.Path) != nil: // it contradicts itself
			return nil, Unfit
		}
		changed = append(changed, d)
	}
	switch {
	case s.Closed != "":
		return nil, Closed
	case !s.room(changed):
		return nil, Full
	}
	return changed, ""
}

// noted is the document of a note.
func (s Store) noted(n Note, by Author) (Document, Cause) {
	kind := Kind(n.Kind)
	switch {
	case !slices.Contains(Kinds(), kind) || !name.MatchString(n.Name):
		return Document{}, Unfit
	case !slices.Contains(by.Kinds, kind):
		return Document{}, NotOwned
	}
	d := Document{
		Path: Dir + "/" + n.Kind + "/" + n.Name + ".md", Kind: kind, Name: n.Name, Author: by.String(), Status: StatusProvisional, Confidence: bounded(n.Confidence),
		Title: strings.TrimSpace(n.Title), Rules: ruled(n.Rules), Examples: examples(n.Good, n.Bad), Rationale: lines(n.Rationale), Paths: listOf(n.Paths), Supersedes: listOf(n.Supersedes),
	}
	for _, other := range d.Supersedes {
		kind, _, err := Locate(other)
		switch {
		case err != nil:
			return d, Unfit
		case !slices.Contains(by.Kinds, kind):
			return d, NotOwned
		case s.document(other) == nil:
			return d, Unknown
		}
	}
	before, taken := s.holder(d, by)
	if taken {
		return d, Taken
	}
	what := "new"
	if before != nil {
		what, d.Changelog, d.Supersedes = "changed", before.Changelog, listOf(slices.Concat(before.Supersedes, d.Supersedes))
		same := d
		same.Author = before.Author
		if same.equal(*before) {
			return d, Unchanged
		}
	}
	d = d.logged(by, what)
	return d, d.misfit()
}

// holder of the name of a document: the provisional one of the same author that it changes, or nil. Taken says that something else has the name.
func (s Store) holder(d Document, by Author) (before *Document, taken bool) {
	for _, other := range s.Documents() {
		if other.Name == d.Name && other.Kind != d.Kind {
			return nil, true
		}
	}
	if before = s.document(d.Path); before != nil {
		return before, before.Status != StatusProvisional || !strings.HasPrefix(before.Author, by.Reviewer+", ")
	}
	return nil, slices.ContainsFunc(s.Files, func(f File) bool { return strings.EqualFold(f.Path, d.Path) })
}

// deprecated is a document that does not hold any more.
func (s Store) deprecated(c Contradiction, by Author) (Document, Cause) {
	reason := strings.TrimRight(strings.TrimSpace(c.Reason), ". ")
	kind, _, err := Locate(c.Path)
	switch {
	case err != nil || reason == "" || utf8.RuneCountInString(reason) > MaxWhy:
		return Document{}, Unfit
	case !slices.Contains(by.Kinds, kind):
		return Document{}, NotOwned
	}
	before := s.document(c.Path)
	switch {
	case before == nil:
		return Document{}, Unknown
	case before.Status == StatusDeprecated:
		return Document{}, Unchanged
	}
	d := *before
	d.Author, d.Status = by.String(), StatusDeprecated
	d = d.logged(by, string(StatusDeprecated)+": "+reason)
	return d, d.misfit()
}

// equal says whether two documents have the same values.
func (d Document) equal(o Document) bool {
	return d.Path == o.Path && d.Kind == o.Kind && d.Name == o.Name && d.Author == o.Author && d.Status == o.Status && d.Confidence == o.Confidence && d.Title == o.Title &&
		slices.Equal(d.Supersedes, o.Supersedes) && slices.Equal(d.Paths, o.Paths) && slices.Equal(d.Rules, o.Rules) &&
		slices.Equal(d.Examples, o.Examples) && slices.Equal(d.Rationale, o.Rationale) && slices.Equal(d.Changelog, o.Changelog)
}

// Establish gives the provisional documents of the author's kinds that have proved themselves their new status. Proved has in how many tasks each document has, by path. Nothing else
// of them changes.
func (s Store) Establish(proved map[string]int, by Author) (changed []Document) {
	for _, d := range s.Documents() {
		if d.Status != StatusProvisional || proved[d.Path] < ProvingTasks || !slices.Contains(by.Kinds, d.Kind) {
			continue
		}
		d.Author, d.Status = by.String(), StatusEstablished
		d = d.logged(by, fmt.Sprintf("%s: it was followed in %d tasks", StatusEstablished, proved[d.Path]))
		if d.misfit() == "" && s.room(append(slices.Clone(changed), d)) {
			changed = append(changed, d)
		}
	}
	return changed
}

// misfit says whether a document does not keep to the format. A text that ends its line or its section leads to another document.
func (d Document) misfit() Cause {
	if read, err := Parse(d.Path, []byte(d.Text())); err != nil || !read.equal(d) {
		return Unfit
	}
	return ""
}

// room says whether there is room for documents.
func (s Store) room(next []Document) bool {
	if s.Closed != "" {
		return false
	}
	read, _ := Pick(s.Files)
	size, files, written := int64(0), len(read), 0
	all := s.with(next)
	for _, f := range read {
		if find(all, f.Path) == nil { // a written document takes the place of the file
			size += f.Size
		}
	}
	for i := range all {
		written += len(all[i].Text())
		if !slices.ContainsFunc(read, func(f File) bool { return f.Path == all[i].Path }) {
			files++
		}
	}
	return len(all) <= MaxWritten && written <= MaxWrittenSize && files <= MaxDocuments && size+int64(written) <= MaxTotal
}

// bounded is a confidence as a reviewer can give it.
func bounded(proposed string) Confidence {
	if Confidence(proposed) == Low {
		return Low
	}
	return Medium
}

// ruled are rules as the lines of a list.
func ruled(rules []string) (list []string) {
	for _, rule := range rules {
		rule = strings.TrimSpace(rule)
		for _, mark := range []string{"* ", "- "} {
			rule = strings.TrimSpace(strings.TrimPrefix(rule+" ", mark))
		}
		if rule != "" {
			list = append(list, "* "+rule)
		}
	}
	return list
}

// examples as the lines of their section, each in a block of code.
func examples(good, bad string) (list []string) {
	for _, e := range []struct{ title, code string }{{"Good:", good}, {"Bad:", bad}} {
		code := trimmed(strings.Split(e.code, "\n"))
		if code == nil {
			continue
		}
		if list != nil {
			list = append(list, "")
		}
		fence := "```"
		if strings.Contains(e.code, fence) {
			fence = "~~~"
		}
		list = append(append(append(list, e.title, "", fence), code...), fence)
	}
	return list
}

// lines of a text, without the empty ones at its ends; nil if it has no other.
func lines(text string) []string { return trimmed(strings.Split(text, "\n")) }

// listOf entries, sorted and each once; nil if there are none.
func listOf(entries []string) []string {
	var list []string
	for _, e := range entries {
		if e = strings.Trim(strings.TrimSpace(e), "`"); e != "" {
			list = append(list, e)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
