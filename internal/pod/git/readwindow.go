// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// errForged says that content which was kept in memory is not what its ID names. It is read from git then.
var errForged = errors.New("content in memory is not what its name says")

// window is a part of the objects that are read at once: objects from git, and between them recently written ones, from memory. Git reads
// ahead while the others are visited.
type window struct {
	objects *Objects
	ids     []objects.ID
	limit   int64
	// kept is the content of each of ids that is in memory; nil for the others, which come from git.
	kept  [][]byte
	asked []objects.ID
	// visited counts the visited ones, in their sequence.
	visited int
}

// window begins a list of objects, as far as one request asks for them.
func (o *Objects) window(ids []objects.ID, limit int64) *window {
	w := &window{objects: o, limit: limit}
	for i, id := range ids {
		content := o.keptOf(id)
		if content == nil {
			if len(w.asked) == readWindow {
				break
			}
			w.asked = append(w.asked, id)
		}
		w.ids, w.kept = ids[:i+1], append(w.kept, content)
	}
	return w
}

// keptOf is the content of a blob that is in memory; nil for any other object.
func (o *Objects) keptOf(id objects.ID) []byte {
	if o.recent == nil {
		return nil
	}
	content, ok := o.recent.Get(id)
	if ok && content == nil {
		return []byte{}
	}
	return content
}

// read visits the objects in their sequence. If it ends with errForged, the caller must read the others again.
func (w *window) read(ctx context.Context, visit func(i int, content []byte, err error)) error {
	if len(w.asked) == 0 {
		return w.each(ctx, nil, visit)
	}
	return w.objects.ask(ctx, requestFor("contents", w.asked...), func(p *catFile) error { return w.each(ctx, p, visit) })
}

func (w *window) each(ctx context.Context, p *catFile, visit func(i int, content []byte, err error)) error {
	if err := w.check(ctx); err != nil {
		return err
	}
	for i, id := range w.ids {
		content, err := w.one(p, i, id)
		if errors.Is(err, errBroken) {
			return err
		}
		if i >= w.visited { // it may be asked for again, when a process died
			w.visited++
			visit(i, content, err)
		}
	}
	return nil
}

// check makes sure that what is in memory is what its IDs name, while git fills its pipe.
func (w *window) check(ctx context.Context) error {
	for i, content := range w.kept {
		switch {
		case content == nil || i < w.visited:
		case ctx.Err() != nil:
			return errors.Join(fmt.Errorf("read objects: %w", context.Cause(ctx)), errBroken)
		case !w.objects.recent.Same(w.ids[i], content):
			// What git answers is not read: its process has to be ended.
			return errors.Join(fmt.Errorf("%w: %s", errForged, w.ids[i]), errBroken)
		}
	}
	return nil
}

// one gives the content of one object, from memory or as git answers.
func (w *window) one(p *catFile, i int, id objects.ID) ([]byte, error) {
	content := w.kept[i]
	switch {
	case content == nil:
		return p.content(id, w.limit)
	case int64(len(content)) > w.limit:
		return nil, tooLarge(id, int64(len(content)), w.limit)
	}
	return content, nil
}
