// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
)

// TestRecentIsBounded: however much is captured, in however many blobs, no more than the bounds is kept, and that is the
// newest.
func TestRecentIsBounded(t *testing.T) {
	for name, test := range map[string]struct{ blobs, size int }{
		"many blobs": {3*recentBlobs + 7, 20}, "much content": {60, recentBytes / 20}, "large blobs": {5, recentBytes/2 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			var r Recent
			for i := range test.blobs {
				content := bytes.Repeat(fmt.Appendf(nil, "%019d\n", i), test.size/20+1)[:test.size]
				r.keep(Hash(KindBlob, content), content)
				r.keep(Hash(KindBlob, content), content) // as it is captured twice
				sum := 0
				for _, content := range r.blobs {
					sum += len(content)
				}
				if sum != r.bytes || r.bytes > recentBytes || len(r.blobs) > recentBlobs || len(r.order) != len(r.blobs) {
					t.Fatalf("%d blobs (%d in order) of %d bytes (%d counted)", len(r.blobs), len(r.order), sum, r.bytes)
				}
				if _, kept := r.Get(Hash(KindBlob, content)); kept != (test.size <= recentBytes/2) {
					t.Fatalf("the newest of %d bytes is kept: %v", test.size, kept)
				}
			}
			r.Clear()
			if len(r.blobs)+len(r.order)+r.bytes > 0 {
				t.Error("something is left")
			}
		})
	}
}

// TestRecentGivesWhatWasStored: blobs of a pack are kept under the name that their content has, once they are checked, and
// nothing else is.
func TestRecentGivesWhatWasStored(t *testing.T) {
	store := NewStore(t.TempDir())
	pack := store.NewPack(nil)
	blob, tree := []byte("content\n"), []byte("100644 a\x00aaaaaaaaaaaaaaaaaaaa")
	id, err := pack.Add(KindBlob, blob)
	if err != nil {
		t.Fatal(err)
	}
	if _, kept := store.Recent().Get(id); kept {
		t.Error("kept before it was checked")
	}
	treeID, err := pack.Add(KindTree, tree)
	if err == nil {
		err = pack.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	if content, kept := store.Recent().Get(id); !kept || !bytes.Equal(content, blob) || !store.Recent().Same(id, content) {
		t.Errorf("%q, %v", content, kept)
	}
	if _, kept := store.Recent().Get(treeID); kept {
		t.Error("a tree is kept")
	}
	if store.Recent().Same(id, []byte("other\n")) {
		t.Error("other content is the same")
	}
	if _, kept := store.Recent().Get(id); kept {
		t.Error("something is kept after a forgery was seen")
	}
}

// TestWrongNamesAreNotStored: an object that its caller has named wrongly is not written, and not kept.
func TestWrongNamesAreNotStored(t *testing.T) {
	dir := t.TempDir()
	store := NewStore(dir)
	pack := store.NewPack(nil)
	wrong := Hash(KindBlob, []byte("harmless"))
	if err := pack.AddNamed(wrong, KindBlob, []byte("harmful")); err != nil {
		t.Fatal(err)
	}
	if err := pack.Commit(); !errors.Is(err, ErrWrite) {
		t.Errorf("%v, want ErrWrite", err)
	}
	if _, kept := store.Recent().Get(wrong); kept {
		t.Error("it is kept")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "pack", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
