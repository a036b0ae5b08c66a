// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// maxTreeObject bounds a tree object in bytes: a directory of a million names fits.
const maxTreeObject = 64 << 20

// Reach is a set of objects, with everything beneath their trees. It is for one goroutine.
type Reach struct {
	repository *Repository
	seen       map[objects.ID]struct{}
}

// NewReach is an empty set of objects of the repository.
func (r *Repository) NewReach() *Reach {
	return &Reach{repository: r, seen: make(map[objects.ID]struct{})}
}

// Has reports whether the object is in the set.
func (x *Reach) Has(id objects.ID) bool {
	_, found := x.seen[id]
	return found
}

// Add adds one object, and nothing beneath it.
func (x *Reach) Add(id objects.ID) { x.seen[id] = struct{}{} }

// Remove removes one object.
func (x *Reach) Remove(id objects.ID) { delete(x.seen, id) }

// AddTree adds a tree with everything in it, and returns what is new.
func (x *Reach) AddTree(ctx context.Context, id objects.ID) ([]objects.ID, error) {
	var fresh []objects.ID
	err := x.walk(ctx, id, &fresh)
	if err != nil {
		return nil, fmt.Errorf("objects of tree %s: %w", id, err)
	}
	return fresh, nil
}

func (x *Reach) walk(ctx context.Context, id objects.ID, fresh *[]objects.ID) error {
	if x.Has(id) || id == objects.EmptyTree {
		return nil
	}
	_, content, err := x.repository.objects.Read(ctx, id, maxTreeObject)
	if err != nil {
		return err
	}
	entries, err := objects.ParseTree(content)
	if err != nil {
		return err
	}
	x.Add(id)
	*fresh = append(*fresh, id)
	for i := range entries {
		switch e := &entries[i]; {
		case e.Mode == objects.ModeTree:
			if err := x.walk(ctx, e.ID, fresh); err != nil {
				return err
			}
		case e.Mode != objects.ModeGitlink && !x.Has(e.ID):
			x.Add(e.ID)
			*fresh = append(*fresh, e.ID)
		}
	}
	return nil
}

// askAtOnce is how many objects one run of git checks: their names take some megabytes.
const askAtOnce = 1 << 16

// OnDisk is how many bytes the objects take in the repository, together.
func (k Packs) OnDisk(ctx context.Context, ids []objects.ID) (int64, error) {
	var sum int64
	for part := range slices.Chunk(ids, askAtOnce) {
		n, err := k.onDisk(ctx, part)
		if err != nil {
			return 0, fmt.Errorf("size of objects: %w", err)
		}
		sum += n
	}
	return sum, nil
}

func (k Packs) onDisk(ctx context.Context, ids []objects.ID) (int64, error) {
	var in strings.Builder
	for _, id := range ids {
		in.WriteString(id.String() + "\n")
	}
	var out bytes.Buffer
	_, err := k.runner.run(ctx, call{args: []string{"cat-file", "--batch-check=%(objectsize:disk)"}, stdin: strings.NewReader(in.String()), stdout: &out})
	if err != nil {
		return 0, err
	}
	var sum int64
	for line := range strings.Lines(out.String()) {
		n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q: %w", line, ErrNoObject)
		}
		sum += n
	}
	return sum, nil
}

// Retain drops every object that is not in the set, from the packs that are not kept. Nobody else may write to the repository meanwhile, or
// rely on an object that is not in the set. Retain replaces each pack after its replacement is durable, and needs room for one pack at
// most. A crash leaves some objects that could have gone.
func (k Packs) Retain(ctx context.Context, keep *Reach) error {
	packs, err := k.packs()
	if err != nil {
		return err
	}
	for _, p := range packs { // the smallest first: they give room to the others
		if err := k.retain(ctx, p, keep); err != nil {
			return fmt.Errorf("drop objects of the trusted repository: %w", err)
		}
	}
	// The reader holds files open that have no name any more.
	return errors.Join(durable.SyncDir(k.dir), k.objects.Close())
}

func (k Packs) retain(ctx context.Context, p pack, keep *Reach) error {
	all, kept := 0, 0
	err := k.packed(ctx, p, func(id objects.ID) error {
		all++
		if keep.Has(id) {
			kept++
		}
		return nil
	})
	if err != nil || kept == all {
		return err
	}
	if kept > 0 {
		made, err := k.packSome(ctx, p, keep)
		if err != nil || made == p.path {
			return err
		}
		if err := durable.SyncDir(k.dir); err != nil {
			return err
		}
	}
	// The index first, by which git finds a pack.
	return errors.Join(os.Remove(p.path+indexSuffix), os.Remove(p.path+packSuffix))
}

// packed calls visit for the objects of a pack, of which it holds none.
func (k Packs) packed(ctx context.Context, p pack, visit func(objects.ID) error) error {
	index, err := os.Open(p.path + indexSuffix)
	if err != nil {
		return err
	}
	defer func() { _ = index.Close() }()
	return k.runner.pipe(ctx, call{args: []string{"show-index"}, stdin: index, idle: true}, func(in *bufio.Reader) error {
		for {
			line, err := in.ReadSlice('\n')
			if errors.Is(err, io.EOF) && len(line) == 0 {
				return nil
			}
			fields := bytes.Fields(line)
			var id objects.ID
			if err == nil && len(fields) >= 2 {
				err = id.UnmarshalText(fields[1])
			}
			if err != nil || len(fields) < 2 {
				return errors.Join(fmt.Errorf("%w: index of %s: %q", ErrCorrupt, filepath.Base(p.path), line), err)
			}
			if err := visit(id); err != nil {
				return err
			}
		}
	})
}

// packSome makes a durable pack of the objects of another one that are in the set.
func (k Packs) packSome(ctx context.Context, p pack, keep *Reach) (string, error) {
	in, out := io.Pipe()
	listed := make(chan error, 1)
	go func() {
		err := k.packed(ctx, p, func(id objects.ID) error {
			if !keep.Has(id) {
				return nil
			}
			_, err := io.WriteString(out, id.String()+"\n")
			return err
		})
		out.CloseWithError(err) // an incomplete list makes no pack
		listed <- err
	}()
	made, err := k.pack(ctx, call{stdin: in, idle: true}, k.dir)
	in.CloseWithError(err) // a list that nobody reads any more has to end
	return made, errors.Join(err, <-listed)
}
