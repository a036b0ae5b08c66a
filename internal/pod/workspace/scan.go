// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

const (
	// gitDir at the root is the agent's own repository: counted, never captured.
	gitDir = ".git"
	// maxDepth bounds how deep a scan goes. Source trees have some 20 levels.
	maxDepth = 256
	// maxKept bounds the directories that all readers of a scan keep open while they are below them: the other half of what a watchdog may have open is for
	// the rest of it. Each reader has one more open, which it reads.
	maxKept = protocol.WatchdogDescriptors / 2
	// maxPath is the longest path that a call of the kernel takes, without its NUL.
	maxPath = 4095
	// averagePath is how many bytes a path may have on average: all paths together may have this number for each entry that may be visited.
	// Paths of the Linux kernel's sources have 40. Each path is in memory several times.
	averagePath = 128
)

var (
	// errTooMany ends a scan that met more entries, or more bytes of paths, than it may visit.
	errTooMany = errors.New("too many files and directories")
	// errDenied says that the agent's permissions, or the depth, keep a directory from being read.
	errDenied = errors.New("cannot be read")
)

// ignoreFunc tells which candidates the base's rules ignore.
type ignoreFunc func(context.Context, []git.Candidate) ([]bool, error)

// survey is what the scanners of one scan have in common.
type survey struct {
	ctx    context.Context //nolint:containedctx // lives for one call, and every step of it is asked to end with it
	root   dir
	ignore ignoreFunc
	// limit of entries to visit, readLimit of bytes that a file may have to be captured, countLimit of files that are
	// counted and not captured.
	limit      int64
	readLimit  int64
	countLimit int64
	owner      *owner
	// tree of the last capture tells the size of a file that is too large to be read again without need.
	tree *objects.Tree
	// all says that signatures are not believed: every file is dirty.
	all bool
	// tally says that what cannot be captured is visited too, to be counted.
	tally bool
	// grant opens directories that the agent made unreadable; only while it is frozen or absent.
	grant bool
	// seen is called with every captured directory, before it is read, so that it is watched; may be nil.
	seen func(path string, d dir)
	// partial is true when the scan ended early, closed when the root itself cannot be read.
	partial, closed bool

	// entries that were visited, pathBytes of them, counted are files of other.
	entries, pathBytes, counted atomic.Int64
	// kept is how many directories stay open for work below them.
	kept atomic.Int64
	// hands has room for every scanner that may help.
	hands chan struct{}
	mu    sync.Mutex
	// idle are listings that a helper has left behind.
	idle [][]*listing
}

// scanner compares the workspace with what is known of it, or a part of it: a survey has as many at work as there are
// processors.
type scanner struct {
	*survey

	// dirty paths are to be read; gone paths are to leave the tree.
	dirty []string
	gone  []string
	// captured counts what can be captured, other what cannot (ignored, nested repositories, the root's .git).
	captured, other judge.Workspace
	// problem says why the scan is not the whole truth, if it is not.
	problem string
	levels  []*listing
}

// class is what is to be done with a name.
type class uint8

const (
	// unclassified: git has to be asked.
	unclassified class = iota
	include
	ignore
	// nested is a .git in any spelling below the root.
	nested
	// own is the agent's repository at the root.
	own
)

// place is where in the tree a scan is.
type place struct {
	// dir is noDir where the directory is not open any more.
	dir dir
	// prefix is the directory's path with its '/'; empty for the root.
	prefix string
	// base is the same directory in the base; nil where it has none.
	base  *objects.Tree
	depth int
}

// scan visits the whole workspace and gives what is known of it now.
func (s *scanner) scan(known *folder, base *objects.Tree) (*folder, error) {
	if s.grant {
		// Best effort: where it is not ours to change, reading it fails and says so.
		_ = grant(s.root)
	}
	// A descriptor of its own: directories are read from where the last reader stopped.
	d, err := s.root.sub(".")
	if isDenied(err) {
		s.closed = true
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	result, err := s.visit(place{dir: d, base: base}, known)
	switch {
	case errors.Is(err, errTooMany):
		s.partial = true
		return known, nil
	case errors.Is(err, errDenied):
		s.closed = true
		return known, nil
	}
	return result, err
}

// isDenied tells whether an error says that permissions, or a path that is too long, keep something from being read.
func isDenied(err error) bool {
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, errDenied)
}

// tooDeep tells whether a path is beyond what is looked at, whatever its permissions are.
func tooDeep(path string) bool {
	return strings.Count(path, "/")+1 >= maxDepth || len(path) > maxPath
}

// visit scans one directory, which it closes, and everything below it.
func (s *scanner) visit(at place, known *folder) (*folder, error) {
	defer func() { at.dir.close() }()
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	if at.depth > 0 && tooDeep(strings.TrimSuffix(at.prefix, "/")) {
		return nil, errDenied
	}
	if s.seen != nil {
		s.seen(strings.TrimSuffix(at.prefix, "/"), at.dir)
	}
	list := s.level(at.depth)
	err := list.list(at.dir, s.limit-s.entries.Load())
	n := int64(len(list.entries))
	if s.entries.Add(n) > s.limit || s.pathBytes.Add(n*int64(len(at.prefix))+int64(len(list.arena))) > s.limit*averagePath {
		err = errTooMany
	}
	if errors.Is(err, errTooMany) {
		s.captured.Files += int64(len(list.entries))
		return nil, err
	}
	if err != nil {
		s.trouble(at.prefix, err)
		return known, nil
	}
	for i := range list.entries {
		// Without the right to search a directory, its names can be read and nothing else.
		if errors.Is(list.entries[i].err, unix.EACCES) {
			return nil, errDenied
		}
	}
	return s.compare(&at, known, list, true)
}

// level gives the listing for a depth; deeper directories are read while those above are still in use.
func (s *scanner) level(depth int) *listing {
	for len(s.levels) <= depth {
		s.levels = append(s.levels, &listing{})
	}
	return s.levels[depth]
}

// compare goes through a listing side by side with what is known of the directory. If the listing is not the whole
// directory, what is known of other names stays. The result is known itself as long as nothing differs. The directory is
// closed once it is not needed any more.
func (s *scanner) compare(at *place, known *folder, list *listing, whole bool) (*folder, error) {
	if err := s.classify(*at, known, list); err != nil {
		return nil, err
	}
	var before []node
	if known != nil {
		before = known.nodes
	}
	for i := range list.entries {
		e := &list.entries[i]
		name := list.name(e)
		for len(before) > 0 && before[0].name < string(name) {
			s.pass(at.prefix, &before[0], list, whole)
			before = before[1:]
		}
		var old *node
		if len(before) > 0 && before[0].name == string(name) {
			old = &before[0]
			before = before[1:]
		}
		s.step(*at, list, e, old)
	}
	for i := range before {
		s.pass(at.prefix, &before[i], list, whole)
	}
	if len(list.below) > 0 {
		kept := s.keep(at)
		err := s.descend(*at, list)
		s.release(kept)
		if err != nil {
			return nil, err
		}
	}
	return settle(known, list.nodes, s.owner), nil
}

// pass deals with a known name that is not in the listing.
func (s *scanner) pass(prefix string, n *node, list *listing, whole bool) {
	if whole {
		s.lose(prefix, n)
	} else {
		list.nodes = append(list.nodes, *n)
	}
}

// settle gives the folder with these nodes: known itself where they are the same.
func settle(known *folder, nodes []node, o *owner) *folder {
	if known != nil && len(known.nodes) == len(nodes) {
		same := true
		for i := range nodes {
			if known.nodes[i] != nodes[i] {
				same = false
				break
			}
		}
		if same {
			return known
		}
	}
	return &folder{nodes: append(make([]node, 0, len(nodes)), nodes...), owner: o}
}

// step decides about one name.
func (s *scanner) step(at place, list *listing, e *listed, old *node) {
	name := list.name(e)
	if errors.Is(e.err, unix.ENOENT) {
		// It went between listing and looking, or it is a requested name.
		if old != nil {
			s.lose(at.prefix, old)
		}
		return
	}
	if e.err != nil {
		s.trouble(at.prefix+string(name), e.err)
		if old != nil {
			list.nodes = append(list.nodes, *old)
		}
		return
	}
	if e.class == own {
		s.count(at, string(name), e.sig, e.held)
		return
	}
	n := node{name: shared(name, old), sig: e.sig}
	if e.sig.isDir() && e.class == include {
		s.stepDir(at.prefix, list, n, old)
		return
	}
	if old != nil && old.sub != nil {
		s.lose(at.prefix, old)
		old = nil
	}
	switch {
	case e.class == ignore:
		// Kept without a signature: it does not matter whether it changes.
		n.sig = signature{mode: e.sig.mode}
		n.mark = ignored
	case e.class == nested, !e.sig.isRegular() && !e.sig.isLink():
		n.mark = outside
	default:
		s.stepFile(at.prefix, &n, old, e.held)
		list.nodes = append(list.nodes, n)
		return
	}
	s.count(at, string(name), e.sig, e.held)
	if old != nil {
		s.loseFile(at.prefix+n.name, old, n.mark)
	}
	list.nodes = append(list.nodes, n)
}

// shared gives the name as a string: the one that is known already, so that a scan allocates nothing for it.
func shared(name []byte, old *node) string {
	if old != nil {
		return old.name
	}
	return string(name)
}

// stepFile decides whether a file or link has to be read. Held is how many bytes the volume has for it.
func (s *scanner) stepFile(prefix string, n, old *node, held int64) {
	if n.sig.isRegular() && n.sig.links > 1 {
		n.mark |= linked
	}
	large := n.sig.isRegular() && n.sig.size > s.readLimit
	same := old != nil && old.sig == n.sig
	path := prefix + n.name
	switch {
	case same && old.mark&outside != 0 && (large || n.sig.isLink()),
		large && !(same && old.mark&(again|outside) == 0) && !s.mayBeHeld(path, n.sig.size):
		n.mark |= outside
		s.other.Files++
		s.other.Bytes += held
		if old != nil {
			s.loseFile(path, old, outside)
		}
		return
	}
	s.captured.Files++
	if n.sig.isRegular() {
		s.captured.Bytes += n.sig.size
	}
	if same && old.mark&(again|outside) == 0 && !s.all {
		n.mark |= old.mark
		return
	}
	n.mark |= unread
	if old != nil {
		n.mark |= old.mark & denied
	}
	s.dirty = append(s.dirty, path)
}

// mayBeHeld tells whether a file that is too large to be captured may be one that the tree holds already, such as a
// large file of the base: then it is hashed, and nothing more.
func (s *scanner) mayBeHeld(path string, size int64) bool {
	e := s.tree.Lookup(path)
	return e != nil && e.Mode&unix.S_IFMT == unix.S_IFREG && e.Size == size
}

// stepDir notes a directory that is captured, to be visited when all of its siblings are known.
func (s *scanner) stepDir(prefix string, list *listing, n node, old *node) {
	n.sig = signature{mode: n.sig.mode}
	if old != nil {
		n.sub = old.sub
		if old.sub == nil {
			s.loseFile(prefix+n.name, old, 0)
		}
	}
	list.below = append(list.below, len(list.nodes))
	list.nodes = append(list.nodes, n)
}

// lose notes that a name and all below it have gone.
func (s *scanner) lose(prefix string, n *node) {
	if n.sub == nil {
		s.loseFile(prefix+n.name, n, 0)
		return
	}
	n.sub.walk(prefix+n.name+"/", func(path string, n *node) { s.loseFile(path, n, 0) })
}

// loseFile notes that what was captured at a path has to leave the tree. What keeps a mark that it had is not new.
func (s *scanner) loseFile(path string, n *node, keeps mark) {
	if n.mark&ignored == 0 && (keeps == 0 || n.mark&keeps == 0) {
		s.gone = append(s.gone, path)
	}
}

// trouble notes the first reason for which the scan is not the whole truth.
func (s *scanner) trouble(path string, err error) {
	if s.problem == "" {
		s.problem = describe(path, err)
	}
}

// describe names a path, escaped, and what is wrong with it.
func describe(path string, err error) string {
	var failed interface{ Unwrap() error }
	if errors.As(err, &failed) && failed.Unwrap() != nil {
		err = failed.Unwrap()
	}
	return strconv.QuoteToASCII(strings.TrimSuffix(path, "/")) + ": " + err.Error()
}
