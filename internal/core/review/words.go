// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Outcome of a review that gives directives, or none.
func Outcome(kept []protocol.Directive) string {
	if len(kept) == 0 {
		return protocol.ReviewAligned
	}
	return protocol.ReviewMinorDrift
}

// Words say to users what a reviewer has found, and how many directives it gives, such as "Code style review: 3 inconsistencies, 2 cleanup directives".
func Words(r Reviewer, found, kept int) string {
	if found == 0 {
		return fmt.Sprintf("%s review: no %s", r.Title, r.Many)
	}
	kind := strings.ToLower(r.Directive) + " directive"
	return fmt.Sprintf("%s review: %s, %s", r.Title, count(found, r.One, r.Many), count(kept, kind, kind+"s"))
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
