// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestSummarize(t *testing.T) {
	for name, tc := range map[string]struct {
		events []string
		want   []string
		not    string
		failed bool
	}{
		"all pass": {
			events: []string{`{"Action":"output","Package":"p","Test":"A","Output":"noise\n"}`, `{"Action":"pass","Package":"p","Test":"A"}`, `{"Action":"pass","Package":"p"}`},
			want:   []string{"ok   p", "1 passed, 0 failed, 0 skipped"}, not: "noise",
		},
		"one fails": {
			events: []string{`{"Action":"output","Package":"p","Test":"A","Output":"why\n"}`, `{"Action":"fail","Package":"p","Test":"A"}`, `{"Action":"fail","Package":"p"}`},
			want:   []string{"--- FAIL p A", "why\n", "FAIL p (1 failed", "0 passed, 1 failed"}, failed: true,
		},
		"a skipped test is a hole": {
			events: []string{`{"Action":"output","Package":"p","Test":"A","Output":"not today\n"}`, `{"Action":"skip","Package":"p","Test":"A"}`, `{"Action":"pass","Package":"p"}`},
			want:   []string{"--- SKIP p A\nnot today\n"}, failed: true,
		},
		"the package does not build": {
			events: []string{`{"Action":"build-output","ImportPath":"p","Output":"undefined: x\n"}`, `{"Action":"fail","Package":"p"}`},
			want:   []string{"undefined: x", "0 passed, 1 failed"}, failed: true,
		},
		"the time limit passes during a test": {
			events: []string{
				`{"Action":"output","Package":"p","Test":"A","Output":"panic: test timed out after 10m0s\n"}`,
				`{"Action":"output","Package":"p","Output":"FAIL p 600s\n"}`, `{"Action":"fail","Package":"p","Elapsed":600}`,
			},
			want: []string{"--- UNFINISHED p A\npanic: test timed out after 10m0s", "FAIL p (0 failed, 600.0s)", "0 passed, 1 failed"}, failed: true,
		},
		"no event": {events: []string{"go: downloading x"}, want: []string{"go: downloading x", "0 passed"}},
	} {
		var out strings.Builder
		failed, err := summarize(strings.NewReader(strings.Join(tc.events, "\n")), &out)
		if err != nil || failed != tc.failed {
			t.Errorf("%s: failed %v, %v", name, failed, err)
		}
		for _, want := range tc.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: lacks %q:\n%s", name, want, out.String())
			}
		}
		if tc.not != "" && strings.Contains(out.String(), tc.not) {
			t.Errorf("%s: shows %q:\n%s", name, tc.not, out.String())
		}
	}
}
