// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

// errCorrupt: something on the trusted volume is not what was written there.
var errCorrupt = errors.New("the trusted volume is damaged")

// book is the journal on disk, and the state that it adds up to. Its methods may be called from any goroutine.
type book struct {
	path string
	now  func() time.Time
	// foldAbove so many bytes the records are put into a segment.
	foldAbove int64

	mu     sync.Mutex
	file   *os.File
	length int64
	// segments before this file, and the length of the snapshot that it begins with.
	segments int
	begin    int64
	head     string // sum of the last line
	state    journal.State
	broken   error
}

// openBook reads the journal, and cuts off a last line that a crash has torn.
func openBook(path string, fold int64, now func() time.Time) (*book, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	records, whole, err := journal.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	state, err := journal.Replay(records)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	b := &book{path: path, now: now, foldAbove: fold, file: file, length: int64(whole), state: state}
	if n := len(records); n > 0 {
		b.head = records[n-1].Sum
		if s := records[0].Snapshot; s != nil {
			b.segments, b.begin = s.Segments, int64(bytes.IndexByte(data, '\n')+1)
		}
	}
	if err := errors.Join(b.cut(), syncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), file.Close())
	}
	return b, nil
}

// Note appends a record and returns when it is on the disk. On an error the journal is as it was.
func (b *book) Note(r journal.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return b.broken
	}
	r.Time = b.now().UTC()
	next, err := b.state.Apply(r)
	if err != nil {
		return fmt.Errorf("journal record that cannot follow: %w", err)
	}
	line, sum, err := journal.Encode(r, b.head)
	if err != nil {
		return err
	}
	_, err = b.file.WriteAt(line, b.length)
	if err == nil {
		err = b.file.Sync()
	}
	if err != nil {
		b.broken = b.cut()
		return fmt.Errorf("write journal: %w", objects.WrapFull(err))
	}
	b.length += int64(len(line))
	b.head, b.state = sum, next
	if b.length-b.begin > b.foldAbove && b.state.Pending == nil {
		// The record is on the disk either way; what cannot be folded now, for want of room, is tried again with the next.
		if err := b.fold(); err != nil && b.broken != nil {
			return b.broken
		}
	}
	return nil
}

// checkpoint finds the intent of a checkpoint. It reads the whole journal again, the newest segment first, because few are
// ever asked for.
func (b *book) checkpoint(sequence int64) (journal.Intent, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data := make([]byte, b.length)
	if _, err := b.file.ReadAt(data, 0); err != nil {
		return journal.Intent{}, false, fmt.Errorf("read journal: %w", err)
	}
	for n := b.segments; ; n-- {
		records, _, err := journal.Decode(data)
		if err != nil {
			return journal.Intent{}, false, fmt.Errorf("%w: %w", errCorrupt, err)
		}
		for _, r := range records {
			if r.Intent != nil && r.Intent.Sequence == sequence {
				return *r.Intent, true, nil
			}
		}
		if n == 0 {
			return journal.Intent{}, false, nil
		}
		if data, err = readSegment(segmentPath(b.path, n)); err != nil {
			return journal.Intent{}, false, err
		}
	}
}

// records are all lines of the journal, those of its segments included.
func (b *book) records() ([]journal.Record, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var whole []byte
	for n := 1; n <= b.segments; n++ {
		lines, err := readSegment(segmentPath(b.path, n))
		if err != nil {
			return nil, err
		}
		whole = append(whole, lines...)
	}
	newest := make([]byte, b.length)
	if _, err := b.file.ReadAt(newest, 0); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	records, _, err := journal.Decode(append(whole, newest...))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return records, nil
}

// cut removes what is behind the last whole line.
func (b *book) cut() error {
	if err := b.file.Truncate(b.length); err != nil {
		return fmt.Errorf("cut journal to %d bytes: %w", b.length, err)
	}
	return nil
}

// State that the journal adds up to.
func (b *book) State() journal.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Head is the sum of the last line; empty before the first.
func (b *book) Head() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.head
}

// Close closes the file.
func (b *book) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.file.Close()
}
