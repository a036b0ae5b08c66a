// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

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
	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
)

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
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, filepath.Base(path), err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, filepath.Base(path), err)
	}
	return data, nil
}

// ReadJournal returns a journal with the segments before it, as one chain of lines, for a reader that runs next to its writer. A missing or
// an inserted segment breaks the chain. The error is ErrNoJournal if there is none.
func ReadJournal(d Dir) ([]byte, error) {
	path := d.journal()
	newest, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s: the Feature was never prepared, or this is not its trusted volume", ErrNoJournal, d)
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
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

// fold puts the records so far into a segment and continues with a journal that begins with the resulting state. After a crash
// either journal is there, and each has all of its segments.
func (j *Journal) fold() (err error) {
	n := j.segments + 1
	r := journal.Record{Time: j.now().UTC(), Snapshot: &journal.Snapshot{Segments: n, State: j.state}}
	next, err := j.state.Apply(r)
	if err != nil {
		return err
	}
	line, sum, err := journal.Encode(r, j.head)
	if err != nil {
		return err
	}
	lines := make([]byte, j.length)
	if _, err := j.file.ReadAt(lines, 0); err != nil {
		return err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(lines)
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	if err := durable.Replace(segmentPath(j.path, n), packed.Bytes()); err != nil {
		return err
	}
	replaced := durable.Replace(j.path, line)
	file, err := j.reopen()
	if err != nil {
		j.broken = fmt.Errorf("open the journal again: %w", errors.Join(replaced, err)) // what the old file gets may be lost
		return j.broken
	}
	if file == nil {
		return replaced
	}
	_ = j.file.Close()
	j.file, j.length, j.begin, j.head, j.state, j.segments, j.lines = file, int64(len(line)), int64(len(line)), sum, next, n, 1
	return nil
}

// reopen opens the file that is the journal now; nil when it is the one that is open.
func (j *Journal) reopen() (*os.File, error) {
	file, err := os.OpenFile(j.path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	old, err1 := j.file.Stat()
	now, err2 := file.Stat()
	if err := errors.Join(err1, err2); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if os.SameFile(old, now) {
		return nil, file.Close()
	}
	return file, nil
}
