// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
)

// maxDirectories is how many directories that came and went a capture checks. Git finds out on the disk that a name is a directory's:
// 60,000 of them took 44 s where as many files took less than one.
const maxDirectories = sweepBatch

// Transient are names that the watcher saw appear and disappear: neither the last recorded capture nor this one has them. Their content is unknown.
type Transient struct {
	// Names are the first ones, at most protocol.MaxTransient, as the file system has them. A directory stands for all that was in it.
	Names []string
	// More counts the names that are not listed.
	More int64
	// Incomplete is true when there may be others: events were lost, or the watcher did not watch everything.
	Incomplete bool
}

// add names that came and went later. A name that is listed already is not listed again.
func (t *Transient) add(names ...string) {
	for _, name := range names {
		switch {
		case slices.Contains(t.Names, name):
		case len(t.Names) < protocol.MaxTransient:
			t.Names = append(t.Names, name)
		default:
			t.More++
		}
	}
}

// join adds what came and went later.
func (t *Transient) join(later Transient) {
	t.add(later.Names...)
	t.More += later.More
	t.Incomplete = t.Incomplete || later.Incomplete
}

// passed gives what was taken from the watcher as names that came and went: removed names that neither the capture knows nor any of the
// folders before it. What the base's rules ignore is left out.
func (c *capture) passed(before ...*folder) (Transient, error) {
	t := Transient{Incomplete: c.events.partial}
	if c.over {
		// Nothing was read: what is not known may be there.
		t.Incomplete = t.Incomplete || len(c.events.gone) > 0
		return t, nil
	}
	known := slices.Concat(before, []*folder{c.known})
	var names []git.Candidate
	gone := slices.Clone(c.events.gone)
	slices.SortFunc(gone, func(a, b git.Candidate) int { return strings.Compare(a.Path, b.Path) })
	directories := 0
	for _, name := range slices.CompactFunc(gone, func(a, b git.Candidate) bool { return a.Path == b.Path }) {
		if !cameAndWent(name.Path, known) {
			continue
		}
		if name.Dir {
			if directories++; directories > maxDirectories {
				t.Incomplete = true
				continue
			}
		}
		names = append(names, name)
	}
	// As many at once as a restore asks about: git gets a directory for each candidate that was one.
	for some := range slices.Chunk(names, sweepBatch) {
		ignored, err := c.engine.ignore.Match(c.ctx, some)
		if err != nil {
			return Transient{}, fmt.Errorf("tell ignored files: %w", err)
		}
		for i, name := range some {
			if !ignored[i] || c.engine.alwaysCaptured(name.Path) {
				t.add(name.Path)
			}
		}
	}
	return t, nil
}

// cameAndWent tells whether none of the folders has a path, and one of them the directory that it was in: one that came and went itself stands for
// what was in it.
func cameAndWent(name string, known []*folder) bool {
	has := func(path string, directory bool) bool {
		return slices.ContainsFunc(known, func(f *folder) bool {
			n := f.lookup(path)
			return n != nil && (n.sub != nil || !directory)
		})
	}
	above := path.Dir(name)
	return !has(name, false) && (above == "." || has(above, true))
}

// alwaysCaptured tells whether no rule of the base hides a name; see classOf.
func (e *Engine) alwaysCaptured(name string) bool {
	return judge.IsGitDir(path.Base(name)) || e.base.Lookup(name) != nil
}

// keepTransient adds what a capture has found to the names that no checkpoint has told of yet. Those that are back are not gone.
func (e *Engine) keepTransient(found Transient) Transient {
	e.transient.join(e.restored)
	e.restored = Transient{}
	e.transient.join(found)
	e.transient.Names = slices.DeleteFunc(e.transient.Names, func(name string) bool { return e.known.lookup(name) != nil })
	t := e.transient
	t.Names = slices.Clone(t.Names)
	return t
}

// Recorded says that the last capture is recorded: the names in its Snapshot.Transient are reported, and the engine compares later names
// with this capture. Delay starts again from zero.
func (e *Engine) Recorded() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.transient, e.recorded = Transient{}, e.known
	e.watcher.longest(true)
}
