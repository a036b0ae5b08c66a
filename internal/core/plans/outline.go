// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

const (
	// MaxOutline bounds an outline, in bytes: 4,000 tokens of 4 bytes.
	MaxOutline = 16 << 10
	// MaxReadme is how much of the README an outline quotes, in bytes.
	MaxReadme = 4 << 10
	// maxKinds of files, and maxKindName, the length of an extension in bytes.
	maxKinds    = 16
	maxKindName = 12
	// maxPath bounds a path in an outline, in bytes.
	maxPath = 200
)

// File of the base.
type File struct {
	Path string
	Size int64
}

// mark is before each line that comes from the repository.
const mark = "| "

// Outline describes the base to a planner: how many files of which kind, paths with their sizes, the shallowest first, and the head of the
// README. It is at most MaxOutline bytes, and says what it leaves out. Everything from the repository has a mark before each line.
func Outline(files []File, readme string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d files. Kinds: %s.\n", len(files), kinds(files))
	if readme = strings.TrimSpace(readme); readme != "" {
		b.WriteString("\nThe head of the README:\n")
		for line := range strings.Lines(plain.CutBytes(string(plain.Append(nil, []byte(readme))), MaxReadme)) {
			b.WriteString(mark + strings.TrimRight(line, "\n") + "\n")
		}
	}
	if len(files) == 0 {
		return b.String()
	}
	b.WriteString("\nPaths with their sizes in bytes:\n")
	order := slices.Clone(files)
	slices.SortFunc(order, func(a, c File) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(c.Path, "/")), cmp.Compare(a.Path, c.Path))
	})
	const rest = len("(1000000 more paths are left out)\n")
	for i, f := range order {
		line := mark + name(f.Path) + " " + strconv.FormatInt(f.Size, 10) + "\n"
		if b.Len()+len(line)+rest > MaxOutline {
			fmt.Fprintf(&b, "(%d more paths are left out)\n", len(order)-i)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// name of a path, which a hostile repository has chosen.
func name(p string) string {
	quoted := strconv.Quote(plain.CutBytes(p, maxPath))
	if inner := quoted[1 : len(quoted)-1]; inner == p && !strings.Contains(p, " ") {
		return p
	}
	return quoted
}

// kinds of files by their extensions, the most frequent first.
func kinds(files []File) string {
	count := map[string]int{}
	for _, f := range files {
		kind := path.Ext(f.Path)
		if len(kind) > maxKindName || strings.IndexFunc(kind, func(r rune) bool { return r > '~' || r <= ' ' }) >= 0 || kind == "" || kind == "." {
			kind = "other"
		}
		count[kind]++
	}
	names := make([]string, 0, len(count))
	for kind := range count {
		names = append(names, kind)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	var list []string
	for _, kind := range plain.CutList(names, maxKinds) {
		list = append(list, fmt.Sprintf("%s %d", kind, count[kind]))
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
