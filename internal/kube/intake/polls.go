// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxPolls bounds the open polls of this replica; maxPollsEach those of one Feature: its watchdog needs one, and one
// more while it notices that the first has broken.
const (
	maxPolls     = 12_000
	maxPollsEach = 4
)

// polls count open polls, in all and by Feature.
type polls struct {
	total, each int

	mu   sync.Mutex
	open int
	by   map[types.NamespacedName]int
}

func newPolls(total, each int) *polls {
	return &polls{total: total, each: each, by: map[types.NamespacedName]int{}}
}

// take counts one more poll, or says that there are too many. The returned function gives it back.
func (p *polls) take(key types.NamespacedName) (release func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open >= p.total || p.by[key] >= p.each {
		return nil, false
	}
	p.open++
	p.by[key]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open--
		if p.by[key]--; p.by[key] == 0 {
			delete(p.by, key)
		}
	}, true
}
