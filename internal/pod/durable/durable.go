// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package durable writes files that a crash of the machine leaves whole: the one place for the order of writing, syncing and renaming.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// TempSuffix ends the name of a file that is being written. It is safe to remove such a file after a crash.
const TempSuffix = ".tmp"

// Replace a file so that after a crash either the old or the new content is there. The new one is durable when Replace returns. Only one
// caller at a time may write a file.
func Replace(path string, data []byte) error {
	temp := path + TempSuffix
	err := write(temp, data)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("replace %s: %w", filepath.Base(path), err)
	}
	return SyncDir(filepath.Dir(path))
}

func write(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
