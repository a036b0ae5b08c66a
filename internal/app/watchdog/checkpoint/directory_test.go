// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
)

func TestDirectory(t *testing.T) {
	for paths, want := range map[string]string{
		"": "", "a.txt": "", "web/a.txt": "web", "web/a/b.txt web/a/c.txt": "web/a", "web/a.txt web/b/c.txt": "web", "a/x.txt b/x.txt": "",
		"web/ab.txt webs/ab.txt": "", "web/a/x web/ab/x": "web", "we\nb/a.txt": `"we\nb"`,
	} {
		var changes []judge.Change
		if paths != "" {
			for p := range strings.SplitSeq(paths, " ") {
				changes = append(changes, judge.Change{Path: p})
			}
		}
		if got := Directory(changes); got != want {
			t.Errorf("%q: %q, want %q", paths, got, want)
		}
	}
}
