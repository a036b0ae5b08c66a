// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import "strings"

// maxRungs of a ladder are open, at its upper end: sorted paths seldom go down further at once.
const maxRungs = 8

// ladder holds the directories from the root to where was worked last, so that sorted paths are not walked
// from the root each time.
type ladder struct {
	root dir
	// open opens one directory of another.
	open func(parent dir, name string) (dir, error)
	// path is where the ladder stands, names and dirs are its rungs. The last rung is open, and those further down are noDir.
	path  string
	names []string
	dirs  []dir
}

// to gives the directory that a path is in, and the last name of the path. The directory is the ladder's.
func (l *ladder) to(path string) (dir, string, error) {
	slash := strings.LastIndexByte(path, '/')
	parent, name := path[:max(slash, 0)], path[slash+1:]
	if parent == l.path {
		return l.top(), name, nil
	}
	var want []string
	if parent != "" {
		want = strings.Split(parent, "/")
	}
	same := 0
	for same < len(want) && same < len(l.names) && want[same] == l.names[same] {
		same++
	}
	if err := l.back(same); err != nil {
		return noDir, "", err
	}
	for _, next := range want[same:] {
		d, err := l.open(l.top(), next)
		if err != nil {
			return noDir, "", err
		}
		l.names, l.dirs = append(l.names, next), append(l.dirs, d)
		if far := len(l.dirs) - 1 - maxRungs; far >= 0 {
			l.dirs[far].close()
			l.dirs[far] = noDir
		}
		l.path = strings.Join(l.names, "/")
	}
	return l.top(), name, nil
}

// back to the given number of rungs. If the last of them is not open any more, its path is walked again.
func (l *ladder) back(rungs int) error {
	if l.drop(rungs); rungs == 0 || l.top() != noDir {
		return nil
	}
	d, err := l.root.sub(l.path)
	if err != nil {
		l.drop(0)
		return err
	}
	l.dirs[rungs-1] = d
	return nil
}

func (l *ladder) top() dir {
	if len(l.dirs) == 0 {
		return l.root
	}
	return l.dirs[len(l.dirs)-1]
}

// drop keeps the given number of rungs.
func (l *ladder) drop(keep int) {
	for _, d := range l.dirs[keep:] {
		d.close()
	}
	l.names, l.dirs = l.names[:keep], l.dirs[:keep]
	l.path = strings.Join(l.names, "/")
}

func (l *ladder) close() { l.drop(0) }
