// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// classify decides for every name of a listing whether it is captured. What was decided before stays so, because the
// base's rules never change; what the base tracks is captured whatever its rules say; git decides about the rest, once for the whole directory.
func (s *scanner) classify(at place, known *folder, list *listing) error {
	var ask []git.Candidate
	var asked []*listed
	for i := range list.entries {
		e := &list.entries[i]
		if e.err != nil {
			continue
		}
		if e.class = classOf(at, known, list.name(e), e.sig.isDir()); e.class == unclassified {
			ask = append(ask, git.Candidate{Path: at.prefix + string(list.name(e)), Dir: e.sig.isDir()})
			asked = append(asked, e)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	s.mu.Lock()
	ignored, err := s.ignore(s.ctx, ask)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for i, e := range asked {
		e.class = include
		if ignored[i] {
			e.class = ignore
		}
	}
	return nil
}

// classOf decides without git where that is possible.
func classOf(at place, known *folder, name []byte, isDir bool) class {
	if at.prefix == "" && string(name) == gitDir {
		return own
	}
	if i, found := known.find(string(name)); found && known.nodes[i].sig.isDir() == isDir {
		// Rules that end in '/' match only directories, so git decides again about a name that became one, or ceased to be.
		switch old := &known.nodes[i]; {
		case old.mark&ignored != 0:
			return ignore
		case old.mark&outside != 0 && judge.IsGitDir(old.name):
			return nested
		default:
			return include
		}
	}
	if base := at.base.Child(string(name)); base != nil && (base.Mode == objects.ModeTree || base.Mode == objects.ModeGitlink) == isDir {
		return include
	}
	if judge.IsGitDir(string(name)) {
		return nested
	}
	return unclassified
}

// count counts what is not captured: one name and, when asked for, all below it. What cannot be looked at is not
// counted; the volume's own size bounds it. Held is how many bytes the volume has for it.
func (s *scanner) count(at place, name string, sig signature, held int64) {
	switch {
	case sig.isDir():
		if s.tally {
			s.countDir(at, name)
		}
		return
	case sig.isRegular():
		s.other.Bytes += held
	}
	s.other.Files++
	s.counted.Add(1)
}

// maxUnkept bounds the directories of one level that are counted where the level is not kept open: their names are kept instead.
const maxUnkept = 256

// countDir counts what is below a directory, as it comes: nothing of it is kept, and more than the limit is not counted.
func (s *scanner) countDir(parent place, name string) {
	d, err := s.open(parent, name, dir.sub)
	if err != nil {
		return
	}
	at := place{dir: d, prefix: parent.prefix + name + "/", depth: parent.depth + 1}
	defer func() { at.dir.close() }()
	if at.depth >= maxDepth {
		return
	}
	kept := s.room()
	defer s.release(kept)
	var below []string
	// The buffers of deeper levels are free while a name of this one is looked at. What fails is not counted.
	_ = d.names(s.level(at.depth).room(), func(name []byte) error {
		if s.counted.Load() > s.countLimit {
			return errTooMany
		}
		sig, held, err := statName(d, &name[0])
		switch {
		case err != nil: // it is gone, or nobody can look at it
		case !sig.isDir():
			s.count(at, "", sig, held)
		case kept:
			s.count(at, string(name), sig, held)
		case len(below) < maxUnkept:
			below = append(below, string(name))
		}
		return nil //nolint:nilerr // what cannot be looked at is not counted
	})
	if kept {
		return
	}
	at.dir.close()
	at.dir = noDir
	for _, name := range below {
		s.countDir(at, name)
	}
}
