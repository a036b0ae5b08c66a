// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
)

// TestAFileKeepsToItsShare: whatever its share is, a file takes no more, and it is empty, whole, or cut with a note.
func TestAFileKeepsToItsShare(t *testing.T) {
	d := data{nonce: "nonce-00000000"}
	c := Change{Path: "a.go", Kind: judge.Added, Diff: "@@ -0,0 +1,40 @@\n" + strings.Repeat("+a line\n", 20) + strings.Repeat("+a longer line of the file\n", 20)}
	whole := d.file(c, 1<<20)
	for room := range len(whole) + 2 {
		text := d.file(c, room)
		switch {
		case len(text) > room:
			t.Fatalf("%d bytes of %d", len(text), room)
		case text == "" || text == whole:
		case !strings.HasSuffix(text, " more lines of this file are left out)\n") || strings.Count(text, "line") < 2:
			t.Fatalf("in %d bytes: %q", room, text)
		}
		if (text == whole) != (room >= len(whole)) {
			t.Fatalf("in %d bytes of %d: %q", room, len(whole), text)
		}
	}
}
