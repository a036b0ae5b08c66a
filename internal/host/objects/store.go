// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Store writes into the objects directory of a repository. What it reports as written survives a loss of power. It may
// be used by several goroutines.
type Store struct {
	dir string
}

// NewStore writes to an objects directory, which must exist.
func NewStore(dir string) *Store {
	return &Store{dir: dir}
}

// Write stores one object in a file of its own; for commits, which come one at a time.
func (s *Store) Write(kind Kind, content []byte) (ID, error) {
	id := Hash(kind, content)
	name := id.String()
	dir := filepath.Join(s.dir, name[:2])
	path := filepath.Join(dir, name[2:])
	if _, err := os.Lstat(path); err == nil {
		return id, nil
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return ID{}, fmt.Errorf("object directory: %w", WrapFull(err))
	}
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	// Writes to a bytes.Buffer cannot fail.
	_, _ = z.Write(header(kind, int64(len(content))))
	_, _ = z.Write(content)
	_ = z.Close()
	// The directory may be new, so its own name must be made durable too.
	if err := errors.Join(placeFile(s.dir, path, b.Bytes()), SyncDir(s.dir)); err != nil {
		return ID{}, fmt.Errorf("write %s %s: %w", kind, id, WrapFull(err))
	}
	return id, nil
}

// placeFile makes a file by way of a temporary one in dir, so that it is there whole and durable or not at all.
func placeFile(dir, path string, content []byte) error {
	f, err := os.CreateTemp(dir, "tmp_obj_*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(0o444), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
