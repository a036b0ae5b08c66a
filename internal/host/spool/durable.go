// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"fmt"
	"os"
	"path/filepath"
)

const tempSuffix = ".tmp"

// writeDurably replaces a file so that after a crash either the old or the new content is there, and returns when the
// new one is on the disk.
func writeDurably(path string, data []byte) error {
	temp := path + tempSuffix
	if err := writeSynced(temp, data); err != nil {
		_ = os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("move into place: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return f.Close()
}
