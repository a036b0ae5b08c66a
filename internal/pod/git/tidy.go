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

	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
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

// thrifty are settings for work that nobody waits for, next to an agent that needs the memory.
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

// Packs are the packs of the repository's objects. Its methods put packs together and drop objects that nothing needs any more.
type Packs struct {
	dir     string
	runner  runner
	objects *Objects
}

// Packs of the repository.
func (r *Repository) Packs() Packs {
	return Packs{dir: filepath.Join(r.dir, "objects", "pack"), runner: r.runner, objects: r.objects}
}

// kept lists the packs that are left as they are, as paths without suffix. Git marks a pack before it is there, so that a
// fetch that was killed leaves marks of none.
func (k Packs) kept() ([]string, error) {
	marks, err := filepath.Glob(filepath.Join(k.dir, "*"+keepSuffix))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, mark := range marks {
		path := strings.TrimSuffix(mark, keepSuffix)
		_, noPack := os.Stat(path + packSuffix)
		_, noIndex := os.Stat(path + indexSuffix)
		switch err := errors.Join(noPack, noIndex); {
		case err == nil:
			found = append(found, path)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return found, nil
}

// packs lists the packs that may be put together with others, the smallest first.
func (k Packs) packs() ([]pack, error) {
	list, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, fmt.Errorf("list packs: %w", err)
	}
	kept, err := k.kept()
	if err != nil {
		return nil, fmt.Errorf("list packs: %w", err)
	}
	var found []pack
	for _, e := range list {
		name, isIndex := strings.CutSuffix(e.Name(), indexSuffix)
		if !isIndex || slices.Contains(kept, filepath.Join(k.dir, name)) {
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

// Keep marks all existing packs, which Tidy and Prune then leave as they are: the packs of the base, which may be large.
func (k Packs) Keep() error {
	packs, err := k.packs()
	for _, p := range packs {
		err = errors.Join(err, os.WriteFile(p.path+keepSuffix, nil, 0o444))
	}
	if err == nil {
		err = durable.SyncDir(k.dir)
	}
	if err != nil {
		return fmt.Errorf("keep packs: %w", objects.WrapFull(err))
	}
	return nil
}

// Tidy puts packs and single objects together if there are more than limit packs, and says whether it did. It loses no object, reachable or
// not, so that stored objects stay stored: it may run during a capture. It removes packs after their replacement is durable; a crash leaves
// at most duplicates.
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
	if err := durable.SyncDir(k.dir); err != nil {
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

// Prune packs what the refs reach and drops everything else. Nobody may rely on an object that no ref reaches: call it before a workspace
// is open. The history of the base is in kept packs, and Prune does not walk it, however long it is; a zero base means no base.
func (k Packs) Prune(ctx context.Context, base objects.ID) error {
	if err := k.prune(ctx, base); err != nil {
		return fmt.Errorf("prune trusted repository: %w", err)
	}
	return errors.Join(durable.SyncDir(k.dir), k.objects.Close())
}

func (k Packs) prune(ctx context.Context, base objects.ID) error {
	old, err := k.packs()
	if err != nil {
		return err
	}
	behind, err := k.behind(ctx, base)
	if err != nil {
		return err
	}
	made, err := k.pack(ctx, call{args: []string{"--revs", "--all", "--honor-pack-keep"}, stdin: strings.NewReader(behind)}, k.dir)
	if err != nil {
		return err
	}
	if err := durable.SyncDir(k.dir); err != nil {
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
	// What refs reach is in a pack now, and what a crash left is nothing.
	for _, pattern := range []string{"../[0-9a-f][0-9a-f]", "tmp_*"} {
		left, err := filepath.Glob(filepath.Join(k.dir, pattern))
		if err != nil {
			return err
		}
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// behind is the argument that keeps git from walking the history behind the base: empty where no pack that is kept holds the
// base. A fetch brings a commit and its history as one pack.
func (k Packs) behind(ctx context.Context, base objects.ID) (string, error) {
	if base.IsZero() {
		return "", nil
	}
	unkept, err := k.runner.run(ctx, call{
		args:  []string{"pack-objects", "--stdout", "--quiet", "--non-empty", "--honor-pack-keep"},
		stdin: strings.NewReader(base.String() + "\n"),
	})
	if err != nil || len(unkept) > 0 {
		return "", err
	}
	return "^" + base.String() + "\n", nil
}

// pack has git make a durable pack in a directory, and gives its path without suffix; empty where there is nothing to pack.
func (k Packs) pack(ctx context.Context, c call, dir string) (string, error) {
	c.args = append(append([]string{"pack-objects", "--delta-base-offset", "--quiet", "--non-empty"}, c.args...), filepath.Join(dir, "pack"))
	c.settings = thrifty()
	out, err := k.runner.run(ctx, c)
	name := strings.TrimSpace(string(out))
	if err != nil || name == "" {
		return "", err
	}
	made := filepath.Join(dir, "pack-"+name)
	if _, err := os.Stat(made + indexSuffix); err != nil {
		return "", fmt.Errorf("the new pack: %w", err)
	}
	return made, nil
}

// History returns the packs that hold everything that a commit reaches, as paths without suffix. These are the packs marked by Keep, and
// one in dir with everything that the base does not reach. A zero base means no base.
func (k Packs) History(ctx context.Context, commit, base objects.ID, dir string) ([]string, error) {
	paths, err := k.kept()
	if err != nil {
		return nil, err
	}
	behind, err := k.behind(ctx, base)
	if err != nil {
		return nil, err
	}
	in := strings.NewReader(commit.String() + "\n" + behind)
	made, err := k.pack(ctx, call{args: []string{"--revs", "--honor-pack-keep"}, stdin: in}, dir)
	if err != nil {
		return nil, fmt.Errorf("pack history of %s: %w", commit, err)
	}
	if made != "" {
		paths = append(paths, made)
	}
	return paths, nil
}

// Added returns the bytes of the packs that are not kept: what checkpoints have added.
func (k Packs) Added() (int64, error) {
	packs, err := k.packs()
	var sum int64
	for _, p := range packs {
		sum += p.size
	}
	return sum, err
}
