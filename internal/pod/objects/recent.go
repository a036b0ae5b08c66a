// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import "sync"

const (
	// recentBytes bounds the content that Recent keeps: 1,000 changed files of 4 KB are half of it, and a watchdog's process
	// has 40 MiB.
	recentBytes = 8 << 20
	// recentBlobs bounds how many blobs that is: each costs some 150 bytes in addition to its content.
	recentBlobs = 8 << 10
)

// Recent keeps the blobs of the newest packs, so that a check does not read again what was captured a moment ago. It is bounded in bytes
// and in number: it drops the oldest blobs first. It returns content only for the ID that is its hash, which it computes on storing and
// again on returning. So it never returns other content than the blob with the ID. It is safe for concurrent use; the zero value is empty.
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

// Get returns the content that is kept for an ID. It is not compared with the ID yet, see Same.
func (r *Recent) Get(id ID) (content []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	content, ok = r.blobs[id]
	return content, ok
}

// Same says whether content is what an ID names. If not, Recent drops everything.
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
