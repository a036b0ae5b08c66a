// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bufio"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

const (
	// packHeaderSize is "PACK", a version and the count of objects, four bytes each.
	packHeaderSize = 12
	// maxPending bounds the content kept in memory before it is compressed, in bytes.
	maxPending = 8 << 20
	// maxInline is the size above which a blob is streamed instead of kept in memory.
	maxInline = 1 << 20
)

// ErrShort is returned by AddBlob when the reader ends before, or goes on after, the size announced: the file changed
// while it was read.
var ErrShort = errors.New("content does not have the size announced")

// Pack collects objects and writes them as one pack: one file and one fsync for a checkpoint of any number of files.
// Small objects are hashed at once but compressed only when Commit is called or maxPending is reached, so that a frozen
// agent does not wait for compression. Not for concurrent use.
type Pack struct {
	store   *Store
	known   func(ID) bool
	hasher  hash.Hash
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

// NewPack begins a pack. Objects for which known answers true are already in the repository and are left out; known
// may be nil.
func (s *Store) NewPack(known func(ID) bool) *Pack {
	if known == nil {
		known = func(ID) bool { return false }
	}
	return &Pack{store: s, known: known, hasher: sha1.New(), added: make(map[ID]struct{})}
}

// Len counts the objects that are new.
func (p *Pack) Len() int { return len(p.added) }

// Has tells whether the object is in this pack.
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
	p.hasher.Reset()
	p.hasher.Write(header(KindBlob, size))
	entry, err := out.write(KindBlob, size, io.TeeReader(io.LimitReader(r, size), p.hasher))
	if err == nil {
		err = expectEnd(r)
	}
	if err != nil {
		return ID{}, errors.Join(err, out.cut(start))
	}
	p.hasher.Sum(entry.id[:0])
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
		entry, err := out.writeBytes(o.kind, o.content)
		if err != nil {
			return err
		}
		entry.id = o.id
		p.entries = append(p.entries, entry)
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
	out, err := newPackFile(filepath.Join(p.store.dir, "pack"))
	if err != nil {
		return nil, WrapFull(err)
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
		return fmt.Errorf("finish pack: %w", WrapFull(err))
	}
	if err := p.out.publish(sum, encodeIndex(p.entries, sum)); err != nil {
		return fmt.Errorf("publish pack: %w", WrapFull(err))
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

// packFile is the pack being written.
type packFile struct {
	dir    string
	file   *os.File
	buffer *bufio.Writer
	zip    *zlib.Writer
	crc    uint32
	offset int64
}

func newPackFile(dir string) (*packFile, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "tmp_pack_*")
	if err != nil {
		return nil, err
	}
	w := &packFile{dir: dir, file: f, buffer: bufio.NewWriterSize(f, 128<<10)}
	// Level 1: compression takes two thirds of a checkpoint's time, and repacking squeezes harder later.
	w.zip, err = zlib.NewWriterLevel(w, zlib.BestSpeed)
	if err == nil {
		_, err = w.Write(packHeader(0))
	}
	if err != nil {
		w.discard()
		return nil, err
	}
	return w, nil
}

func packHeader(objects int) []byte {
	h := make([]byte, packHeaderSize)
	copy(h, "PACK")
	binary.BigEndian.PutUint32(h[4:], 2)
	binary.BigEndian.PutUint32(h[8:], uint32(objects))
	return h
}

// Write adds raw bytes and keeps count and checksum of them.
func (w *packFile) Write(b []byte) (int, error) {
	n, err := w.buffer.Write(b)
	w.crc = crc32.Update(w.crc, crc32.IEEETable, b[:n])
	w.offset += int64(n)
	if err != nil {
		return n, fmt.Errorf("write pack: %w", WrapFull(err))
	}
	return n, nil
}

// packKinds are the numbers of kinds in a pack.
var packKinds = map[Kind]byte{KindCommit: 1, KindTree: 2, KindBlob: 3, KindTag: 4}

// begin writes the head of an entry: kind and size, seven bits a byte, the least first.
func (w *packFile) begin(kind Kind, size int64) (packEntry, error) {
	entry := packEntry{offset: w.offset}
	w.crc = 0
	head := make([]byte, 0, binary.MaxVarintLen64)
	b := packKinds[kind]<<4 | byte(size&0x0f)
	for size >>= 4; size > 0; size >>= 7 {
		head = append(head, b|0x80)
		b = byte(size & 0x7f)
	}
	_, err := w.Write(append(head, b))
	w.zip.Reset(w)
	return entry, err
}

func (w *packFile) writeBytes(kind Kind, content []byte) (packEntry, error) {
	entry, err := w.begin(kind, int64(len(content)))
	if err != nil {
		return entry, err
	}
	if _, err := w.zip.Write(content); err != nil {
		return entry, err
	}
	err = w.zip.Close()
	entry.crc = w.crc
	return entry, err
}

func (w *packFile) write(kind Kind, size int64, r io.Reader) (packEntry, error) {
	entry, err := w.begin(kind, size)
	if err != nil {
		return entry, err
	}
	n, err := io.Copy(w.zip, r)
	if err != nil {
		return entry, err
	}
	if n != size {
		return entry, fmt.Errorf("%w: %d bytes announced, %d read", ErrShort, size, n)
	}
	err = w.zip.Close()
	entry.crc = w.crc
	return entry, err
}

// cut drops everything from an offset on.
func (w *packFile) cut(offset int64) error {
	if err := w.buffer.Flush(); err != nil {
		return err
	}
	if err := w.file.Truncate(offset); err != nil {
		return err
	}
	_, err := w.file.Seek(offset, io.SeekStart)
	w.offset = offset
	return err
}

// finish writes the count and the checksum of the whole, and makes the content durable.
func (w *packFile) finish(objects int) (ID, error) {
	if err := w.buffer.Flush(); err != nil {
		return ID{}, err
	}
	if _, err := w.file.WriteAt(packHeader(objects), 0); err != nil {
		return ID{}, err
	}
	h := sha1.New()
	if _, err := io.Copy(h, io.NewSectionReader(w.file, 0, w.offset)); err != nil {
		return ID{}, err
	}
	var sum ID
	h.Sum(sum[:0])
	if _, err := w.file.WriteAt(sum[:], w.offset); err != nil {
		return ID{}, err
	}
	return sum, errors.Join(w.file.Chmod(0o444), w.file.Sync())
}

// publish gives pack and index their names: the index last, because Git finds packs by it.
func (w *packFile) publish(sum ID, index []byte) error {
	base := filepath.Join(w.dir, "pack-"+sum.String())
	f, err := os.CreateTemp(w.dir, "tmp_idx_*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(index)
	if err = errors.Join(err, f.Chmod(0o444), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(w.file.Name(), base+".pack"); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), base+".idx"); err != nil {
		return err
	}
	return syncDir(w.dir)
}

// discard closes the file and removes it if it has no name yet.
func (w *packFile) discard() {
	// Removing fails after publish, as it should; a left-over tmp_pack_ file is pruned by Git.
	_ = w.file.Close()
	_ = os.Remove(w.file.Name())
}
