// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"runtime"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
)

// descend visits the directories of a listing. A free hand takes the next of them, so that a tree is looked at
// by as many readers as there are processors; what they find is put together when all are back.
func (s *scanner) descend(at place, list *listing) error {
	var group sync.WaitGroup
	var helpers []*scanner
	var mu sync.Mutex
	var failure error
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if failure == nil {
			failure = err
		}
	}
	failed := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return failure != nil
	}
	for _, n := range list.below {
		if failed() {
			break
		}
		select {
		case s.hands <- struct{}{}:
			h := s.helper()
			helpers = append(helpers, h)
			group.Go(func() {
				if err := h.enter(at, list, n); err != nil {
					fail(err)
				}
				h.dismiss()
				<-s.hands
			})
		default:
			if err := s.enter(at, list, n); err != nil {
				fail(err)
			}
		}
	}
	group.Wait()
	for _, h := range helpers {
		s.merge(h)
	}
	return failure
}

// newHands has room for all processors but the one that the first scanner runs on.
func newHands() chan struct{} { return make(chan struct{}, runtime.GOMAXPROCS(0)-1) }

// helper is a scanner for a part of the tree.
func (s *scanner) helper() *scanner {
	h := &scanner{survey: s.survey}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.idle) - 1; last >= 0 {
		h.levels, s.idle = s.idle[last], s.idle[:last]
	}
	return h
}

// dismiss leaves the listings for the next helper.
func (s *scanner) dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle, s.levels = append(s.idle, s.levels), nil
}

// merge takes over what a helper found.
func (s *scanner) merge(h *scanner) {
	s.dirty, s.gone = append(s.dirty, h.dirty...), append(s.gone, h.gone...)
	s.captured, s.other = sum(s.captured, h.captured), sum(s.other, h.other)
	if s.problem == "" {
		s.problem = h.problem
	}
}

func sum(a, b judge.Workspace) judge.Workspace {
	return judge.Workspace{Files: a.Files + b.Files, Bytes: a.Bytes + b.Bytes}
}

// keep decides whether a directory stays open while what is below it is visited, and closes it if not. All readers together
// keep maxKept: deep trees would otherwise take a descriptor for each level and reader.
func (s *scanner) keep(at *place) (kept bool) {
	if kept = s.room(); !kept {
		at.dir.close()
		at.dir = noDir
	}
	return kept
}

// room says whether one more directory may be kept open, and counts it.
func (s *scanner) room() bool {
	if s.kept.Add(1) <= maxKept {
		return true
	}
	s.kept.Add(-1)
	return false
}

// release makes room for another directory.
func (s *scanner) release(kept bool) {
	if kept {
		s.kept.Add(-1)
	}
}

// open a directory of a place: from the place, or by its whole path where the place is not open any more. No link is followed
// either way.
func (s *scanner) open(at place, name string, open func(parent dir, path string) (dir, error)) (dir, error) {
	if at.dir == noDir {
		return open(s.root, at.prefix+name)
	}
	return open(at.dir, name)
}

// enter visits one directory of a listing.
func (s *scanner) enter(at place, list *listing, index int) error {
	n := &list.nodes[index]
	open := dir.sub
	if s.grant {
		open = openGranted
	}
	path := at.prefix + n.name
	d, err := s.open(at, n.name, open)
	if err == nil {
		below := place{dir: d, prefix: path + "/", depth: at.depth + 1}
		if base := at.base.Child(n.name); base != nil {
			below.base = base.Tree
		}
		var sub *folder
		sub, err = s.visit(below, n.sub)
		switch {
		case err == nil:
			n.sub = sub
		case !errors.Is(err, errDenied):
			return err
		}
	}
	switch {
	case isDenied(err):
		// What is known stays known: a directory that cannot be read must not pass for an empty one.
		n.mark = denied
	case err != nil:
		s.trouble(path, err)
	}
	if n.sub == nil {
		n.sub = &folder{owner: s.owner}
	}
	return nil
}
