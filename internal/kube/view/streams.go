// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import "sync"

const (
	// maxStreams bounds the answers that a replica passes on at a time: each holds a connection to a pod and 64 KiB.
	maxStreams = 16
	// maxStreamsEach bounds those of one user.
	maxStreamsEach = 4
)

// streams count open answers, in all and by user.
type streams struct {
	total, each int

	mu   sync.Mutex
	open int
	by   map[string]int
}

func newStreams(total, each int) *streams {
	return &streams{total: total, each: each, by: map[string]int{}}
}

// take counts one more, or says which bound is reached. The returned function gives it back.
func (s *streams) take(user string) (release func(), refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.by[user] >= s.each:
		return nil, "you have too many requests open: wait until one of them has ended"
	case s.open >= s.total:
		return nil, "too many requests are open: try again in a moment"
	}
	s.open++
	s.by[user]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if s.by[user]--; s.by[user] == 0 {
			delete(s.by, user)
		}
	}, ""
}
