// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
)

// Budgets of what a reviewer sees of the repository at a first look without documents, in bytes: of the outline, and of the files. Each of them gets at
// most a part of the room, and each file at least minTypical. If not all files have that, fewer are shown.
const (
	maxOutline  = 1500
	maxTypicals = 6000
	minTypical  = 400
	// maxShownKinds of a folder.
	maxShownKinds = 4
)

// Baseline is the repository before the Feature, for a reviewer that establishes and does not compare.
type Baseline struct {
	Survey

	// Texts are typical files, the best first.
	Texts []Peer
}

// Establishes says whether a reviewer that can write documents establishes at its next look, and does not compare: it has not looked before, and there is no document of its kinds. A
// document that does not keep to the format counts too, because users have begun to write.
func (r Reviewer) Establishes(look Look, s knowledge.Store) bool {
	if len(r.Knows) == 0 || look.Tree != "" || s.Closed != "" {
		return false
	}
	mine := func(path string) bool {
		return slices.ContainsFunc(r.Knows, func(k knowledge.Kind) bool {
			return strings.HasPrefix(path, knowledge.Dir+"/"+string(k)+"/") && strings.HasSuffix(path, ".md")
		})
	}
	return !slices.ContainsFunc(s.Files, func(f knowledge.File) bool { return mine(f.Path) }) &&
		!slices.ContainsFunc(s.Documents(), func(d knowledge.Document) bool { return mine(d.Path) })
}

// establishing is what a reviewer reads that establishes, with the kinds of its documents and what they are about.
const establishing = `
Nobody has written documents of the kind %s yet, so do not compare the work with any. Establish them at this look: from the files of the repository and
the changes, write down %s.
What the repository does counts as what the work has shown. Do not report that a change departs from what nobody has written down.`

// outlineIs introduces the outline of the repository.
const outlineIs = "The folders of the repository as they were before this work, with how many files they have by extension:"

// typicalAre introduces typical files.
const typicalAre = "Files of the repository as they were before this work. The supervisor has chosen them because they are typical. Report nothing about them:"

// outline of the repository, within a budget.
func (d data) outline(b *Baseline, budget int) string {
	if b == nil {
		return ""
	}
	l := list{budget: budget - len("- 1152921504606846976 files in all\n"), left: "(other folders are left out)"}
	for _, f := range b.Folders {
		var kinds []string
		for i, k := range f.Kinds {
			if i == maxShownKinds {
				kinds = append(kinds, "others")
				break
			}
			kinds = append(kinds, fmt.Sprintf("%s %d", d.name(k.Extension), k.Files))
		}
		if !l.add(fmt.Sprintf("- %s: %d (%s)", d.name(f.Path), f.Files, strings.Join(kinds, ", "))) {
			break
		}
	}
	return fmt.Sprintf("- %d files in all\n", b.Files) + l.text(b.More > 0)
}

// typical files, within a number of bytes.
func (d data) typical(b *Baseline, room int) string {
	if b == nil {
		return ""
	}
	const note = "(%d other files of the repository are left out)\n"
	room -= len(note) + len("1152921504606846976")
	shown := b.Texts[:max(min(len(b.Texts), MaxTypical, room/minTypical), 0)]
	text := d.peers(shown, room)
	if n := b.Files - len(shown); n > 0 {
		text += fmt.Sprintf(note, n)
	}
	return text
}
