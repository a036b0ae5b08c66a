// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// verify makes sure, after the thaw, that nothing had changed before the freeze without being noticed: a scan must find
// no change that may be older than the freeze. Looked holds what was looked at under the freeze. It gives the first such
// change in words, and counts the workspace.
func (h holder) verify(frozenAt moment, looked map[string]reading) (unnoticed string, err error) {
	since := func(ctime int64, path string) bool {
		if ctime < frozenAt.coarse || ctime >= frozenAt.fine {
			return ctime >= frozenAt.fine
		}
		// The two clocks cannot tell. What was looked at under the freeze is in the snapshot as it was, and an event from
		// after the freeze tells of a later change.
		_, found := looked[path]
		return found || h.engine.watcher.noticed(path)
	}
	s := h.scanner()
	s.tally = !h.tallied
	known, err := s.scan(h.known, h.engine.base)
	if err != nil {
		return "", fmt.Errorf("verify capture: %w", err)
	}
	wasClosed, problem := h.closed, h.scanProblem
	h.count(s)
	h.scanProblem = problem
	switch {
	case h.over:
		return "", nil
	case s.problem != "":
		return s.problem, nil
	case s.closed:
		if !wasClosed {
			return describe("", errUnnoticed), nil
		}
		return "", nil
	}
	for _, path := range s.dirty {
		now, before := known.lookup(path), h.known.lookup(path)
		if now == nil || before != nil && (inProgress(before.sig, now.sig) || before.mark&now.mark&denied != 0) || since(now.sig.ctime, path) {
			continue
		}
		h.setMark(path, unread)
		return describe(path, errUnnoticed), nil
	}
	return h.verifyGone(s, known, since), nil
}

// verifyGone makes sure that what is missing after the thaw went after the freeze: the directory that it was in has
// changed since. What became unreadable cannot be verified.
func (h holder) verifyGone(s *scanner, known *folder, since func(ctime int64, path string) bool) string {
	for _, path := range s.gone {
		for above := path; above != ""; {
			above = above[:max(strings.LastIndexByte(above, '/'), 0)]
			fd, err := h.engine.root.open("./"+above, unix.O_PATH, 0)
			if vanished(err) && above != "" {
				continue
			}
			if err != nil {
				return describe(path, errUnnoticed)
			}
			sig, err := fstat(fd)
			dir{fd}.close()
			if err != nil || !since(sig.ctime, path) {
				return describe(path, errUnnoticed)
			}
			break
		}
	}
	unverified := ""
	known.marked("", denied, func(path string, _ *node) {
		if n := h.known.lookup(path); unverified == "" && (n == nil || n.mark&denied == 0) {
			unverified = describe(path, errUnnoticed)
		}
	})
	return unverified
}
