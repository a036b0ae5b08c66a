// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package place says where the local cluster keeps its files: outside the checkout, for one user, so that a fresh clone
// builds nothing again.
package place

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Layout is the cluster's folder with everything in it.
type Layout struct {
	root string
}

// Default is the layout in $TIDEWAITER_CACHE, else in $XDG_CACHE_HOME/tidewaiter, else in ~/.cache/tidewaiter. getenv is
// os.Getenv but for tests.
func Default(getenv func(string) string) (Layout, error) {
	base := getenv("TIDEWAITER_CACHE")
	if base == "" {
		cache := getenv("XDG_CACHE_HOME")
		if cache == "" {
			home := getenv("HOME")
			if home == "" {
				return Layout{}, errors.New("none of TIDEWAITER_CACHE, XDG_CACHE_HOME and HOME is set: set one, so that there is a place for the cluster's files")
			}
			cache = filepath.Join(home, ".cache")
		}
		base = filepath.Join(cache, "tidewaiter")
	}
	if !filepath.IsAbs(base) {
		return Layout{}, fmt.Errorf("cache folder %q: it must be an absolute path", base)
	}
	for _, hidden := range []string{"/run", "/var/lib", "/var/log", "/proc", "/sys"} {
		if base == hidden || strings.HasPrefix(base, hidden+"/") {
			return Layout{}, fmt.Errorf("cache folder %s: the node has its own %s, so it cannot be there: set TIDEWAITER_CACHE", base, hidden)
		}
	}
	return Layout{root: filepath.Join(base, "cluster")}, nil
}

// At is the layout in a folder of the caller's choice.
func At(root string) Layout { return Layout{root: root} }

// Root is the folder itself.
func (l Layout) Root() string { return l.root }

// Builds holds the built programs, one folder for each hash of sources and versions.
func (l Layout) Builds() string { return filepath.Join(l.root, "builds") }

// Layers holds image layers made of Debian packages, one file for each set of packages.
func (l Layout) Layers() string { return filepath.Join(l.root, "layers") }

// State holds everything of the running cluster. Nothing in it outlives `down`.
func (l Layout) State() string { return filepath.Join(l.root, "state") }

// Lock is the file that a process locks while it changes the named thing.
func (l Layout) Lock(name string) string { return filepath.Join(l.root, name+".lock") }

// MakeAll makes the folders that other packages expect to exist.
func (l Layout) MakeAll() error {
	for _, folder := range []string{l.Builds(), l.Layers()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("cache folder: %w", err)
		}
	}
	return nil
}
