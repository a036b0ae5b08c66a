// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
)

// foldAbove is how many bytes of records are put into a segment of their own, compressed, so that a start reads no more than
// that and what they add up to.
const foldAbove = 4 << 20

// segmentPath is where a segment of a journal is; they count from 1.
func segmentPath(journalPath string, n int) string {
	return filepath.Join(filepath.Dir(journalPath), fmt.Sprintf("journal-%06d.jsonl.gz", n))
}

// readSegment gives the lines of one.
func readSegment(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errCorrupt, filepath.Base(path), err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errCorrupt, filepath.Base(path), err)
	}
	return data, nil
}

// wholeJournal is a journal with the segments before it, as one chain of lines. A segment that is missing breaks the chain,
// as does one that was put there.
func wholeJournal(path string) ([]byte, error) {
	newest, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var whole []byte
	for n := 1; n <= journal.Segments(newest); n++ {
		lines, err := readSegment(segmentPath(path, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		whole = append(whole, lines...)
	}
	return append(whole, newest...), nil
}

// fold puts the records so far into a segment and goes on with a journal that begins with what they add up to. After a crash
// either journal is there, and each has all of its segments.
func (b *book) fold() (err error) {
	n := b.segments + 1
	r := journal.Record{Time: b.now().UTC(), Snapshot: &journal.Snapshot{Segments: n, State: b.state}}
	next, err := b.state.Apply(r)
	if err != nil {
		return err
	}
	line, sum, err := journal.Encode(r, b.head)
	if err != nil {
		return err
	}
	lines := make([]byte, b.length)
	if _, err := b.file.ReadAt(lines, 0); err != nil {
		return err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(lines)
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	if err := replaceFile(segmentPath(b.path, n), packed.Bytes()); err != nil {
		return err
	}
	replaced := replaceFile(b.path, line)
	file, err := b.reopen()
	if err != nil {
		b.broken = fmt.Errorf("open the journal again: %w", errors.Join(replaced, err)) // what the old file gets may be lost
		return b.broken
	}
	if file == nil {
		return replaced
	}
	_ = b.file.Close()
	b.file, b.length, b.begin, b.head, b.state, b.segments = file, int64(len(line)), int64(len(line)), sum, next, n
	return nil
}

// reopen opens the file that is the journal now; nil when it is the one that is open.
func (b *book) reopen() (*os.File, error) {
	file, err := os.OpenFile(b.path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	old, err1 := b.file.Stat()
	now, err2 := file.Stat()
	if err := errors.Join(err1, err2); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if os.SameFile(old, now) {
		return nil, file.Close()
	}
	return file, nil
}
