// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
)

const (
	// maxPending bounds the content kept in memory before it is compressed, in bytes.
	maxPending = 8 << 20
	// maxInline is the size above which a blob is streamed instead of kept in memory.
	maxInline = 1 << 20
)

// ErrShort is returned by AddBlob when the reader ends before the announced size, or continues after it: the file changed
// while it was read.
var ErrShort = errors.New("content does not have the size announced")

// Pack collects objects and writes them as one pack: one file and one fsync for a checkpoint of any number of files.
// Small objects are hashed at once but compressed only when Commit is called or maxPending is reached, so that a frozen
// agent does not wait for compression. Not for concurrent use.
type Pack struct {
	store   *Store
	known   func(ID) bool
	hasher  hash.Hash
	guard   collisionHash
	pending []object
	// bytes of pending content.
	bytes   int
	added   map[ID]struct{}
	entries []packEntry
	out     *packFile
}

type object struct {
	id      ID
	kind    Kind
	content []byte
}

// packEntry is one line of the pack's index.
type packEntry struct {
	id     ID
	crc    uint32
	offset int64
}

// NewPack begins a pack. The pack omits objects for which known answers true, because the repository has them; known
// may be nil.
func (s *Store) NewPack(known func(ID) bool) *Pack {
	if known == nil {
		known = func(ID) bool { return false }
	}
	return &Pack{store: s, known: known, hasher: sha1.New(), guard: newCollisionHash(), added: make(map[ID]struct{})}
}

// Len counts the objects that are new.
func (p *Pack) Len() int { return len(p.added) }

// IDs lists the objects that are new, also after Commit.
func (p *Pack) IDs() []ID { return slices.Collect(maps.Keys(p.added)) }

// Has reports whether the object is in this pack.
func (p *Pack) Has(id ID) bool {
	_, found := p.added[id]
	return found
}

// Add adds an object whose content the pack may keep.
func (p *Pack) Add(kind Kind, content []byte) (ID, error) {
	id := p.hash(kind, content)
	return id, p.AddNamed(id, kind, content)
}

// AddNamed is Add for an object whose ID is already known to be that of the content.
func (p *Pack) AddNamed(id ID, kind Kind, content []byte) error {
	if p.Has(id) || p.known(id) {
		return nil
	}
	p.added[id] = struct{}{}
	p.pending = append(p.pending, object{id, kind, content})
	p.bytes += len(content)
	if p.bytes < maxPending {
		return nil
	}
	return p.flush()
}

func (p *Pack) hash(kind Kind, content []byte) (id ID) {
	p.hasher.Reset()
	p.hasher.Write(header(kind, int64(len(content))))
	p.hasher.Write(content)
	p.hasher.Sum(id[:0])
	return id
}

// AddBlob reads exactly size bytes and adds them as a blob. Large ones are streamed, so that memory stays bounded. After
// an error the pack is as it was before.
func (p *Pack) AddBlob(r io.Reader, size int64) (ID, error) {
	if size <= maxInline {
		content, err := readExactly(r, size)
		if err != nil {
			return ID{}, err
		}
		return p.Add(KindBlob, content)
	}
	return p.stream(r, size)
}

// readExactly reads size bytes and makes sure that no more follow.
func readExactly(r io.Reader, size int64) ([]byte, error) {
	// One byte more than announced tells whether the file has grown.
	b := make([]byte, size+1)
	n, err := io.ReadFull(r, b)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	case int64(n) != size:
		return nil, fmt.Errorf("%w: %d bytes announced, %d or more read", ErrShort, size, n)
	}
	return b[:size:size], nil
}

// stream hashes and compresses in one pass; what turns out to be known or of the wrong size is cut off again.
func (p *Pack) stream(r io.Reader, size int64) (ID, error) {
	if err := p.flush(); err != nil {
		return ID{}, err
	}
	out, err := p.file()
	if err != nil {
		return ID{}, err
	}
	start := out.offset
	p.guard.Reset()
	p.guard.Write(header(KindBlob, size))
	entry, err := out.write(KindBlob, size, io.TeeReader(io.LimitReader(r, size), p.guard))
	if err == nil {
		err = expectEnd(r)
	}
	if err != nil {
		return ID{}, errors.Join(err, out.cut(start))
	}
	if _, collides := p.guard.CollisionResistantSum(entry.id[:0]); collides {
		return ID{}, errors.Join(&CollisionError{Kind: KindBlob}, out.cut(start))
	}
	if p.Has(entry.id) || p.known(entry.id) {
		return entry.id, out.cut(start)
	}
	p.added[entry.id] = struct{}{}
	p.entries = append(p.entries, entry)
	return entry.id, nil
}

// expectEnd makes sure that nothing follows what was read.
func expectEnd(r io.Reader) error {
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("%w: more bytes follow", ErrShort)
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// Forget drops unwanted objects that are not compressed yet.
func (p *Pack) Forget(wanted func(ID) bool) {
	p.pending = slices.DeleteFunc(p.pending, func(o object) bool {
		if wanted(o.id) {
			return false
		}
		delete(p.added, o.id)
		p.bytes -= len(o.content)
		return true
	})
}

// flush compresses what is pending into the file.
func (p *Pack) flush() error {
	if len(p.pending) == 0 {
		return nil
	}
	out, err := p.file()
	if err != nil {
		return err
	}
	for _, o := range p.pending {
		id, err := p.check(o)
		if err != nil {
			return err
		}
		entry, err := out.writeBytes(o.kind, o.content)
		if err != nil {
			return err
		}
		entry.id = o.id
		p.entries = append(p.entries, entry)
		if o.kind == KindBlob {
			p.store.recent.keep(id, o.content)
		}
	}
	clear(p.pending)
	p.pending, p.bytes = p.pending[:0], 0
	return nil
}

// file opens the pack when the first object is written.
func (p *Pack) file() (*packFile, error) {
	if p.out != nil {
		return p.out, nil
	}
	out, err := newPackFile(p.store)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrite, WrapFull(err))
	}
	p.out = out
	return out, nil
}

// Commit makes the pack durable and visible to Git. A pack without objects leaves nothing behind.
func (p *Pack) Commit() error {
	defer p.Abort()
	if err := p.flush(); err != nil {
		return err
	}
	if len(p.entries) == 0 {
		return nil
	}
	sum, err := p.out.finish(len(p.entries))
	if err != nil {
		return fmt.Errorf("%w: finish: %w", ErrWrite, WrapFull(err))
	}
	if err := p.out.publish(sum, encodeIndex(p.entries, sum)); err != nil {
		return fmt.Errorf("%w: publish: %w", ErrWrite, WrapFull(err))
	}
	return nil
}

// Abort forgets the pack; after Commit it does nothing.
func (p *Pack) Abort() {
	if p.out != nil {
		p.out.discard()
		p.out = nil
	}
	p.pending, p.entries, p.bytes = nil, nil, 0
}
