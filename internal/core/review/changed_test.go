// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// TestChanged: each change gets its part of the patch by the IDs of the file, and lines of a file that look like those of a patch are lines of a file.
func TestChanged(t *testing.T) {
	id := func(digit string) string { return strings.Repeat(digit, 40) }
	none := id("0")
	first := "diff --git a/a.go b/a.go\nindex " + id("1") + ".." + id("2") + " 100644\n--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,2 @@\n diff --git a/x b/x\n-index " + id("7") + ".." + id("8") + "\n+2\n"
	added := "diff --git \"a/new \\303\\266.md\" \"b/new \\303\\266.md\"\nnew file mode 100644\nindex " + none + ".." + id("3") + "\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+three\n"
	gone := "diff --git a/old b/old\ndeleted file mode 100644\nindex " + id("4") + ".." + none + "\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-four\n"
	mode := "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"
	list := []judge.Change{
		{Path: "a.go", Kind: judge.Modified, Old: judge.Entry{ID: id("1")}, New: judge.Entry{ID: id("2")}}, {Path: "new ö.md", Kind: judge.Added, New: judge.Entry{ID: id("3")}},
		{Path: "copy.md", Kind: judge.Added, New: judge.Entry{ID: id("3")}}, {Path: "old", Kind: judge.Deleted, Old: judge.Entry{ID: id("4")}},
		{Path: "run", Kind: judge.Modified, Old: judge.Entry{ID: id("5")}, New: judge.Entry{ID: id("5")}}, {Path: "cut.go", Kind: judge.Modified, Old: judge.Entry{ID: id("5")}, New: judge.Entry{ID: id("6")}},
	}
	want := []review.Change{
		{Path: "a.go", Kind: judge.Modified, Diff: first}, {Path: "new ö.md", Kind: judge.Added, Diff: added}, {Path: "copy.md", Kind: judge.Added, Diff: added},
		{Path: "old", Kind: judge.Deleted, Diff: gone}, {Path: "run", Kind: judge.Modified}, {Path: "cut.go", Kind: judge.Modified},
	}
	if diff := cmp.Diff(want, review.Changed(list, first+added+gone+mode)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for _, patch := range []string{"", "nonsense", "diff --git ", "\ndiff --git a b\nindex x\n"} {
		if got := review.Changed(list, patch); len(got) != len(list) || got[0].Diff != "" {
			t.Errorf("of %q: %+v", patch, got)
		}
	}
	q := review.Question(review.Scene{Reviewer: reviewer(t, style), Nonce: secret, Changes: review.Changed(list, first+added+gone+mode)})
	for _, part := range []string{"== a.go (Modified)\n    1  diff --git a/x b/x\n      -index 7", "    2 +2\n", "    1 +three\n", "- run (Modified)\n"} {
		if !strings.Contains(q.Text, part) {
			t.Errorf("the question does not have %q:\n%s", part, q.Text)
		}
	}
}

// TestAFileWithoutLinesIsNoEmptyFile: of a file that is large, not text or not searched for secrets, a patch has no lines. The question names it as such, and it does not look as if
// nothing stood in it.
func TestAFileWithoutLinesIsNoEmptyFile(t *testing.T) {
	none, large, secret := strings.Repeat("0", 40), strings.Repeat("1", 40), strings.Repeat("2", 40)
	patch := "diff --git a/large.js b/large.js\nnew file mode 100644\nindex " + none + ".." + large + "\nBinary files /dev/null and b/large.js differ\n" +
		"diff --git a/hard.js b/hard.js\nnew file mode 100644\nindex " + none + ".." + secret + "\n--- /dev/null\n+++ b/hard.js\n@@ -0,0 +1 @@\n[1 more lines of this file are withheld: the file is too large to be searched for secrets]\n"
	list := []judge.Change{{Path: "hard.js", Kind: judge.Added, New: judge.Entry{ID: secret}}, {Path: "large.js", Kind: judge.Added, New: judge.Entry{ID: large, Size: 2 << 20}}}
	q := review.Question(review.Scene{Reviewer: reviewer(t, style), Nonce: "nonce-00000000", Changes: review.Changed(list, patch)})
	if want := "\nOther files that have changed, without their lines:\n- hard.js (Added)\n- large.js (Added)\n"; !strings.Contains(q.Text, want) || strings.Contains(q.Text, "== ") {
		t.Errorf("the question does not have %q:\n%s", want, q.Text)
	}
}
