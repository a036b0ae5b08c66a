// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// FoldAbove is how many bytes of records go into a segment of their own, compressed. A start then reads at most that many, and the state
// that results from the segments.
const FoldAbove = 4 << 20

// Journal is the journal on disk, and the state that results from it. It is the only writer of the file. Its methods are safe for concurrent use.
type Journal struct {
	path string
	now  func() time.Time
	// foldAbove is the number of bytes above which the records go into a segment.
	foldAbove int64

	mu     sync.Mutex
	file   *os.File
	length int64
	// segments before this file, and the length of the snapshot that it begins with.
	segments int
	begin    int64
	lines    int64  // in this file
	head     string // sum of the last line
	state    journal.State
	broken   error
	// watch hears of each record that is noted.
	watch Watcher
}

// linesEach is more than the lines that a segment has: the position of a record is the number of the segments before its own times this, and
// its line there.
const linesEach = 1_000_000

// Watcher hears of a record, its position in the journal, and the state with it. Positions grow, and never change.
type Watcher func(position int64, after journal.State, r journal.Record)

// Watch has a watcher called with each record that is noted from now on, when it is on the disk. The watcher is made from the state before them,
// and must not use the journal.
func (j *Journal) Watch(watcher func(now journal.State) Watcher) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.watch = watcher(j.state)
}

// Positions gives the position of each record of a whole journal, as a Watcher gets it.
func Positions(records []journal.Record) iter.Seq2[int64, journal.Record] {
	return func(yield func(int64, journal.Record) bool) {
		segments, line := int64(0), int64(0)
		for _, r := range records {
			if line++; r.Snapshot != nil { // the first line of the next file
				segments, line = int64(r.Snapshot.Segments), 1
			}
			if !yield(segments*linesEach+line, r) {
				return
			}
		}
	}
}

// OpenJournal reads the journal, and cuts off a last line that a crash has torn. Above the given size it moves the records into a segment.
// The error is ErrCorrupt if a line is not as it was written, and ErrLater if a later version of Tidewaiter has written it.
func OpenJournal(d Dir, foldAbove int64, now func() time.Time) (*Journal, error) {
	path := d.journal()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	records, whole, err := journal.Decode(data)
	if corrupt, is := errors.AsType[*journal.CorruptError](err); is && corrupt.Later {
		return nil, fmt.Errorf("%w: %w", ErrLater, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	state, err := journal.Replay(records)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{path: path, now: now, foldAbove: foldAbove, file: file, length: int64(whole), state: state}
	if n := len(records); n > 0 {
		j.head, j.lines = records[n-1].Sum, int64(n)
		if s := records[0].Snapshot; s != nil {
			j.segments, j.begin = s.Segments, int64(bytes.IndexByte(data, '\n')+1)
		}
	}
	if err := errors.Join(j.cut(), durable.SyncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), file.Close())
	}
	return j, nil
}

// Note appends a record and returns when it is on the disk. On an error the journal is as it was.
func (j *Journal) Note(r journal.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return j.broken
	}
	r.Time = j.now().UTC()
	next, err := j.state.Apply(r)
	if err != nil {
		return fmt.Errorf("journal record that cannot follow: %w", err)
	}
	line, sum, err := journal.Encode(r, j.head)
	if err != nil {
		return err
	}
	_, err = j.file.WriteAt(line, j.length)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.broken = j.cut()
		return fmt.Errorf("write journal: %w", objects.WrapFull(err))
	}
	j.length += int64(len(line))
	j.head, j.state, j.lines = sum, next, j.lines+1
	if j.watch != nil {
		j.watch(int64(j.segments)*linesEach+j.lines, next, r)
	}
	if j.length-j.begin > j.foldAbove && j.state.Pending == nil {
		// The record is on the disk either way; what cannot be folded now, for want of room, is tried again with the next.
		if err := j.fold(); err != nil && j.broken != nil {
			return j.broken
		}
	}
	return nil
}

// Checkpoint finds the intent of a checkpoint.
func (j *Journal) Checkpoint(sequence int64) (journal.Intent, bool, error) {
	return j.Newest(func(i journal.Intent) bool { return i.Sequence == sequence })
}

// Newest finds the newest intent that matches. It reads the journal again, the newest segment first, because such calls are rare.
func (j *Journal) Newest(match func(journal.Intent) bool) (journal.Intent, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	data := make([]byte, j.length)
	if _, err := j.file.ReadAt(data, 0); err != nil {
		return journal.Intent{}, false, fmt.Errorf("read journal: %w", err)
	}
	for n := j.segments; ; n-- {
		records, _, err := journal.Decode(data)
		if err != nil {
			return journal.Intent{}, false, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		for _, r := range slices.Backward(records) {
			if r.Intent != nil && match(*r.Intent) {
				return *r.Intent, true, nil
			}
		}
		if n == 0 {
			return journal.Intent{}, false, nil
		}
		if data, err = readSegment(segmentPath(j.path, n)); err != nil {
			return journal.Intent{}, false, err
		}
	}
}

// Records are all lines of the journal, including its segments.
func (j *Journal) Records() ([]journal.Record, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var whole []byte
	for n := 1; n <= j.segments; n++ {
		lines, err := readSegment(segmentPath(j.path, n))
		if err != nil {
			return nil, err
		}
		whole = append(whole, lines...)
	}
	newest := make([]byte, j.length)
	if _, err := j.file.ReadAt(newest, 0); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	records, _, err := journal.Decode(append(whole, newest...))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return records, nil
}

// cut removes what is behind the last whole line.
func (j *Journal) cut() error {
	if err := j.file.Truncate(j.length); err != nil {
		return fmt.Errorf("cut journal to %d bytes: %w", j.length, err)
	}
	return nil
}

// State that the journal adds up to.
func (j *Journal) State() journal.State {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state
}

// Head is the sum of the last line; empty before the first.
func (j *Journal) Head() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.head
}

// Close closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}
