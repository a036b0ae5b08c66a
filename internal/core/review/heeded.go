// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"iter"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// heedOf is how many of the last directives of a reviewer count. A reviewer with fewer is not measured.
	heedOf = 20
	// leastHeed is the share of them, in percent, from which agents heed the reviewer.
	leastHeed = 30
)

// Heed is how many of the last directives of a reviewer agents have addressed.
type Heed struct {
	// Reviewer is its name.
	Reviewer string
	// Addressed of the last directives, whose number is Of.
	Addressed, Of int
}

// Measure counts the last directives of each of these reviewers. It gets directives with the newest first. Open ones do not count, because an agent may still address
// them. Directives that were dropped unread do not count either: no agent could heed them. Reviewers that have given too few are not in the result, which has their order.
func Measure(reviewers []Reviewer, newest iter.Seq[protocol.DirectiveStatus]) (list []Heed) {
	counts := map[string]Heed{}
	for d := range newest {
		h := counts[d.Source]
		if d.State == protocol.DirectivePending || d.State == protocol.DirectiveActive || d.Unread || h.Of == heedOf {
			continue
		}
		if h.Of++; d.State == protocol.DirectiveAddressed {
			h.Addressed++
		}
		counts[d.Source] = h
	}
	for _, r := range reviewers {
		if h := counts[r.Name]; h.Of == heedOf {
			h.Reviewer = r.Name
			list = append(list, h)
		}
	}
	return list
}

// Heeded says whether agents address enough of the reviewer's directives. Otherwise it looks only when a milestone is complete.
func (h Heed) Heeded() bool { return h.Addressed*100 >= leastHeed*h.Of }

// Words for users.
func (h Heed) Words() string {
	share := 0
	if h.Of > 0 {
		share = h.Addressed * 100 / h.Of
	}
	said := fmt.Sprintf("Agents have addressed %d of the last %d directives of reviewer %s in this project (%d %%).", h.Addressed, h.Of, h.Reviewer, share)
	if h.Heeded() {
		return said
	}
	return fmt.Sprintf("%s Below %d %%, it looks only when a milestone is complete: tell it in the policy what matters to your team, or turn it off.", said, leastHeed)
}
