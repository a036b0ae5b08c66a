// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import "sync"

const (
	// recentBytes bounds the content that Recent keeps: 1,000 changed files of 4 KB are half of it, and a watchdog's process
	// has 40 MiB.
	recentBytes = 8 << 20
	// recentBlobs bounds how many blobs that is: each costs some 150 bytes beside its content.
	recentBlobs = 8 << 10
)

// Recent keeps the blobs that packs were written of last, so that what was captured a moment ago can be judged without
// being read again. It is bounded in bytes and in number: the oldest blobs go first. Content is given only for the ID that
// is its hash, computed when it is kept and again when it is given, so that nothing but what is stored under an ID can be
// had for it. It may be used by several goroutines; the zero value is empty.
type Recent struct {
	mu    sync.Mutex
	blobs map[ID][]byte
	// order of blobs, the oldest first.
	order []ID
	bytes int
}

// keep takes a blob whose ID was computed from this content, which nobody changes from now on.
func (r *Recent) keep(id ID, content []byte) {
	if len(content) > recentBytes/2 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.blobs[id]; known {
		return
	}
	if r.blobs == nil {
		r.blobs = make(map[ID][]byte)
	}
	r.blobs[id] = content
	r.order = append(r.order, id)
	r.bytes += len(content)
	for r.bytes > recentBytes || len(r.order) > recentBlobs {
		oldest := r.order[0]
		r.order = r.order[1:]
		r.bytes -= len(r.blobs[oldest])
		delete(r.blobs, oldest)
	}
}

// Get gives the content that is kept for an ID. It is not compared with the ID yet, see Same.
func (r *Recent) Get(id ID) (content []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	content, ok = r.blobs[id]
	return content, ok
}

// Same says whether content is what an ID names. Where it is not, nothing is kept any more.
func (r *Recent) Same(id ID, content []byte) bool {
	if Hash(KindBlob, content) == id {
		return true
	}
	r.Clear()
	return false
}

// Clear forgets everything.
func (r *Recent) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs, r.order, r.bytes = nil, nil, 0
}
