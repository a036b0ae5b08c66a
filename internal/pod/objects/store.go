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

// Store writes into the objects directory of a repository. Written objects survive a loss of power. It is safe for concurrent use.
type Store struct {
	dir string
	// sync makes a file or directory durable. Tests look at what is there at that moment.
	sync func(*os.File) error
	// recent blobs of packs.
	recent Recent
}

// NewStore writes to an objects directory, which must exist.
func NewStore(dir string) *Store {
	return &Store{dir: dir, sync: (*os.File).Sync}
}

// Recent are the blobs that were written last, in packs.
func (s *Store) Recent() *Recent { return &s.recent }

// Write stores one object in a file of its own; for commits, which come one at a time.
func (s *Store) Write(kind Kind, content []byte) (ID, error) {
	id := Hash(kind, content)
	name := id.String()
	dir := filepath.Join(s.dir, name[:2])
	path := filepath.Join(dir, name[2:])
	if _, err := os.Lstat(path); err == nil {
		// Its writer may have ended before its name was durable.
		return id, errors.Join(s.syncDir(dir), s.syncDir(s.dir))
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
	if err := errors.Join(s.placeFile(s.dir, path, b.Bytes()), s.syncDir(s.dir)); err != nil {
		return ID{}, fmt.Errorf("write %s %s: %w", kind, id, WrapFull(err))
	}
	return id, nil
}

// placeFile makes a file by way of a temporary one in dir, so that it is there whole and durable or not at all.
func (s *Store) placeFile(dir, path string, content []byte) error {
	f, err := os.CreateTemp(dir, "tmp_obj_*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(0o444), s.sync(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return s.syncDir(filepath.Dir(path))
}

// syncDir makes the names in a directory durable, as far as the store syncs anything.
func (s *Store) syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(s.sync(f), f.Close())
}
