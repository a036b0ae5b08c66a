// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// maxFound bounds the findings of one kind that are listed; all are counted.
const maxFound = 1000

// Capture makes a tree of the workspace. It holds the workspace still only if it must. An error means that
// nothing was recorded and that the next capture does the work again; a snapshot that is not Settled is recorded, and the caller must not promote it.
func (e *Engine) Capture(ctx context.Context, still Still) (Snapshot, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limits = still.Limits
	c, err := e.begin(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	defer c.pack.Abort()
	c.limits = still.Limits
	// What changes from here on counts for the next capture.
	events := c.take()
	c.changed, c.followed = events.paths, events.followed && e.captured
	h := holder{c, still}
	if err := h.hold(); err != nil {
		h.release(true)
		c.giveUp()
		return Snapshot{}, err
	}
	c.snapshot.CaptureTime = e.options.Now().Sub(c.began)
	s, err := c.record()
	h.release(err != nil)
	if err != nil {
		c.giveUp()
	}
	return s, err
}

// capture is one capture in progress. It changes the engine only when it is adopted.
type capture struct {
	ctx    context.Context //nolint:containedctx // lives for one call, and every step of it is asked to end with it
	engine *Engine
	owner  *owner
	reader reader
	pack   *objects.Pack
	known  *folder
	edits  []objects.Edit
	began  time.Time
	// changed is what the watcher saw before this capture; with followed, that is all that it had to see since the last one.
	changed  []string
	followed bool
	// events are all that was taken from the watcher.
	events taken
	// read is what was read so far, by path.
	read map[string]content
	// fresh was read and is not absorbed yet; closer are paths that call for a closer look.
	fresh      []reading
	freshBytes int
	closer     []string
	// moved counts what was absorbed in this look and is not what this capture had of it.
	moved int
	// captured and other count the workspace.
	captured, other judge.Workspace
	// tallied says that other is of this capture.
	tallied bool
	// scanProblem and readProblem say why the last look is not the whole truth.
	scanProblem, readProblem string
	// writer is a file that had a live writer at the last look.
	writer string
	// limits of this capture. Over is true when there is more than they allow, or more than is looked at; uncounted when
	// not all of it was counted; closed when the workspace's root cannot be read.
	limits                  Limits
	over, uncounted, closed bool
	// uncertain is a file of which the last look could not tell whether it has a live writer.
	uncertain string
	// budget bounds the bytes that may be read before a scan has counted them, spent is what was read; 0 means unlimited.
	budget, spent int64
	// grant opens what the agent made unreadable; only for a restore.
	grant bool
	// frozen is true while the agent is frozen by this capture.
	frozen   bool
	snapshot Snapshot
}

func (e *Engine) begin(ctx context.Context) (*capture, error) {
	if e.closed {
		return nil, ErrClosed
	}
	if e.base == nil {
		return nil, errNoBase
	}
	pack := e.options.Repository.Store().NewPack(e.stored.has)
	return &capture{
		ctx:    ctx,
		engine: e,
		owner:  &owner{},
		pack:   pack,
		reader: reader{root: e.root, pack: pack, limit: readLimit(e.options, e.limits), tree: e.tree},
		known:  e.known,
		other:  e.other,
		began:  e.options.Now(),
		read:   make(map[string]content),
	}, nil
}

// readLimit is how large a file may be to be captured.
func readLimit(o Options, l Limits) int64 {
	if l.MaxFileSize > 0 {
		return min(o.ReadLimit, l.MaxFileSize)
	}
	return o.ReadLimit
}

// leastEntries is how many entries are looked at whatever the limits are.
const leastEntries = 10_000

func (c *capture) scanner() *scanner {
	e := c.engine
	s := &survey{
		ctx:        c.ctx,
		root:       e.root,
		ignore:     e.ignore.Match,
		limit:      e.options.MaxEntries,
		readLimit:  readLimit(e.options, e.limits),
		countLimit: e.options.MaxEntries,
		owner:      c.owner,
		tree:       e.tree,
		grant:      c.grant,
		seen:       e.watcher.arm,
		hands:      newHands(),
	}
	if most := c.limits.MaxFiles; most > 0 {
		// Directories are entries too: a tree with more directories than files does not hold sources.
		s.limit, s.countLimit = min(s.limit, max(2*most, leastEntries)), min(s.countLimit, most)
	}
	return &scanner{survey: s}
}

// look scans the workspace and reads what differs from what is known; it gives how many paths did. The first one counts
// what is not captured too. All says that signatures are not believed. If there is more than the limits allow, it reads nothing.
func (c *capture) look(all bool) (moved int, err error) {
	s := c.scanner()
	s.tally, s.all = !c.tallied, all
	known, err := s.scan(c.known, c.engine.base)
	if err != nil {
		return 0, fmt.Errorf("scan workspace: %w", err)
	}
	if c.count(s); c.over {
		return 0, nil
	}
	c.known = known
	c.forget()
	if err := c.edit(s); err != nil {
		return 0, err
	}
	err = c.absorb()
	return c.moved, err
}

// count takes over what a whole scan counted.
func (c *capture) count(s *scanner) {
	c.captured = s.captured
	if s.tally {
		c.other, c.tallied, c.uncounted = s.other, true, s.counted.Load() > s.countLimit
	}
	c.scanProblem, c.closed = s.problem, s.closed
	most := c.limits
	c.over = s.partial || most.MaxFiles > 0 && c.captured.Files > most.MaxFiles || most.MaxBytes > 0 && c.captured.Bytes > most.MaxBytes
	c.uncounted = c.uncounted || s.partial
}

// take the events that have come, and make sure that what they told of is read.
func (c *capture) take() taken {
	t := c.engine.watcher.take()
	c.events.paths, c.events.lost = append(c.events.paths, t.paths...), c.events.lost || t.lost
	c.events.gone, c.events.partial = append(c.events.gone, t.gone...), c.events.partial || t.partial
	if t.lost {
		c.known = c.known.distrusted(c.owner)
	} else {
		c.distrust(t.paths)
	}
	return t
}

// giveUp leaves what was taken to the next capture.
func (c *capture) giveUp() { c.engine.watcher.giveBack(c.events) }

// distrust makes sure that what an event told of is read, whatever its signature says: there are calls that change a file
// and leave its signature as it is (EXT4_IOC_MOVE_EXT), and all of them need a descriptor whose end is an event. An event of a
// directory stands for all that is below it: while it was elsewhere, events told of what is below it by another path. A capture
// that does not read what is distrusted leaves it to the next one.
func (c *capture) distrust(paths []string) {
	moved := make(map[string]bool)
	for _, path := range paths {
		if n := c.known.lookup(path); n != nil && n.sub != nil {
			moved[path] = true
		}
	}
	for _, path := range paths {
		n := c.known.lookup(path)
		switch {
		case n == nil, below(path, moved):
		default:
			c.known = c.known.set(c.owner, path, n.distrusted(c.owner))
		}
	}
}

// below tells whether one of the directories above a path is among some.
func below(path string, some map[string]bool) bool {
	for i := len(path); len(some) > 0; {
		if i = strings.LastIndexByte(path[:i], '/'); i < 0 {
			return false
		}
		if some[path[:i]] {
			return true
		}
	}
	return false
}

// forget begins a look: what the last one met counts no more.
func (c *capture) forget() {
	c.writer, c.uncertain, c.readProblem, c.moved = "", "", "", 0
}

// edit makes what a scan found into edits of the tree, and gathers what is to be read.
func (c *capture) edit(s *scanner) error {
	for _, path := range s.gone {
		c.lose(path)
	}
	c.moved += len(s.gone)
	batch := make([]reading, 0, min(len(s.dirty), gathered))
	for paths := range slices.Chunk(s.dirty, gathered) {
		batch = batch[:0]
		for _, path := range paths {
			batch = append(batch, reading{path: path})
		}
		if err := c.gather(batch); err != nil {
			return err
		}
	}
	return nil
}

// lose takes a path out of the tree.
func (c *capture) lose(path string) {
	c.edits = append(c.edits, objects.Edit{Path: path})
	delete(c.read, path)
}

// setMark replaces the mark unread of a path.
func (c *capture) setMark(path string, m mark) {
	if old := c.known.lookup(path); old != nil {
		n := *old
		n.mark = n.mark&^unread | m
		c.known = c.known.set(c.owner, path, &n)
	}
}

// record makes the snapshot durable and the engine's own.
func (c *capture) record() (Snapshot, error) {
	e := c.engine
	began := e.options.Now()
	passed, err := c.passed(e.recorded)
	if err != nil {
		return Snapshot{}, err
	}
	c.forgetSuperseded()
	tree, err := c.build()
	if err != nil {
		return Snapshot{}, fmt.Errorf("capture: %w", err)
	}
	if err := c.pack.Commit(); err != nil {
		return Snapshot{}, fmt.Errorf("capture%s: %w", c.where(err), err)
	}
	s := c.snapshot
	s.SyncTime = e.options.Now().Sub(began)
	s.Tree, s.Previous = tree.ID, e.tree.ID
	if s.Changes, err = e.options.Repository.Changes(c.ctx, e.base, tree); err != nil {
		return Snapshot{}, fmt.Errorf("list changes: %w", err)
	}
	s.Found, s.FoundTotal = findings(c.known, c.closed)
	s.Incomplete = c.over || slices.ContainsFunc(s.Found, unseen)
	s.Workspace = sum(c.captured, c.other)
	s.Workspace.Uncounted = c.uncounted
	s.Dirty = len(c.read)
	e.adopt(c, tree)
	s.Transient = e.keepTransient(passed)
	return s, nil
}

// where names the file that an error is about, where it is about one.
func (c *capture) where(err error) string {
	var collision *objects.CollisionError
	if !errors.As(err, &collision) {
		return ""
	}
	for path, content := range c.read {
		if content.entry.ID == collision.ID {
			return fmt.Sprintf(" %.256q", path)
		}
	}
	return ""
}

// forgetSuperseded leaves out of the pack what was read of files that were read again since.
func (c *capture) forgetSuperseded() {
	wanted := make(map[objects.ID]struct{}, len(c.read))
	for _, content := range c.read {
		wanted[content.entry.ID] = struct{}{}
	}
	c.pack.Forget(func(id objects.ID) bool {
		_, found := wanted[id]
		return found
	})
}

// adopt makes the result of a capture what the engine knows.
func (e *Engine) adopt(c *capture, tree *objects.Tree) {
	for _, id := range c.pack.IDs() {
		e.stored.added[id] = struct{}{}
	}
	e.known, e.tree, e.other, e.captured = c.known, tree, c.other, true
}

// build makes the tree: the one before with the edits made.
func (c *capture) build() (*objects.Tree, error) {
	emit := func(id objects.ID, content []byte) error {
		return c.pack.AddNamed(id, objects.KindTree, content)
	}
	tree, err := c.engine.tree.Apply(c.edits, emit)
	if err != nil {
		return nil, err
	}
	return tree.Apply(missingLinks(tree, c.engine.gitlinks), emit)
}

// missingLinks are linked commits of the base at whose place the tree has nothing. They stay as they are: an empty
// directory, or none, is how a workspace shows them.
func missingLinks(tree *objects.Tree, gitlinks []objects.Edit) []objects.Edit {
	var missing []objects.Edit
	for _, link := range gitlinks {
		if vacant(tree, link.Path) {
			missing = append(missing, link)
		}
	}
	return missing
}

// vacant reports whether a path is free in a tree, without a file on the way to it.
func vacant(tree *objects.Tree, path string) bool {
	for {
		name, rest, more := strings.Cut(path, "/")
		e := tree.Child(name)
		if e == nil {
			return true
		}
		if !more || e.Mode != objects.ModeTree {
			return false
		}
		tree, path = e.Tree, rest
	}
}

// unseen tells whether a finding stands for something that may be in no tree although it could be.
func unseen(f judge.Found) bool {
	return f.Kind == judge.FoundUnreadable || f.Kind == judge.FoundTooDeep
}

// findings lists what is known and a tree cannot tell. Closed says that the workspace's root cannot be read.
func findings(known *folder, closed bool) ([]judge.Found, int64) {
	var found []judge.Found
	var total int64
	listed := make(map[judge.FoundKind]int)
	report := func(path string, kind judge.FoundKind, size int64) {
		total++
		if listed[kind]++; listed[kind] <= maxFound {
			found = append(found, judge.Found{Path: path, Kind: kind, Size: size})
		}
	}
	if closed {
		report("", judge.FoundUnreadable, 0)
	}
	links := make(map[uint64][]string)
	known.marked("", outside|linked|denied, func(path string, n *node) {
		switch {
		case n.mark&denied != 0 && tooDeep(path):
			report(path, judge.FoundTooDeep, 0)
			return
		case n.mark&denied != 0:
			report(path, judge.FoundUnreadable, 0)
			return
		case n.mark&outside != 0:
			report(path, foundKind(path, n.sig), n.sig.size)
			return
		}
		// A file whose names are all captured is several files to the tree, and none changes behind its back.
		links[n.sig.inode] = append(links[n.sig.inode], path)
		if len(links[n.sig.inode]) == int(n.sig.links) {
			delete(links, n.sig.inode)
		}
	})
	for _, path := range slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(links))...))) {
		report(path, judge.FoundHardlink, 0)
	}
	slices.SortFunc(found, func(a, b judge.Found) int { return strings.Compare(a.Path, b.Path) })
	return found, total
}

func foundKind(path string, sig signature) judge.FoundKind {
	if judge.IsGitDir(path[strings.LastIndexByte(path, '/')+1:]) {
		return judge.FoundGitDir
	}
	switch sig.kind() {
	case unix.S_IFIFO:
		return judge.FoundFIFO
	case unix.S_IFSOCK:
		return judge.FoundSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		return judge.FoundDevice
	default:
		return judge.FoundTooLarge
	}
}
