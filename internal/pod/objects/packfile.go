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
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// packHeaderSize is "PACK", a version and the count of objects, four bytes each.
const packHeaderSize = 12

// packFile is the pack being written.
type packFile struct {
	store  *Store
	dir    string
	file   *os.File
	buffer *bufio.Writer
	zip    *zlib.Writer
	crc    uint32
	offset int64
}

func newPackFile(store *Store) (*packFile, error) {
	dir := filepath.Join(store.dir, "pack")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "tmp_pack_*")
	if err != nil {
		return nil, err
	}
	w := &packFile{store: store, dir: dir, file: f, buffer: bufio.NewWriterSize(f, 128<<10)}
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
		return n, fmt.Errorf("%w: %w", ErrWrite, WrapFull(err))
	}
	return n, nil
}

// packKind is the number of a kind in a pack.
func packKind(kind Kind) byte {
	switch kind {
	case KindCommit:
		return 1
	case KindTree:
		return 2
	case KindBlob:
		return 3
	default:
		return 4
	}
}

// begin writes the head of an entry: kind and size, seven bits a byte, the least first.
func (w *packFile) begin(kind Kind, size int64) (packEntry, error) {
	entry := packEntry{offset: w.offset}
	w.crc = 0
	head := make([]byte, 0, binary.MaxVarintLen64)
	b := packKind(kind)<<4 | byte(size&0x0f)
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
	return sum, errors.Join(w.file.Chmod(0o444), w.store.sync(w.file))
}

// publish gives pack and index their names: the index last, because Git finds packs by it.
func (w *packFile) publish(sum ID, index []byte) error {
	base := filepath.Join(w.dir, "pack-"+sum.String())
	if err := os.Rename(w.file.Name(), base+".pack"); err != nil {
		return err
	}
	return w.store.placeFile(w.dir, base+".idx", index)
}

// discard closes the file and removes it if it has no name yet.
func (w *packFile) discard() {
	// Removing fails after publish, as it should; a left-over tmp_pack_ file is pruned by Git.
	_ = w.file.Close()
	_ = os.Remove(w.file.Name())
}
