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
	"strconv"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Tree reads a whole tree, or that of a commit, with the sizes of its blobs.
func (r *Repository) Tree(ctx context.Context, id objects.ID) (*objects.Tree, error) {
	root, err := r.TreeOf(ctx, id)
	if err != nil {
		return nil, err
	}
	builder := treeBuilder{dirs: []openDir{{tree: &objects.Tree{ID: root}}}}
	err = r.runner.pipe(ctx, call{args: []string{"ls-tree", "-r", "-t", "-z", "-l", "--full-tree", root.String()}}, builder.read)
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", root, err)
	}
	return builder.dirs[0].tree, nil
}

// pipe runs git and lets read consume what it prints, of any length.
func (r runner) pipe(ctx context.Context, c call, read func(*bufio.Reader) error) error {
	in, out := io.Pipe()
	c.stdout = out
	done := make(chan error, 1)
	go func() {
		_, err := r.run(ctx, c)
		out.CloseWithError(err)
		done <- err
	}()
	err := read(bufio.NewReaderSize(in, 64<<10))
	// Nobody reads any more: git must not wait for it.
	in.CloseWithError(err)
	failed := <-done
	if failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return failed
	}
	return err
}

// treeBuilder puts the flat list of ls-tree -r -t back together.
type treeBuilder struct {
	// dirs from the root to the directory whose entries come now, and the path of that one with its '/'.
	dirs []openDir
	path []byte
}

type openDir struct {
	// length of the directory's path with its '/'; 0 for the root.
	length int
	tree   *objects.Tree
}

func (b *treeBuilder) read(in *bufio.Reader) error {
	for {
		// A record is not kept, and there are very many.
		record, err := in.ReadSlice(0)
		if errors.Is(err, bufio.ErrBufferFull) {
			var rest []byte
			record = bytes.Clone(record)
			rest, err = in.ReadBytes(0)
			record = append(record, rest...)
		}
		if errors.Is(err, io.EOF) && len(record) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if err := b.add(bytes.TrimSuffix(record, []byte{0})); err != nil {
			return err
		}
	}
}

// leave ends a directory. Its entries stay in memory for long, so the room that append left over is given back.
func (b *treeBuilder) leave() {
	last := len(b.dirs) - 1
	tree := b.dirs[last].tree
	tree.Entries = append(make([]objects.Entry, 0, len(tree.Entries)), tree.Entries...)
	b.dirs = b.dirs[:last]
	b.path = b.path[:b.dirs[last-1].length]
}

// add reads "<mode> <kind> <id> <size><tab><path>".
func (b *treeBuilder) add(record []byte) error {
	head, path, found := bytes.Cut(record, []byte{'\t'})
	var fields [4][]byte
	for i := range fields {
		fields[i], head, _ = bytes.Cut(bytes.TrimLeft(head, " "), []byte{' '})
	}
	if !found || len(fields[3]) == 0 || len(head) > 0 {
		return fmt.Errorf("entry %q of a tree", record)
	}
	mode, err := strconv.ParseUint(string(fields[0]), 8, 32)
	if err != nil {
		return fmt.Errorf("mode of %q: %w", path, err)
	}
	e := objects.Entry{Mode: uint32(mode)}
	if err := e.ID.UnmarshalText(fields[2]); err != nil {
		return fmt.Errorf("id of %q: %w", path, err)
	}
	if string(fields[3]) != "-" {
		if e.Size, err = strconv.ParseInt(string(fields[3]), 10, 64); err != nil {
			return fmt.Errorf("size of %q: %w", path, err)
		}
	}
	for !bytes.HasPrefix(path, b.path) {
		b.leave()
	}
	dir := b.dirs[len(b.dirs)-1]
	e.Name = string(path[dir.length:])
	if e.Mode == objects.ModeTree {
		e.Tree = &objects.Tree{ID: e.ID}
		b.path = append(append(b.path[:0], path...), '/')
		b.dirs = append(b.dirs, openDir{length: len(b.path), tree: e.Tree})
	}
	dir.tree.Entries = append(dir.tree.Entries, e)
	return nil
}
