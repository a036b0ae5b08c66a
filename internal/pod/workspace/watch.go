// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
)

const (
	// watchMask are the events that change what a capture sees. IN_CLOSE_WRITE tells of a mapping that was written to.
	watchMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
		unix.IN_CLOSE_WRITE | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK
	// maxChanged bounds the paths that are remembered between two captures; beyond it a capture scans.
	maxChanged = 64 << 10
	// nap is how long the reader sleeps after each read, so that events coalesce: to wake for each of them costs more than
	// all the rest. The kernel's queue (16,384 events by default) holds 20 ms of 250,000 changes a second; nobody
	// needs to know sooner, and a capture reads the queue itself.
	nap = 20 * time.Millisecond
)

// trace is what events told of a path, in addition to its change.
type trace uint8

const (
	// removed: a name was deleted or moved away, now or earlier.
	removed trace = 1 << iota
	// removedDir: the last one was a directory's.
	removedDir
)

// traceOf an event.
func traceOf(mask uint32) trace {
	switch {
	case mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) == 0:
		return 0
	case mask&unix.IN_ISDIR != 0:
		return removed | removedDir
	}
	return removed
}

// watcher follows changes by inotify. It is for latency only: what it misses, a scan finds.
type watcher struct {
	// wake has a token when something changed since it was last taken.
	wake chan struct{}
	// fresh has a token when a directory appeared that is not watched yet.
	fresh chan struct{}

	mu      sync.Mutex
	file    *os.File
	raw     int
	paths   map[int32]string
	watched map[string]int32
	changed map[string]trace
	// path of an event is put together here.
	path    []byte
	created []string
	// moved says that a directory was moved, so that what is below it may be watched by another path than it has.
	moved    bool
	overflow bool
	// lost counts how often overflow was set.
	lost int64
	// trouble says why not everything is watched; empty while all is well.
	trouble string
	// asked: somebody wanted the workspace to be watched.
	asked bool
	done  chan struct{}
	// root of the workspace; no directory where delays are not measured. Of the events of one read, oldest is the path of the first one that shows in the
	// ctime of its file.
	root   dir
	oldest []byte
	// delay is the longest that was measured, 0 for none.
	delay time.Duration
}

// ctimeMask are events of changes that give a file a new ctime at once. A file that is closed may have been written to long before.
const ctimeMask = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB

func newWatcher(root dir) *watcher {
	return &watcher{
		root:    root,
		wake:    make(chan struct{}, 1),
		fresh:   make(chan struct{}, 1),
		trouble: "the watcher was not opened",
		changed: make(map[string]trace),
	}
}

// open begins to watch; directories are added one by one. It tells whether it did so now.
func (w *watcher) open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		return false
	}
	w.asked = true
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		w.trouble = "inotify: " + err.Error()
		return false
	}
	w.raw, w.file = fd, os.NewFile(uintptr(fd), "inotify")
	w.paths, w.watched = make(map[int32]string), make(map[string]int32)
	w.trouble = ""
	w.done = make(chan struct{})
	go w.follow(w.file, w.done)
	return true
}

func (w *watcher) close() error {
	w.mu.Lock()
	f, done := w.file, w.done
	w.file = nil
	w.trouble = "the watcher is closed"
	w.mu.Unlock()
	if f == nil {
		return nil
	}
	err := f.Close()
	<-done
	return err
}

// state tells whether every directory is watched, and else why not.
func (w *watcher) state() (bool, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble == "", w.trouble
}

// count gives the number of paths that changed since the last take.
func (w *watcher) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.overflow {
		return maxChanged
	}
	return len(w.changed)
}

// peek gives some of the paths that changed, sorted, and does not forget them.
func (w *watcher) peek(limit int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var paths []string
	for path := range w.changed {
		if len(paths) == limit {
			break
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// mostReads bounds the buffers of events that one question reads while an agent makes more.
const mostReads = 64

// noticed tells whether an event since the last take told of a path or of a directory above it.
func (w *watcher) noticed(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		for range mostReads {
			if w.read(w.raw) <= 0 {
				break
			}
		}
	}
	for {
		if _, found := w.changed[path]; found {
			return true
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return false
		}
		path = path[:i]
	}
}

func (w *watcher) losses() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// arm watches a directory unless it is watched already.
func (w *watcher) arm(path string, d dir) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return
	}
	if _, found := w.watched[path]; found {
		return
	}
	w.add(path, d)
}

// add places a watch through the descriptor, so that no link on the path is followed.
func (w *watcher) add(path string, d dir) {
	wd, err := unix.InotifyAddWatch(w.raw, "/proc/self/fd/"+strconv.Itoa(d.fd), watchMask)
	if errors.Is(err, unix.ENOENT) {
		// Removed meanwhile: the directory above tells of it.
		return
	}
	if err != nil {
		// ENOSPC: the watches of this user are spent.
		w.trouble = "inotify watch: " + err.Error()
		return
	}
	id := int32(wd)
	// A directory that was renamed keeps its watch.
	if old, found := w.paths[id]; found && w.watched[old] == id {
		delete(w.watched, old)
	}
	w.paths[id], w.watched[path] = path, id
}

// taken is what a capture or a restore takes from the watcher.
type taken struct {
	// paths that changed.
	paths []string
	// followed says that these are all: every directory was watched, and no event was lost.
	followed bool
	// lost says that events were lost: a file may have changed without any other sign.
	lost bool
	// gone are the paths whose name was removed, and partial says that there may be others.
	gone    []git.Candidate
	partial bool
}

// take gives what changed and forgets it.
func (w *watcher) take() taken {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		// While the agent is frozen the queue is finite: read it to its end.
		for w.read(w.raw) > 0 {
		}
	}
	t := taken{paths: make([]string, 0, len(w.changed)), followed: w.trouble == "" && !w.overflow, lost: w.overflow}
	t.partial = w.asked && !t.followed
	for path, trace := range w.changed {
		t.paths = append(t.paths, path)
		if trace&removed != 0 {
			t.gone = append(t.gone, git.Candidate{Path: path, Dir: trace&removedDir != 0})
		}
	}
	clear(w.changed)
	w.overflow = false
	w.forgetCreated()
	return t
}

// giveBack remembers what was taken without use. It wakes nobody: who took it knows, and tries again when it is time.
func (w *watcher) giveBack(t taken) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.overflow = w.overflow || t.lost
	for _, path := range t.paths {
		if !w.remember(path, 0) {
			break
		}
	}
	for _, name := range t.gone {
		was := removed
		if name.Dir {
			was |= removedDir
		}
		if !w.remember(name.Path, was) {
			break
		}
	}
}

// takeCreated gives the directories that appeared.
func (w *watcher) takeCreated() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.forgetCreated()
}

// forgetCreated makes sure that directories that appeared are watched when they are next seen: one of the same name may
// have been watched before. If one was moved, that holds for each of them: what is below it has come along without an event.
func (w *watcher) forgetCreated() []string {
	created := w.created
	w.created = nil
	if w.moved {
		clear(w.watched)
		w.moved = false
	}
	for _, path := range created {
		delete(w.watched, path)
	}
	return created
}

// note remembers paths that a scan found to have changed.
func (w *watcher) note(paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range paths {
		w.mark(path, 0)
	}
}

func (w *watcher) mark(path string, t trace) {
	w.remember(path, t)
	signal(w.wake)
}

// remember a path; false where there are too many of them.
func (w *watcher) remember(path string, t trace) bool {
	was, known := w.changed[path]
	if !known && len(w.changed) >= maxChanged {
		w.lose()
		return false
	}
	if t != 0 {
		was = t
	}
	w.changed[path] = was
	return true
}

// lose notes that not every change is known: the next capture scans.
func (w *watcher) lose() {
	if !w.overflow {
		w.lost++
	}
	w.overflow, w.moved = true, true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// follow reads events until the watcher is closed.
func (w *watcher) follow(f *os.File, done chan struct{}) {
	defer close(done)
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	for {
		events := 0
		err := conn.Read(func(fd uintptr) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.file == nil {
				return true
			}
			w.oldest = w.oldest[:0]
			events = w.read(int(fd))
			return events != 0
		})
		w.measure(coarseClock())
		if errors.Is(err, os.ErrClosed) || err != nil || events <= 0 {
			return
		}
		time.Sleep(nap)
	}
}

// measure how long a change waited until its path was known, by the ctime of the file of the oldest event: once for each buffer, which is at most once
// for each nap. A file that has changed again since then gives less.
func (w *watcher) measure(known int64) {
	w.mu.Lock()
	path := string(w.oldest)
	w.mu.Unlock()
	if path == "" || w.root == noDir {
		return
	}
	fd, err := w.root.open(path, unix.O_PATH, 0)
	if err != nil {
		return // it has gone already
	}
	sig, err := fstat(fd)
	dir{fd}.close()
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// A change of the same tick of the clock was measured, too.
	w.delay = max(w.delay, time.Duration(known-sig.ctime), 1)
}

// longest delay since it was forgotten; 0 where none was measured.
func (w *watcher) longest(forget bool) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.delay
	if forget {
		w.delay = 0
	}
	return d
}

// read takes one buffer of events: 0 when there are none, -1 when the queue cannot be read.
func (w *watcher) read(fd int) int {
	var buffer [64 << 10]byte
	n, err := unix.Read(fd, buffer[:])
	switch {
	case err == unix.EAGAIN:
		return 0
	case err == unix.EINTR:
		return 1
	case err != nil || n < unix.SizeofInotifyEvent:
		w.trouble = "inotify queue cannot be read"
		return -1
	}
	events := 0
	for b := buffer[:n]; len(b) >= unix.SizeofInotifyEvent; events++ {
		wd := int32(binary.NativeEndian.Uint32(b))
		mask := binary.NativeEndian.Uint32(b[4:])
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:size], []byte{0})
		w.event(wd, mask, name)
		b = b[size:]
	}
	return events
}

func (w *watcher) event(wd int32, mask uint32, name []byte) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		w.lose()
		signal(w.wake)
		return
	}
	folder, found := w.paths[wd]
	if !found {
		return
	}
	if mask&unix.IN_IGNORED != 0 {
		delete(w.paths, wd)
		if w.watched[folder] == wd {
			delete(w.watched, folder)
		}
		return
	}
	if len(name) == 0 {
		return
	}
	w.path = append(w.path[:0], folder...)
	if folder != "" {
		w.path = append(w.path, '/')
	}
	w.path = append(w.path, name...)
	if len(w.oldest) == 0 && mask&ctimeMask != 0 && mask&unix.IN_ISDIR == 0 {
		w.oldest = append(w.oldest, w.path...)
	}
	// Most events are not the first of their file: they shall cost no memory.
	was, known := w.changed[string(w.path)]
	trace := traceOf(mask)
	if known && mask&unix.IN_ISDIR == 0 && (trace == 0 || trace == was) {
		signal(w.wake)
		return
	}
	path := string(w.path)
	if path == gitDir || strings.HasPrefix(path, gitDir+"/") {
		return
	}
	if mask&unix.IN_ISDIR != 0 {
		w.moved = w.moved || mask&(unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0
		if mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 {
			w.appeared(path)
		}
		if mask&(unix.IN_ATTRIB|unix.IN_MODIFY|unix.IN_CLOSE_WRITE) != 0 {
			return
		}
	}
	w.mark(path, trace)
}

// appeared remembers a directory to be watched.
func (w *watcher) appeared(path string) {
	if len(w.created) >= maxChanged {
		w.lose()
		return
	}
	w.created = append(w.created, path)
	signal(w.fresh)
}
