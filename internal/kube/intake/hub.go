// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// hub wakes long polls when something has changed that their orders may depend on.
type hub struct {
	mu sync.Mutex
	// waiting polls by namespace and name of their Feature.
	waiting map[string]map[string]map[chan struct{}]struct{}
}

// wait gives a channel that receives after each change from now on; changes that come close together are one. leave
// must be called in the end.
func (h *hub) wait(feature types.NamespacedName) (changed <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == nil {
		h.waiting = map[string]map[string]map[chan struct{}]struct{}{}
	}
	project := h.waiting[feature.Namespace]
	if project == nil {
		project = map[string]map[chan struct{}]struct{}{}
		h.waiting[feature.Namespace] = project
	}
	if project[feature.Name] == nil {
		project[feature.Name] = map[chan struct{}]struct{}{}
	}
	project[feature.Name][c] = struct{}{}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(project[feature.Name], c)
		if len(project[feature.Name]) == 0 {
			delete(project, feature.Name)
		}
		if len(project) == 0 {
			delete(h.waiting, feature.Namespace)
		}
	}
}

// feature wakes the polls of one Feature.
func (h *hub) feature(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wake(h.waiting[key.Namespace][key.Name])
}

// project wakes the polls of one namespace.
func (h *hub) project(namespace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, polls := range h.waiting[namespace] {
		wake(polls)
	}
}

// all wakes every poll.
func (h *hub) all() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, project := range h.waiting {
		for _, polls := range project {
			wake(polls)
		}
	}
}

func wake(polls map[chan struct{}]struct{}) {
	for c := range polls {
		select {
		case c <- struct{}{}:
		default: // it has not looked since the last change
		}
	}
}
