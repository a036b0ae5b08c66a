// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// stalePause is how long a cache is given at first to show an object as it was last written. It doubles with each
	// look that is too early: the event by which the cache learns of the write wakes the reconcile anyway, so that
	// looking again is only for an event that got lost.
	stalePause = 50 * time.Millisecond
	// longestPause bounds it: a watch that stalls for minutes costs a look every ten seconds.
	longestPause = 10 * time.Second
)

// Fresh knows the last written version of each object, so that a reconcile does not start from a cache without that write, and conflict
// with it. It only avoids conflicts; correctness does not depend on it.
type Fresh struct {
	mu   sync.Mutex
	last map[types.UID]expected
}

// expected is a version that a cache will show, and how often it was looked for too early.
type expected struct {
	version string
	looks   int
}

// Wrote remembers the version that a write of the object led to, or that a live read showed.
func (f *Fresh) Wrote(uid types.UID, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		f.last = map[types.UID]expected{}
	}
	f.last[uid] = expected{version: version}
}

// Check ends the reconcile quietly while o is older than its last written version, and forgets that version once the cache has it.
func (f *Fresh) Check(o client.Object) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, ok := f.last[o.GetUID()]
	if !ok {
		return nil
	}
	// A server whose versions cannot be compared has to do with optimistic locking alone.
	if order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), last.version); err == nil && order < 0 {
		pause := min(stalePause<<min(last.looks, 16), longestPause)
		last.looks++
		f.last[o.GetUID()] = last
		return Quietf(pause, "%s is older in the cache than its last write", client.ObjectKeyFromObject(o))
	}
	delete(f.last, o.GetUID())
	return nil
}

// Forget drops the version of an object that will not appear again.
func (f *Fresh) Forget(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.last, uid)
}
