// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

// Known is how many Features are remembered.
func (s *Shares) Known() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(len(s.last), len(s.held))
}
