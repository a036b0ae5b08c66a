// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects reads and writes Git's objects in process: names, trees, commits and packs. No git process runs, so
// that nothing in a workspace can make one do anything.
package objects

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
)

// ID names an object: the SHA-1 of its header and content. The zero ID names nothing.
type ID [sha1.Size]byte

// EmptyTree is the tree without entries.
var EmptyTree = Hash(KindTree, nil)

// Kind of an object, as Git spells it.
type Kind string

// Kinds of objects.
const (
	KindBlob   Kind = "blob"
	KindTree   Kind = "tree"
	KindCommit Kind = "commit"
)

// ParseID reads the 40 hexadecimal digits of an ID.
func ParseID(s string) (ID, error) { return parseID([]byte(s)) }

func parseID(digits []byte) (ID, error) {
	var id ID
	if len(digits) != hex.EncodedLen(len(id)) {
		return ID{}, fmt.Errorf("object id %q: want %d hexadecimal digits, got %d characters", digits, hex.EncodedLen(len(id)), len(digits))
	}
	if _, err := hex.Decode(id[:], digits); err != nil {
		return ID{}, fmt.Errorf("object id %q: %w", digits, err)
	}
	return id, nil
}

// String returns the 40 hexadecimal digits; a zero ID gives 40 zeros, which Git reads as "nothing".
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether the ID names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText writes the hexadecimal digits; nothing for a zero ID.
func (id ID) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return nil, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	parsed, err := parseID(text)
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// Hash names the object of this kind and content.
func Hash(kind Kind, content []byte) ID {
	h := NewHash(kind, int64(len(content)))
	h.Write(content)
	var id ID
	h.Sum(id[:0])
	return id
}

// NewHash names an object of this kind and size whose content is written to it: the sum is the ID.
func NewHash(kind Kind, size int64) hash.Hash {
	h := sha1.New()
	h.Write(header(kind, size))
	return h
}

// header is what Git hashes before an object's content.
func header(kind Kind, size int64) []byte {
	head := make([]byte, 0, 32)
	head = append(head, kind...)
	head = append(head, ' ')
	head = strconv.AppendInt(head, size, 10)
	return append(head, 0)
}
