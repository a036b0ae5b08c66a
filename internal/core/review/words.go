// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Outcome of a review that gives directives, or none, and still finds a number of others.
func Outcome(kept []protocol.Directive, still int) string {
	if len(kept) == 0 && still == 0 {
		return protocol.ReviewAligned
	}
	return protocol.ReviewMinorDrift
}

// Words say to users what a reviewer has found, and how many directives it gives, such as "Code style review: 3 inconsistencies, 2 cleanup directives". A
// reviewer that gives none is only named.
func Words(r Reviewer, found, kept int) string {
	if r.Mute {
		return r.Title + " review"
	}
	if found == 0 {
		return fmt.Sprintf("%s review: no %s", r.Title, r.Many)
	}
	kind := strings.ToLower(r.Directive) + " directive"
	return fmt.Sprintf("%s review: %s, %s", r.Title, count(found, r.One, r.Many), count(kept, kind, kind+"s"))
}

// StillWords follow Words. They say to users how many answered directives are open again, and how many are left to them; empty if none are.
func StillWords(again, left int) string {
	text := ""
	if again > 0 {
		text += fmt.Sprintf("; %s still there and open again", count(again, "answered directive is", "answered directives are"))
	}
	if left > 0 {
		text += fmt.Sprintf("; %s still there after two answers, and a user decides", count(left, "directive is", "directives are"))
	}
	return text
}

func count(n int, one, many string) string {
	switch n {
	case 0:
		return "no " + many
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
