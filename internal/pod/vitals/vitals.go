// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vitals measures what a process and its volumes use.
package vitals

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Memory is what of this process is resident, in bytes.
func Memory() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("measure memory: %w", err)
	}
	fields := strings.Fields(string(text)) // pages: size, resident, …
	if len(fields) < 2 {
		return 0, fmt.Errorf("measure memory: %q", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("measure memory: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// Descriptors counts the open files of this process.
func Descriptors() (int, error) {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, fmt.Errorf("count open files: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0, fmt.Errorf("count open files: %w", err)
	}
	return len(names) - 1, nil // without the one that reads them
}

// Volume returns how full a path's file system is: the used bytes, and the bytes that this process can use in all. If files run out before
// bytes do, used is scaled so that the ratio of the two says so.
func Volume(path string) (used, size int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, fmt.Errorf("measure volume of %s: %w", path, err)
	}
	used = int64(s.Blocks-s.Bfree) * s.Frsize
	size = used + int64(s.Bavail)*s.Frsize
	if s.Files > 0 && size > 0 {
		files := float64(s.Files-s.Ffree) / float64(s.Files)
		used = max(used, int64(files*float64(size)))
	}
	return used, size, nil
}
