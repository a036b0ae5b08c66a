// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

func TestPatternsMeet(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"web/**", "web/login/**", true},
		{"web/**", "api/**", false},
		{"web/", "web", true},
		{"/web", "web/index.html", true},
		{"web/a", "web/b", false},
		{"web/*.go", "web/*.html", false},
		{"web/a*", "web/*z", true},
		{"web/a*", "web/b*", false},
		{"*.go", "web/**", true},
		{"*.go", "*.html", true}, // a folder may be called a.go, with b.html in it
		{"/*.go", "/*.html", false},
		{"web/**/test", "web/x/y/test/z", true},
		{"web/**/test", "api/**/test", false},
		{"**/a/b", "a/**/c/b", true},
		{"web/[ab]", "web/[cd]", true}, // classes are not compared
		{"web/?", "web/ab", false},
		{"**", "x", true},
		{"/a/b/c", "/a/b", true},
		{"/a/b", "/a/c/**", false},
		{`web/\*`, "web/x", false},
		{"web/{a,b}", "api/**", true}, // cannot be used: it may mean anything
	}
	for _, tc := range tests {
		if got := meetExactly(tc.a, tc.b); got != tc.want {
			t.Errorf("%s and %s meet: %t, want %t", tc.a, tc.b, got, tc.want)
		}
		if got := meetExactly(tc.b, tc.a); got != tc.want {
			t.Errorf("%s and %s meet: %t, want %t", tc.b, tc.a, got, tc.want)
		}
	}
}

func drawPattern(t *rapid.T, name string) string {
	segment := rapid.SampledFrom([]string{"a", "b", "ab", "*", "**", "a*", "*b", "a*b", "?", "?b", "[ab]", "[a-b]*", `\*`, `a\b`, "*a*"})
	text := strings.Join(rapid.SliceOfN(segment, 1, 4).Draw(t, name), "/")
	return rapid.SampledFrom([]string{"", "/"}).Draw(t, "anchor") + text + rapid.SampledFrom([]string{"", "/"}).Draw(t, "inside")
}

func drawPath(t *rapid.T) string {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "ba", "aab", "*", "x"}), 1, 6).Draw(t, "path")
	return strings.Join(names, "/")
}

// TestWhatIsMatchedTwiceOverlaps: if two patterns match one path they overlap, whatever the patterns are.
func TestWhatIsMatchedTwiceOverlaps(t *testing.T) {
	both := 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPattern(t, "a"), drawPattern(t, "b")
		path := drawPath(t)
		m, errA := newMatcher([]string{a}, false)
		n, errB := newMatcher([]string{b}, false)
		if len(errA)+len(errB) > 0 || m.match(path) == "" || n.match(path) == "" {
			return
		}
		both++
		if !meetExactly(a, b) {
			t.Fatalf("%s and %s both match %s and are said not to overlap", a, b, path)
		}
		// And so do plans that allow it by other patterns as well.
		p := protocol.Plan{Allowed: []string{"nowhere", a}, Files: &protocol.FilePlan{Modify: []string{path}}}
		q := protocol.Plan{Allowed: []string{b}, Forbidden: []string{"x"}, Files: &protocol.FilePlan{Create: []string{"nowhere"}, Delete: []string{b}}}
		for _, pair := range [][2]protocol.Plan{{p, q}, {q, p}, {p, {}}, {{}, q}} {
			if _, _, ok := Compare(pair[0]).Overlaps(pair[1]); !ok {
				t.Fatalf("plans %+v and %+v are said not to overlap; both allow %s", pair[0], pair[1], path)
			}
		}
	})
	if both == 0 {
		t.Error("no path was matched by both patterns: the test says nothing")
	}
}

func TestPlansOverlap(t *testing.T) {
	area := func(patterns ...string) protocol.Plan { return protocol.Plan{Allowed: patterns} }
	files := func(patterns ...string) protocol.Plan {
		return protocol.Plan{Files: &protocol.FilePlan{Create: patterns[:1], Modify: patterns[1:]}}
	}
	narrow := area("web/**", "api/**")
	narrow.Files = &protocol.FilePlan{Modify: []string{"api/openapi.yaml"}}
	tests := map[string]struct {
		a, b         protocol.Plan
		wantA, wantB string
		want         bool
	}{
		"neither says":          {want: true},
		"one does not say":      {a: area("web/**"), want: true, wantA: "web/**"},
		"apart":                 {a: area("web/**"), b: area("api/**", "docs/**")},
		"the second of each":    {a: area("/x", "web/**"), b: area("/y", "web/login/**"), want: true, wantA: "web/**", wantB: "web/login/**"},
		"files apart":           {a: files("web/a", "web/b"), b: files("web/c", "web/d")},
		"files and an area":     {a: files("web/a", "web/b"), b: area("web/b*"), want: true, wantA: "web/b", wantB: "web/b*"},
		"files narrow an area":  {a: narrow, b: area("web/**")},
		"and name what is left": {a: narrow, b: area("api/**"), want: true, wantA: "api/openapi.yaml", wantB: "api/**"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a, b, ok := Compare(tc.a).Overlaps(tc.b)
			if ok != tc.want || a != tc.wantA || b != tc.wantB {
				t.Errorf("%t by %q and %q, want %t by %q and %q", ok, a, b, tc.want, tc.wantA, tc.wantB)
			}
		})
	}
}

func meetExactly(a, b string) bool {
	c := comparison{left: math.MaxInt}
	return c.meet(c.pattern(a), c.pattern(b))
}

// TestManyPlansAreComparedInBoundedTime: nobody starts while plans are compared, and whoever writes them chooses what that costs.
func TestManyPlansAreComparedInBoundedTime(t *testing.T) {
	mine, others := protocol.Plan{Files: &protocol.FilePlan{Modify: alike(500, 240)}}, protocol.Plan{}
	for i := range 500 {
		others.Allowed = append(others.Allowed, slow(i))
	}
	began := time.Now()
	c := Compare(mine)
	for range 20 {
		if _, _, ok := c.Overlaps(others); !ok {
			t.Error("what takes too long to compare does not overlap")
		}
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// TestManyLargePlansAreCompared: twenty plans of 500 files are compared with another one to the end.
func TestManyLargePlansAreCompared(t *testing.T) {
	files := func(of int) (p protocol.Plan) {
		p.Files = &protocol.FilePlan{}
		for i := range 500 {
			p.Files.Modify = append(p.Files.Modify, fmt.Sprintf("web/components/%d/field%d.ts", of, i))
		}
		return p
	}
	c := Compare(files(0))
	for i := range 20 {
		if mine, others, ok := c.Overlaps(files(i + 1)); ok {
			t.Fatalf("%d: %q and %q overlap", i, mine, others)
		}
	}
}
