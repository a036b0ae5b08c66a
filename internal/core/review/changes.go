// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// Change of one file.
type Change struct {
	Path string
	Kind judge.Kind
	// Diff has the hunks of the file in Git's unified format. What stands before the first hunk does not count. It is empty if no line of the file can be
	// shown: the file is empty, too large, or not text.
	Diff string
	// Size of the file now, in bytes.
	Size int64
}

// Left is what there was no room for before a scene was made.
type Left struct {
	// Files whose changes are not in the scene, and Bytes of changes that are missing, as far as they are known.
	Files int
	Bytes int64
}

const (
	// maxRow bounds a line of a file, in bytes: what is longer was written by a program.
	maxRow = 300
	// minShare is the smallest part of the room that is worth showing of a file, in bytes.
	minShare = 800
	// maxUnseen bounds what is said about files of which nothing is shown, in bytes.
	maxUnseen = 1000
)

// changes within a number of bytes. Every file gets the same share of the room, and larger files get what small ones do not use: a large file hides
// no other. If there is not room for all, the nonce decides which are shown, so that an agent cannot hide a file behind others. The rest is named.
func (d data) changes(all []Change, left Left, room int) string {
	room -= maxUnseen
	picked, rest, unseen := d.pick(all, room)
	plain.SortStable(picked, func(a, b *Change) int {
		return cmp.Or(cmp.Compare(len(a.Diff), len(b.Diff)), cmp.Compare(a.Path, b.Path))
	})
	var seen []shown
	show := func(c Change, share int) {
		text := d.file(c, share)
		if text == "" {
			unseen = append(unseen, c)
			return
		}
		seen, room = append(seen, shown{c.Path, text}), room-len(text)
	}
	for i, c := range picked {
		show(c, room/(len(picked)-i))
	}
	for _, c := range rest {
		show(c, room)
	}
	plain.SortStable(seen, func(a, b *shown) int { return cmp.Compare(a.path, b.path) })
	plain.SortStable(unseen, func(a, b *Change) int { return cmp.Compare(a.Path, b.Path) })
	var b strings.Builder
	for _, s := range seen {
		b.WriteString(s.text)
	}
	b.WriteString(d.unseen(unseen, left))
	if b.Len() == 0 {
		return "(none)"
	}
	return b.String()
}

// shown is a file with what is shown of it.
type shown struct{ path, text string }

// pick the files to show: as many as the room has minShare for, or less for smaller files. There is nothing to show of others that have no lines now.
func (d data) pick(all []Change, room int) (picked, rest, bare []Change) {
	chance := make(map[string][sha256.Size]byte, len(all))
	for _, c := range all {
		chance[c.Path] = sha256.Sum256([]byte(d.nonce + c.Path))
	}
	order := slices.Clone(all)
	plain.SortStable(order, func(a, b *Change) int {
		x, y := chance[a.Path], chance[b.Path]
		return bytes.Compare(x[:], y[:])
	})
	for _, c := range order {
		least := min(minShare, maxName+2*len(c.Diff)) // a row is longer than its line
		switch {
		case c.Kind == judge.Deleted || c.Diff == "":
			bare = append(bare, c)
		case least > room:
			rest = append(rest, c)
		default:
			picked, room = append(picked, c), room-least
		}
	}
	return picked, rest, bare
}

// file is as much of a file as has room; empty if that is not even its first line. Of a file that has no room, it is the beginning and a part that the nonce
// draws, so that an agent cannot hide lines behind others.
func (d data) file(c Change, room int) string {
	const note, gap = "(%d more lines of this file are left out)\n", "  ...\n"
	head := fmt.Sprintf("== %s (%s)\n", d.name(c.Path), d.line(string(c.Kind), maxName))
	if len(head) > room {
		return ""
	}
	if all, _, left := d.some(c.Diff, 0, room-len(head)); left == 0 {
		return head + all
	}
	room -= len(head) + len(note) + len(strconv.Itoa(len(c.Diff)))
	text, shown, left := d.some(c.Diff, 0, room/2)
	if shown == 0 {
		text, shown, left = d.some(c.Diff, 0, room)
	}
	if shown == 0 {
		return ""
	}
	skip := d.draw(c.Path, left-shown)
	if part, more, after := d.some(c.Diff, shown+skip, room-len(text)-len(gap)); more > 0 {
		if skip > 0 {
			text += gap
		}
		text, left = text+part, skip+after
	}
	return head + text + fmt.Sprintf(note, left)
}

// some rows of a diff, from one on, as many as have room; shown is how many these are, and left how many come after them.
func (d data) some(diff string, from, room int) (text string, shown, left int) {
	var b strings.Builder
	at := -1
	for line, said := range rows(diff) {
		if at++; at < from {
			continue
		}
		if left > 0 { // a large file has many more lines than there is room for
			left++
			continue
		}
		row := d.row(numbered(line, said))
		if b.Len()+len(row) > room {
			left++
			continue
		}
		b.WriteString(row)
		shown++
	}
	return b.String(), shown, left
}

// draw a number from 0 to most for a file, by the nonce.
func (d data) draw(path string, most int) int {
	if most <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(path + d.nonce))
	return int(binary.BigEndian.Uint32(sum[:4])>>1) % (most + 1)
}

// row of a file as a reviewer sees it: characters that cannot be seen are written as JSON writes them.
func (d data) row(text string) string {
	text = d.without(string(plain.Append(nil, []byte(plain.CutBytes(text, maxRow)))))
	return plain.CutBytes(text, maxRow) + "\n"
}

// Rows that have no number: a line that is gone, and what stands between two hunks.
const gone, between = -1, -2

// numbered is a row as a reviewer reads it.
func numbered(line int, text string) string {
	switch line {
	case gone:
		return "      " + text
	case between:
		return "  " + text
	}
	return fmt.Sprintf("%5d %s", line, text)
}

// rows of a diff, each with the number of its line in the new file, or gone or between.
func rows(diff string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		line, inside := 0, false
		for text := range strings.Lines(diff) {
			text = strings.TrimRight(text, "\r\n")
			more := true
			switch {
			case strings.HasPrefix(text, "@@ "):
				if inside {
					more = yield(between, "...")
				}
				line, inside = first(text), true
			case !inside, strings.HasPrefix(text, `\`):
			case strings.HasPrefix(text, "-"):
				more = yield(gone, text)
			case strings.HasPrefix(text, "+"), strings.HasPrefix(text, " "), text == "":
				if text == "" { // some tools write an empty line of context so
					text = " "
				}
				more = yield(line, text)
				line++
			}
			if !more {
				return
			}
		}
	}
}

// hasRows says whether a diff has lines of the file. That of a binary file has none.
func hasRows(diff string) (has bool) {
	rows(diff)(func(int, string) bool { has = true; return false })
	return has
}

// first line of a hunk in the new file, by its header such as "@@ -1,3 +1,4 @@"; 0 if it has none.
func first(header string) int {
	_, after, _ := strings.Cut(header, " +")
	digits := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.Atoi(after[:max(digits, 0)])
	if err != nil {
		return 0
	}
	return n
}

// unseen names files of which nothing is shown, in maxUnseen bytes.
func (d data) unseen(files []Change, left Left) string {
	var b strings.Builder
	if len(files) > 0 {
		b.WriteString("Other files that have changed, without their lines:\n")
	}
	const more = "- and %d others\n"
	const before = "The supervisor has left out the changes of %d more files, and %d bytes of changes.\n"
	const number = len("9223372036854775807")
	for i, f := range files {
		line := fmt.Sprintf("- %s (%s)\n", d.name(f.Path), d.line(string(f.Kind), maxName))
		if b.Len()+len(line) > maxUnseen-len(before)-len(more)-3*number {
			fmt.Fprintf(&b, more, len(files)-i)
			break
		}
		b.WriteString(line)
	}
	if left.Files > 0 || left.Bytes > 0 {
		fmt.Fprintf(&b, before, left.Files, left.Bytes)
	}
	return b.String()
}

// Changed are the changes of a list with what a patch in Git's unified format says of them. It has the whole IDs of files, and no renames.
func Changed(list []judge.Change, patch string) []Change {
	diffs := map[[2]string][]string{}
	for part := range parts(patch) {
		ids := idsOf(part)
		diffs[ids] = append(diffs[ids], part)
	}
	all := make([]Change, 0, len(list))
	for _, c := range list {
		change := Change{Path: c.Path, Kind: c.Kind, Size: c.New.Size}
		ids := [2]string{c.Old.ID, c.New.ID}
		if of := diffs[ids]; len(of) > 0 && hasRows(of[0]) { // files with the same content before and after differ in the same way
			change.Diff = of[0]
		}
		all = append(all, change)
	}
	return all
}

// parts of a patch, one for each file.
func parts(patch string) iter.Seq[string] {
	const begins = "diff --git "
	return func(yield func(string) bool) {
		for patch != "" {
			end := strings.Index(patch, "\n"+begins)
			part := patch
			if patch = ""; end >= 0 {
				part, patch = part[:end+1], part[end+1:]
			}
			if strings.HasPrefix(part, begins) && !yield(part) {
				return
			}
		}
	}
}

// idsOf the file before and after, from the line "index before..after" of a part.
func idsOf(part string) (ids [2]string) {
	for line := range strings.Lines(part) {
		if strings.HasPrefix(line, "@@ ") {
			break
		}
		if text, is := strings.CutPrefix(line, "index "); is {
			text, _, _ = strings.Cut(strings.TrimSpace(text), " ")
			before, after, _ := strings.Cut(text, "..")
			ids = [2]string{known(before), known(after)}
		}
	}
	return ids
}

// known is an ID, and empty for the zeros that stand for no file.
func known(id string) string {
	if strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}
