// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

const (
	defaultReadLimit  = 256 << 20
	defaultMaxEntries = 1_000_000
	// maxIgnoreFile bounds an ignore file of the base, in bytes; git itself reads no larger ones since 2.45.
	maxIgnoreFile = 100 << 20
)

// errNoBase is returned before Reset.
var errNoBase = errors.New("workspace engine has no base yet: call Reset first")

// Engine captures and restores one workspace. Its methods are safe for concurrent use; captures and restores take turns.
type Engine struct {
	options     Options
	root        dir
	assumptions Assumptions

	mu     sync.Mutex
	closed bool
	// ignore knows the rules of the base.
	ignore *git.Ignore
	// base never changes between Resets; gitlinks are its linked commits by path.
	base     *objects.Tree
	gitlinks []objects.Edit
	// known and tree belong together: every name that is known without the mark unread has its content in tree.
	known  *folder
	tree   *objects.Tree
	stored *idSet
	// captured says that known is what a capture saw, and no belief.
	captured bool
	// other is what the last full count found that is not captured.
	other judge.Workspace
	// recorded is what was known when the last checkpoint was recorded; transient came and went since then, as far as the last capture knew, and
	// restored up to a restore after that.
	recorded            *folder
	transient, restored Transient
	// limits of the last capture.
	limits Limits

	watcher *watcher
}

// Open makes the engine of a workspace. It tests the properties of the volume; only openat2 is required.
func Open(ctx context.Context, options Options) (*Engine, error) {
	if options.ReadLimit <= 0 {
		options.ReadLimit = defaultReadLimit
	}
	if options.MaxEntries <= 0 {
		options.MaxEntries = defaultMaxEntries
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	root, err := openRoot(options.Root)
	if err != nil {
		return nil, err
	}
	e := &Engine{options: options, root: root, watcher: newWatcher(root)}
	if e.assumptions, err = probe(ctx, root); err != nil {
		root.close()
		return nil, fmt.Errorf("test workspace volume: %w", err)
	}
	if !e.assumptions.ChangeTime {
		e.watcher.root = noDir
	}
	for _, note := range e.assumptions.Notes {
		options.Logger.WarnContext(ctx, "The volume does not do what captures rely on", "what", note)
	}
	return e, nil
}

// Assumptions returns the tested properties of the volume.
func (e *Engine) Assumptions() Assumptions { return e.assumptions }

// Close ends the watcher and the processes of the engine.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	err := e.watcher.close() // it looks at files below the root
	e.root.close()
	if e.ignore != nil {
		err = errors.Join(err, e.ignore.Close())
	}
	return err
}

// Reset sets base, the commit or tree that the work started from, and current, the assumed tree of the workspace now. The base decides what
// is ignored, and Snapshot.Changes count from it. The engine does not trust the assumption: the next capture or restore reads every file.
func (e *Engine) Reset(ctx context.Context, base, current objects.ID) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	baseTree, err := e.options.Repository.Tree(ctx, base)
	if err != nil {
		return fmt.Errorf("base: %w", err)
	}
	currentTree := baseTree
	if current != base {
		if currentTree, err = e.options.Repository.Tree(ctx, current); err != nil {
			return fmt.Errorf("current tree: %w", err)
		}
		currentTree.Share(baseTree)
	}
	if e.ignore != nil { // before its successor is made, which takes its place on the disk
		err = e.ignore.Close()
		e.ignore = nil
	}
	if err == nil {
		e.ignore, err = openIgnore(ctx, e.options, baseTree)
	}
	if err != nil {
		return err
	}
	e.base, e.gitlinks = baseTree, nil
	baseTree.Walk(func(path string, entry *objects.Entry) bool {
		if entry.Mode == objects.ModeGitlink {
			e.gitlinks = append(e.gitlinks, objects.Edit{Path: path, Entry: entry})
		}
		return true
	})
	e.stored = newIDSet(baseTree, currentTree)
	e.believe(currentTree)
	e.recorded = e.known
	return err
}

// believe takes a tree for what the workspace holds until it is read.
func (e *Engine) believe(tree *objects.Tree) {
	e.tree = tree
	e.known, e.captured = folderOf(tree), false
}

// folderOf is what a tree says of a workspace: names to be read, without signatures.
func folderOf(tree *objects.Tree) *folder {
	f := &folder{nodes: make([]node, 0, len(tree.Entries))}
	for i := range tree.Entries {
		entry := &tree.Entries[i]
		n := node{name: entry.Name, sig: signature{mode: uint16(entry.Mode)}, mark: unread}
		switch entry.Mode {
		case objects.ModeGitlink:
			continue
		case objects.ModeTree:
			n.sub, n.mark = folderOf(entry.Tree), 0
		}
		f.nodes = append(f.nodes, n)
	}
	// Git sorts directories as if they ended in '/'; here names are sorted as they are.
	slices.SortFunc(f.nodes, compareNodes)
	return f
}

// openIgnore mirrors the ignore files of the base.
func openIgnore(ctx context.Context, o Options, base *objects.Tree) (*git.Ignore, error) {
	ignore, err := o.Repository.NewIgnore(filepath.Join(o.Scratch, "ignore"))
	if err != nil {
		return nil, err
	}
	base.Walk(func(name string, entry *objects.Entry) bool {
		// A link named .gitignore is not followed, as git itself does not.
		if path.Base(name) != git.IgnoreFile || entry.Mode != objects.ModeFile && entry.Mode != objects.ModeExecutable {
			return true
		}
		var content []byte
		if _, content, err = o.Repository.Objects().Read(ctx, entry.ID, maxIgnoreFile); err != nil {
			return false
		}
		dir := path.Dir(name)
		if dir == "." {
			dir = ""
		}
		err = ignore.Add(dir, content)
		return err == nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ignore files of the base: %w", err), ignore.Close())
	}
	return ignore, nil
}

// idSet are the objects that are in the repository for certain.
type idSet struct {
	// sorted holds those of a Reset, added those that came since.
	sorted []objects.ID
	added  map[objects.ID]struct{}
}

func newIDSet(trees ...*objects.Tree) *idSet {
	s := &idSet{added: make(map[objects.ID]struct{})}
	for _, tree := range trees {
		s.collect(tree)
	}
	slices.SortFunc(s.sorted, compareIDs)
	// The trees have most objects in common, and the set lives long: it keeps no room that it does not need.
	s.sorted = slices.Clone(slices.Compact(s.sorted))
	return s
}

func (s *idSet) collect(tree *objects.Tree) {
	s.sorted = append(s.sorted, tree.ID)
	for i := range tree.Entries {
		switch entry := &tree.Entries[i]; entry.Mode {
		case objects.ModeTree:
			s.collect(entry.Tree)
		case objects.ModeGitlink:
		default:
			s.sorted = append(s.sorted, entry.ID)
		}
	}
}

func (s *idSet) has(id objects.ID) bool {
	if _, found := s.added[id]; found {
		return true
	}
	_, found := slices.BinarySearchFunc(s.sorted, id, compareIDs)
	return found
}

func compareIDs(a, b objects.ID) int { return bytes.Compare(a[:], b[:]) }
