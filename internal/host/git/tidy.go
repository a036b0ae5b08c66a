// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/host/objects"
)

const (
	packSuffix  = ".pack"
	indexSuffix = ".idx"
	// keepSuffix marks a pack that is left as it is.
	keepSuffix = ".keep"
	// growth is how many times larger than all smaller packs together a pack must be to be left alone: each object is then
	// written again a number of times that is logarithmic in the number of checkpoints.
	growth = 2
)

// thrifty are settings for work that nobody waits for, beside an agent that needs the memory.
func thrifty() []setting {
	return []setting{
		{"pack.threads", "1"},
		{"pack.windowMemory", "16m"},
		{"pack.deltaCacheSize", "8m"},
		// Larger blobs are copied as they are, never held in memory to be compared.
		{"core.bigFileThreshold", "4m"},
	}
}

// pack is a pack on disk.
type pack struct {
	// path without its suffix.
	path string
	size int64
}

// Packs are what the repository's objects are kept in. They are put together, and lose what nothing needs any more.
type Packs struct {
	dir     string
	runner  runner
	objects *Objects
}

// Packs of the repository.
func (r *Repository) Packs() Packs {
	return Packs{dir: filepath.Join(r.dir, "objects", "pack"), runner: r.runner, objects: r.objects}
}

// packs lists the packs that may be put together with others, the smallest first.
func (k Packs) packs() ([]pack, error) {
	list, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, fmt.Errorf("list packs: %w", err)
	}
	kept := make(map[string]bool)
	for _, e := range list {
		if name, found := strings.CutSuffix(e.Name(), keepSuffix); found {
			kept[name] = true
		}
	}
	var found []pack
	for _, e := range list {
		name, isIndex := strings.CutSuffix(e.Name(), indexSuffix)
		if !isIndex || kept[name] {
			continue
		}
		info, err := os.Stat(filepath.Join(k.dir, name+packSuffix))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list packs: %w", err)
		}
		found = append(found, pack{path: filepath.Join(k.dir, name), size: info.Size()})
	}
	slices.SortFunc(found, func(a, b pack) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.path, b.path)) })
	return found, nil
}

// Keep marks all packs that there are as ones that Tidy and Prune leave as they are: those of the base, which may be large.
func (k Packs) Keep() error {
	packs, err := k.packs()
	for _, p := range packs {
		err = errors.Join(err, os.WriteFile(p.path+keepSuffix, nil, 0o444))
	}
	if err != nil {
		return fmt.Errorf("keep packs: %w", objects.WrapFull(err))
	}
	return nil
}

// Tidy puts packs and single objects together when there are more than limit packs, and tells whether it did. It loses no
// object, reachable or not, so that a caller that takes an object for stored stays right: it may run beside a capture. What
// is replaced is removed after its replacement is durable; a crash leaves at most something twice.
func (k Packs) Tidy(ctx context.Context, limit int) (bool, error) {
	packs, err := k.packs()
	if err != nil || len(packs) <= max(limit, 1) {
		return false, err
	}
	if err := k.join(ctx, roll(packs)); err != nil {
		return false, fmt.Errorf("tidy trusted repository: %w", err)
	}
	return true, nil
}

// roll picks the smallest packs: all that are not much larger than those before them together.
func roll(packs []pack) []pack {
	var sum int64
	n := 0
	for n < len(packs) && (n < 2 || packs[n].size < growth*sum) {
		sum += packs[n].size
		n++
	}
	return packs[:n]
}

// join makes one pack of some, and of all objects that are in none.
func (k Packs) join(ctx context.Context, old []pack) error {
	var names strings.Builder
	for _, p := range old {
		names.WriteString(filepath.Base(p.path) + packSuffix + "\n")
	}
	out, err := k.runner.run(ctx, call{
		args: []string{
			"pack-objects", "--stdin-packs", "--unpacked", "--delta-base-offset", "--quiet", filepath.Join(k.dir, "pack"),
		},
		settings: thrifty(), stdin: strings.NewReader(names.String()), idle: true,
	})
	if err != nil {
		return err
	}
	made := filepath.Join(k.dir, "pack-"+strings.TrimSpace(string(out)))
	if _, err := os.Stat(made + indexSuffix); err != nil {
		return fmt.Errorf("the joined pack: %w", err)
	}
	// Git has made the files durable, not their names.
	if err := objects.SyncDir(k.dir); err != nil {
		return err
	}
	for _, p := range old {
		if p.path == made {
			continue
		}
		// The index first, by which git finds a pack.
		if err := errors.Join(os.Remove(p.path+indexSuffix), os.Remove(p.path+packSuffix)); err != nil {
			return err
		}
	}
	if _, err := k.runner.run(ctx, call{args: []string{"prune-packed", "--quiet"}, idle: true}); err != nil {
		return err
	}
	// The reader holds files open that have no name any more.
	return k.objects.Close()
}

// Prune packs what the refs reach and drops everything else. Nobody may believe in an object that no ref reaches: it is for
// the time before a workspace is opened.
func (k Packs) Prune(ctx context.Context) error {
	for _, args := range [][]string{
		{"repack", "-a", "-d", "-n", "-q", "--no-write-bitmap-index"},
		{"prune", "--expire=now"},
	} {
		if _, err := k.runner.run(ctx, call{args: args, settings: thrifty()}); err != nil {
			return fmt.Errorf("prune trusted repository: %w", err)
		}
	}
	return errors.Join(objects.SyncDir(k.dir), k.objects.Close())
}

// Added gives the bytes of the packs that are not kept: what checkpoints have added.
func (k Packs) Added() (int64, error) {
	packs, err := k.packs()
	var sum int64
	for _, p := range packs {
		sum += p.size
	}
	return sum, err
}
