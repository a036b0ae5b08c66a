// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestValidatePattern(t *testing.T) {
	tests := map[string]struct {
		pattern string
		want    string // part of the error; "" for none
	}{
		"everything":              {"**", ""},
		"a directory":             {"web/**", ""},
		"a floating name":         {"CODEOWNERS", ""},
		"an escaped mark":         {`\!important\[1\]`, ""},
		"a class":                 {"test_[a-zA-Z0-9_-].py", ""},
		"a negated class":         {"[!a]", "negated"},
		"a negated class, too":    {"[^a]", "negated"},
		"Unicode":                 {"文書/**", ""},
		"empty":                   {"", "is empty"},
		"a negation":              {"!web/**", "negation"},
		"braces":                  {"*.{js,ts}", "braces"},
		"an escaped brace":        {`\{\{name\}\}/`, ""},
		"climbing":                {"web/../api", "canonical"},
		"a dot":                   {"./web", "canonical"},
		"an empty name":           {"web//api", "empty name"},
		"only a slash":            {"/", "empty name"},
		"an open class":           {"web/[ab", "not closed"},
		"an empty class":          {"[]", "class"},
		"a class across names":    {"[a/b]", "not closed"},
		"a POSIX class":           {"[[:alpha:]]", "class"},
		"a reversed range":        {"[z-a]", "range"},
		"a range across cases":    {"[A-z]", "range"},
		"a class beyond ASCII":    {"[é]", "class"},
		"a backslash at the end":  {`web\`, "backslash"},
		"a backslash and a slash": {`web\/api`, "backslash"},
		"a control character":     {"web\x00", "invisible"},
		"a zero-width character":  {"we\u200bb", "invisible"},
		"not UTF-8":               {"web\xff", "UTF-8"},
		"a space at the end":      {"web/** ", "space"},
		"too long":                {strings.Repeat("x", maxPattern+1), "longer"},
		"full-width brackets":     {"*［", "not closed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := ValidatePattern(tt.pattern)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v, want none", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// matches is the meaning of patterns; the last two columns are what they grant and what they guard.
func matches() []matchCase {
	return []matchCase{
		{"**", "a", true, true},
		{"**", "a/b/c", true, true},
		{"*", "a/b/c", true, true},
		{"web/**", "web/a", true, true},
		{"web/**", "web/a/b", true, true},
		{"web/**", "web", false, true}, // a file in the place of the directory
		{"web/**", "website/a", false, false},
		{"web/**", "api/web/a", false, false},
		{"web/**", "WEB/a", false, true},
		{"web", "web", true, true},
		{"web", "web/a", true, true},
		{"web", "api/web/a", true, true},
		{"web/", "web/a", true, true},
		{"web/", "api/web/a", true, true},
		{"web/", "web", false, true},
		{"/web", "web/a", true, true},
		{"/web", "api/web", false, false},
		{"/web/", "web", false, true},
		{"web/legacy", "web/legacy/a/b", true, true},
		{"web/legacy", "api/web/legacy", false, false},
		{"web/legacy", "web", false, true}, // the way to what is guarded
		{"web/legacy", "web/new", false, false},
		{"web/*/x", "web", false, true},
		{"web/*/x", "web/a", false, false},
		{"web/*/x", "web/a/x/b", true, true},
		{"CODEOWNERS", "docs/CODEOWNERS", true, true},
		{"CODEOWNERS", "docs/codeowners", false, true},
		{"CODEOWNERS", "docs/CODEOWNERS.md", false, false},
		{"CODEOWNERS", "CODEOWNERS ", false, true},
		{"CODEOWNERS", "CODEOWNERS::$DATA", false, true},
		{"CODEOWNERS", "\u200bCODEOWNERS", false, true},
		{"CODEOWNERS", "ＣＯＤＥＯＷＮＥＲＳ", false, true},
		{"*.md", "a/b.md", true, true},
		{"*.md", "a/b.MD", false, true},
		{"*.md", "a.md/b", true, true},
		{"*.md", ".md", true, true},
		{"/*.md", "a/b.md", false, false},
		{"a/**/b", "a/b", true, true},
		{"a/**/b", "a/x/y/b", true, true},
		{"a/**/b", "a/x/y/c", false, false},
		{"**/b", "a/b", true, true},
		{"**/a/b", "x/a/b/c", true, true},
		{"**/a/b", "a", false, false},
		{"**/a/**/c", "x/a/y/z/c", true, true},
		{"a/**/", "a/b/c", true, true},
		{"a/**/", "a/b", false, true},
		{"a***b", "axxb", true, true},
		{"a***b", "ax/xb", false, false},
		{"a?c", "abc", true, true},
		{"a?c", "a/c", false, false},
		{"a?", "a\u200b", true, true},
		{"stra?e", "straße", true, true},
		{"*.", "a.", true, true},
		{"/a?/x", "a\u200b/x", true, true},
		{"[a-c]x", "bx", true, true},
		{"[a-c]x", "BX", false, true},
		{`\*`, "*", true, true},
		{`\*`, "a", false, false},
		{`a\*b*`, "a*bc", true, true},
		{`\**`, "*[", true, true},
		{`\**`, "a", false, false},
		{`a***\**`, "axx*y", true, true},
		{"straße", "STRASSE/x", false, true},
		{"caf\u00e9", "cafe\u0301", false, true},
		{"c/o", "\u2105", false, false}, // composed to "c/o": still one name
		{".claude/**", ".claude", false, true},
	}
}

type matchCase struct {
	pattern, path string
	grants        bool
	guards        bool
}

func TestMatch(t *testing.T) {
	for _, tt := range matches() {
		for guard, want := range map[bool]bool{false: tt.grants, true: tt.guards} {
			m, errs := newMatcher([]string{tt.pattern}, guard)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := m.match(tt.path) != ""; got != want {
				t.Errorf("pattern %q, path %q, guard %t: got %t, want %t", tt.pattern, tt.path, guard, got, want)
			}
		}
	}
}

// TestMatchNamesThePattern: of several patterns, one that matches is named, however often it is asked.
func TestMatchNamesThePattern(t *testing.T) {
	m, _ := newMatcher([]string{"docs/**", "*.go", "web"}, false)
	for range 2 {
		for path, want := range map[string]string{"docs/a": "docs/**", "x/y.go": "*.go", "web/b/c": "web", "api/a": "", "web": "web"} {
			if got := m.match(path); got != want {
				t.Errorf("match(%q) = %q, want %q", path, got, want)
			}
		}
	}
}

// FuzzMatch compares the matcher with patterns translated to regular expressions, and what guards with what grants.
func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{
		{"web/**", "web/a/b"}, {"**/a/**/b", "a/x/b"}, {"*.md", "a/b.md"}, {"/a*b?c", "axxbyc"}, {"[a-c]x/", "bx/y"},
		{`\*\[`, "*["}, {"a/**/", "a/b/c"}, {"**", "x"}, {"x**y", "xzzy"}, {"a/**/b/**/c/*", "a/b/b/c/c/d"},
		{"??", "\x1cȘ"}, {`\**`, "*["},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		if ValidatePattern(text) != nil || pathFault(path) != "" || !utf8.ValidString(path) {
			return
		}
		grant, _ := newMatcher([]string{text}, false)
		guard, _ := newMatcher([]string{text}, true)
		got := grant.match(path) != ""
		if want := referenceMatch(text, path); got != want {
			t.Errorf("pattern %q, path %q: got %t, want %t", text, path, got, want)
		}
		if again := grant.match(path) != ""; again != got {
			t.Errorf("pattern %q, path %q: the second answer differs", text, path)
		}
		if got && guard.match(path) == "" {
			t.Errorf("pattern %q grants %q but does not guard it", text, path)
		}
	})
}

// TestMatchAgainstReference does the same where most pairs nearly match: few letters, few names.
func TestMatchAgainstReference(t *testing.T) {
	segment := rapid.SampledFrom([]string{"a", "b", "ab", "*", "**", "a*", "*b", "?", "a?", "[ab]", "[b]*", "a*b", "***", `\a`, `\**`, `**\*`})
	name := rapid.SampledFrom([]string{"a", "b", "ab", "ba", "aab", "abb", "*", "*a", "a*"})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "/"}).Draw(t, "anchor") +
			strings.Join(rapid.SliceOfN(segment, 1, 5).Draw(t, "segments"), "/") +
			rapid.SampledFrom([]string{"", "/"}).Draw(t, "end")
		path := strings.Join(rapid.SliceOfN(name, 1, 6).Draw(t, "path"), "/")
		m, errs := newMatcher([]string{text}, false)
		if len(errs) > 0 {
			t.Fatalf("pattern %q: %v", text, errs)
		}
		if got, want := m.match(path) != "", referenceMatch(text, path); got != want {
			t.Errorf("pattern %q, path %q: got %t, want %t", text, path, got, want)
		}
	})
}

// referenceMatch is .gitignore's meaning by regular expression: the pattern matches the path or a directory above it.
func referenceMatch(text, path string) bool {
	body := strings.TrimPrefix(text, "/")
	dirOnly := strings.HasSuffix(body, "/")
	body = strings.TrimSuffix(body, "/")
	anchored := strings.Contains(strings.TrimSuffix(text, "/"), "/")
	var b strings.Builder
	b.WriteString("(?s)^")
	if !anchored {
		b.WriteString("(.*/)?")
	}
	parts := strings.Split(body, "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "**" && last:
			b.WriteString(".+")
		case part == "**":
			b.WriteString("([^/]+/)*")
		default:
			b.WriteString(referenceSegment(part))
			if !last {
				b.WriteByte('/')
			}
		}
	}
	b.WriteByte('$')
	re := regexp.MustCompile(b.String())
	for prefix := path; prefix != ""; prefix, _ = split(prefix) {
		if re.MatchString(prefix) && !(dirOnly && prefix == path) {
			return true
		}
	}
	return false
}

func referenceSegment(part string) string {
	var b strings.Builder
	runes := []rune(part)
	for i := 0; i < len(runes); i++ {
		switch runes[i] {
		case '*':
			b.WriteString("[^/]*")
		case '?':
			b.WriteString("[^/]")
		case '\\':
			i++
			b.WriteString(regexp.QuoteMeta(string(runes[i])))
		case '[':
			i += writeClass(&b, runes[i:])
		default:
			b.WriteString(regexp.QuoteMeta(string(runes[i])))
		}
	}
	return b.String()
}

// writeClass writes a class rune by rune, ranges as given, and returns how many runes it took beyond the first.
func writeClass(b *strings.Builder, runes []rune) int {
	end := 1
	for runes[end] != ']' {
		end++
	}
	b.WriteByte('[')
	for i := 1; i < end; i++ {
		if i+2 < end && runes[i+1] == '-' {
			b.WriteString(string(runes[i : i+3]))
			i += 2
			continue
		}
		fmt.Fprintf(b, `\x{%x}`, runes[i])
	}
	b.WriteByte(']')
	return end
}
