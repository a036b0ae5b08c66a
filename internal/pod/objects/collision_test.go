// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// shattered is the beginning of the first two files with the same SHA-1 (shattered.io), of which they differ in the last
// 128 bytes. A blob of it has another beginning, so that it collides with nothing: no collision of blobs is known yet.
func shattered(t *testing.T) [2][]byte {
	t.Helper()
	var files [2][]byte
	for i, name := range []string{"shattered-1", "shattered-2"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err == nil {
			files[i], err = hex.DecodeString(string(bytes.TrimSpace(text)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestCollisionsAreRecognised(t *testing.T) {
	files := shattered(t)
	if bytes.Equal(files[0], files[1]) || sha1.Sum(files[0]) != sha1.Sum(files[1]) {
		t.Fatal("the samples are no collision")
	}
	for i, content := range files {
		h := newCollisionHash()
		h.Write(content)
		if _, collides := h.CollisionResistantSum(nil); !collides {
			t.Errorf("file %d is not recognised", i)
		}
		h.Reset()
		h.Write(content[:len(content)-128])
		if sum, collides := h.CollisionResistantSum(nil); collides || !bytes.Equal(sum, sumOf(content[:len(content)-128])) {
			t.Errorf("the common beginning: sum %x, collides %v", sum, collides)
		}
	}
}

func sumOf(b []byte) []byte {
	sum := sha1.Sum(b)
	return sum[:]
}

// alarm is a guard that finds a collision in whatever holds its mark.
type alarm struct {
	collisionHash

	mark []byte
	seen bytes.Buffer
}

func (a *alarm) Reset() {
	a.seen.Reset()
	a.collisionHash.Reset()
}

func (a *alarm) Write(b []byte) (int, error) {
	a.seen.Write(b)
	return a.collisionHash.Write(b)
}

func (a *alarm) CollisionResistantSum(in []byte) ([]byte, bool) {
	sum, _ := a.collisionHash.CollisionResistantSum(in)
	return sum, bytes.Contains(a.seen.Bytes(), a.mark)
}

// TestCollisionsAreNotStored: nothing of a pack with a collision becomes visible, whatever its size.
func TestCollisionsAreNotStored(t *testing.T) {
	for name, content := range map[string][]byte{
		"small": []byte("a twin of something"), "streamed": append([]byte("a twin of something"), make([]byte, maxInline)...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			pack := NewStore(dir).NewPack(nil)
			pack.guard = &alarm{collisionHash: newCollisionHash(), mark: []byte("a twin of")}
			if _, err := pack.Add(KindBlob, []byte("harmless")); err != nil {
				t.Fatal(err)
			}
			_, err := pack.AddBlob(bytes.NewReader(content), int64(len(content)))
			if err == nil {
				err = pack.Commit()
			}
			pack.Abort()
			var collision *CollisionError
			if !errors.As(err, &collision) || collision.Kind != KindBlob {
				t.Errorf("error = %v, want a CollisionError", err)
			}
			if packs, _ := filepath.Glob(filepath.Join(dir, "pack", "*.pack")); len(packs) != 0 {
				t.Errorf("stored: %v", packs)
			}
		})
	}
}
