// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eventlog keeps lines of JSON in a file that is only appended to, bounded and rotated. Lines come in batches
// with a key, and each batch is there once and whole, however often it is written again after a crash.
package eventlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Options of a log.
type Options struct {
	// Path of the file; older files are next to it as Path.1 (the newest of them), Path.2 and so on.
	Path string
	// MaxBytes from which on a file is rotated; one batch may exceed it. Default 8 MiB.
	MaxBytes int64
	// Keep is how many older files are kept. Default 3.
	Keep int
	// KeyOf returns the key of a line; ok is false for a line that is none.
	KeyOf func(line []byte) (key string, ok bool)
}

// Log is an open log. It is for one goroutine.
type Log struct {
	Options

	file *os.File
	// size of the file, and where its last batch begins and which key that has.
	size    int64
	last    int64
	lastKey string
}

// Open opens a log, and makes it if there is none. It cuts off what a crash has left behind the last complete line.
func Open(o Options) (*Log, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = 8 << 20
	}
	if o.Keep == 0 {
		o.Keep = 3
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, fmt.Errorf("make folder of the log: %w", err)
	}
	l := &Log{Options: o}
	if err := l.reopen(); err != nil {
		return nil, err
	}
	return l, nil
}

// reopen finds the end of the log and its last batch.
func (l *Log) reopen() error {
	file, err := os.OpenFile(l.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	l.file, l.size, l.last, l.lastKey = file, 0, 0, ""
	for in := bufio.NewReader(file); ; {
		line, err := in.ReadBytes('\n')
		key, ok := "", false
		if err == nil {
			key, ok = l.KeyOf(line)
		}
		if !ok {
			if err != nil && !errors.Is(err, io.EOF) {
				return errors.Join(fmt.Errorf("read log: %w", err), file.Close())
			}
			break
		}
		if key != l.lastKey {
			l.last, l.lastKey = l.size, key
		}
		l.size += int64(len(line))
	}
	if err := file.Truncate(l.size); err != nil {
		return errors.Join(fmt.Errorf("cut log: %w", err), file.Close())
	}
	return nil
}

// Append writes a batch, one line for each event, and returns when it is on the disk. Where the last batch has the same
// key it is replaced: a crash came before anybody could know that it was written.
func (l *Log) Append(key string, events ...any) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, e := range events {
		if err := encoder.Encode(e); err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
	}
	at := l.size
	if key == l.lastKey && l.size > 0 {
		at = l.last
	} else if l.size > 0 && l.size+int64(lines.Len()) > l.MaxBytes {
		if err := l.rotate(); err != nil {
			return err
		}
		at = 0
	}
	if err := errors.Join(l.file.Truncate(at), l.write(lines.Bytes(), at)); err != nil {
		l.size = at
		return fmt.Errorf("write log: %w", errors.Join(objects.WrapFull(err), l.file.Truncate(at)))
	}
	if lines.Len() > 0 {
		l.last, l.lastKey = at, key
	}
	l.size = at + int64(lines.Len())
	return nil
}

func (l *Log) write(data []byte, at int64) error {
	if _, err := l.file.WriteAt(data, at); err != nil {
		return err
	}
	return l.file.Sync()
}

// rotate makes room for a new file. The oldest is dropped.
func (l *Log) rotate() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	for n := l.Keep; n > 0; n-- {
		from := l.Path
		if n > 1 {
			from = older(l.Path, n-1)
		}
		if err := os.Rename(from, older(l.Path, n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate log: %w", err)
		}
	}
	return l.reopen()
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

func older(path string, n int) string { return fmt.Sprintf("%s.%d", path, n) }

// Copy writes the whole log, oldest lines first. A Log may write to it at the same time.
func Copy(w io.Writer, path string) error {
	paths := []string{path}
	for n := 1; ; n++ {
		if _, err := os.Stat(older(path, n)); err != nil {
			break
		}
		paths = append(paths, older(path, n))
	}
	slices.Reverse(paths)
	for _, p := range paths {
		if err := copyFile(w, p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyFile(w io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = file.Close() }()
	_, err = io.Copy(w, file)
	return err
}
