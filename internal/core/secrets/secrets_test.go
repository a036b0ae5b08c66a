// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// TestTable: every expression compiles, every keyword is in lower case, and the tree of them has room.
func TestTable(t *testing.T) {
	s := New()
	ids := map[string]bool{}
	for _, r := range table {
		if ids[r.id] || r.regex == "" && r.path == "" {
			t.Errorf("%s: listed twice, or without an expression", r.id)
		}
		ids[r.id] = true
		if r.regex != "" && len(r.keywords) == 0 {
			t.Errorf("%s has no keyword: it would be searched for in every text", r.id)
		}
		expressions := []string{r.regex, r.path}
		for _, a := range append(slices.Clone(r.allow), everywhere) {
			expressions = slices.Concat(expressions, a.paths, a.regexes)
			if !slices.Contains([]string{"", "match", "line"}, a.target) {
				t.Errorf("%s: target %q is not known", r.id, a.target)
			}
		}
		for _, e := range expressions {
			s.regex(e) // panics where it does not compile
		}
		for _, word := range r.keywords {
			if word != strings.ToLower(word) {
				t.Errorf("%s: keyword %q is not in lower case", r.id, word)
			}
			blank := func(c rune) bool { return strings.ContainsRune(blanks, c) }
			if parts := strings.FieldsFunc(word, blank); strings.TrimFunc(word, blank) != word || len(word) != len(strings.Join(parts, " ")) {
				t.Errorf("%s: keyword %q may reach into what stands for an escape: Locate would miss it", r.id, word)
			}
		}
	}
	for _, id := range []string{generic, privateKey, kubernetes, curlHeader, curlUser} {
		if !ids[id] {
			t.Errorf("there is no rule %s", id)
		}
	}
	if i := slices.IndexFunc(table, func(r rule) bool { return r.id == privateKey }); table[i].regex != privateKeyRegex {
		t.Errorf("private keys are another expression now: %s", table[i].regex)
	}
	for i := range s.rules {
		c := s.rule(i)
		if c.longest > furthest {
			t.Errorf("%s can match %d bytes, which is further than is looked", c.id, c.longest)
		}
		if i := slices.IndexFunc(c.keywords, func(word string) bool { return c.boundary && !alphanumeric(word[0]) }); i >= 0 {
			t.Errorf("%s: no boundary can stand before the keyword %q after a letter", c.id, c.keywords[i])
		}
	}
	if states := len(s.words.rules); states >= 1<<16 || s.words.classes > 1<<classBits {
		t.Errorf("%d states and %d classes do not fit", states, s.words.classes)
	}
}

// TestWords compares with looking for one word after the other.
func TestWords(t *testing.T) {
	list := map[string][]int{"key": {0}, "api-key": {1}, "keys": {2, 3}, "aaa": {4}, "eyek": {5}, "ey": {6}, "~": {7}}
	w := newWords(list)
	r := rand.New(rand.NewPCG(3, 4))
	seen := 0
	for range 2000 {
		text := make([]byte, r.IntN(24))
		for i := range text {
			text[i] = "keyKEYsa~\xc3"[r.IntN(10)]
		}
		var want, got []string
		for i := range text {
			for to := i + 1; to <= len(text); to++ {
				if rules, ok := list[strings.ToLower(string(text[i:to]))]; ok {
					want = append(want, fmt.Sprint(i, to, rules))
				}
			}
		}
		w.each(text, func() bool { return true }, func(from, to int, rules []int) bool {
			got = append(got, fmt.Sprint(from, to, rules))
			return true
		})
		if seen += len(want); !slices.Equal(want, got) {
			t.Fatalf("in %q: got %v, want %v", text, got, want)
		}
	}
	if seen < 2000 {
		t.Errorf("only %d words: the texts prove nothing", seen)
	}
}

// sample makes a text that an expression matches.
func sample(re *syntax.Regexp, r *rand.Rand) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		var pairs [][2]rune
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i] < 0x7f {
				pairs = append(pairs, [2]rune{max(re.Rune[i], ' '), min(re.Rune[i+1], '~')})
			}
		}
		p := pairs[r.IntN(len(pairs))]
		if p[1] < p[0] {
			return "\n"
		}
		return string(p[0] + r.Int32N(p[1]-p[0]+1))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return string(rune('a' + r.IntN(26)))
	case syntax.OpCapture:
		return sample(re.Sub[0], r)
	case syntax.OpConcat:
		var b strings.Builder
		for _, sub := range re.Sub {
			b.WriteString(sample(sub, r))
		}
		return b.String()
	case syntax.OpAlternate:
		return sample(re.Sub[r.IntN(len(re.Sub))], r)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		least, most := re.Min, re.Max
		switch re.Op {
		case syntax.OpStar:
			least, most = 0, -1
		case syntax.OpPlus:
			least, most = 1, -1
		case syntax.OpQuest:
			least, most = 0, 1
		}
		if most < 0 {
			most = least + 12
		}
		var b strings.Builder
		for range least + r.IntN(most-least+1) {
			b.WriteString(sample(re.Sub[0], r))
		}
		return b.String()
	default:
		return ""
	}
}

// findSlowly is Find as gitleaks goes about it: every rule that has a keyword in the text looks at all of the text.
func findSlowly(s *Scanner, path string, text []byte) []Finding {
	f := s.newSearch(context.Background(), math.MaxInt64, path, nil, text)
	lower := strings.ToLower(string(text))
	for i := range s.rules {
		c := s.rule(i)
		if c.path != "" && !f.inPath(c.path) || !slices.ContainsFunc(c.keywords, func(word string) bool { return strings.Contains(lower, word) }) {
			continue
		}
		for _, m := range s.regex(c.regex).FindAllSubmatchIndex(text, -1) {
			f.match(i, 0, m)
		}
	}
	return f.findings()
}

// find is Find with all the work that it wants.
func find(t testing.TB, s *Scanner, path string, old, now []byte) []Finding {
	t.Helper()
	found, _, err := s.Find(t.Context(), math.MaxInt64, path, old, now)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestNothingIsLost: for texts made from each rule's own expression, what is looked at around keywords has every secret
// that the whole text has.
func TestNothingIsLost(t *testing.T) {
	s := New()
	found, lost := 0, 0
	for i := range s.rules {
		c := s.rule(i)
		re, err := syntax.Parse(c.regex, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, uint64(i)))
		path := "src/a.go"
		if c.path != "" {
			path = "src/a.yaml" // no other rule has one
		}
		for range 10 {
			secret := sample(re, r)
			text := []byte(fmt.Sprintf("package shop\n\nfunc key() { return token.Access(a, b) }\n  %s\n// %s\nx = %q // the API's own\n", secret, secret, secret))
			got := find(t, s, path, nil, text)
			for _, want := range findSlowly(s, path, text) {
				if want.Rule != c.id {
					continue
				}
				found++
				if !slices.Contains(got, want) && len(got) < maxFindings {
					lost++
					t.Errorf("%s: lost on line %d of\n%s", c.id, want.Line, text)
				}
			}
		}
	}
	t.Logf("%d findings, %d lost", found, lost)
	if found < 2000 {
		t.Errorf("only %d findings: the texts prove nothing", found)
	}
}

func TestFind(t *testing.T) {
	github := "ghp_" + "Zq3xV7mK9pL2rT5wY8bN1cD4fG6hJ0sA2eU7"
	tests := map[string]struct {
		path, old, text string
		want            []Finding
	}{
		"nothing":                  {text: "package shop\n"},
		"a token":                  {text: "a\nb\nt = '" + github + "'\n", want: []Finding{{"github-pat", 3}}},
		"without a line end":       {text: github, want: []Finding{{"github-pat", 1}}},
		"moved":                    {old: "x" + github, text: "\n" + github + "\n"},
		"a password":               {text: "db_password: 'x7Kq92mZpL4wVt8s'\n", want: []Finding{{generic, 1}}},
		"a name":                   {text: "db_password: settings.databasePassword\nkey := findTheLongestKeyOfAll(\n"},
		"a private key":            {text: "x\n-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7bq\n", 20) + "-----END RSA PRIVATE KEY-----\n", want: []Finding{{"private-key", 2}}},
		"in a file named harmless": {path: "web/logo.svg", text: "t = " + github + "\n", want: []Finding{{"github-pat", 1}}},
		"a hash in a lock file":    {path: "go.sum", text: "example.com/auth v1.0.0 h1:x7Kq92mZpL4wVt8sx7Kq92mZpL4wVt8sQ3=\n"},
		"the same elsewhere":       {path: "a.txt", text: "example.com/auth v1.0.0 h1:x7Kq92mZpL4wVt8sx7Kq92mZpL4wVt8sQ3=\n", want: []Finding{{generic, 1}}},
		"a key store":              {path: "a/b.pfx", text: "\x00", want: []Finding{{"pkcs12-file", 1}}},
	}
	s := New()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.path == "" {
				tt.path = "src/a.go"
			}
			got := find(t, s, tt.path, []byte(tt.old), []byte(tt.text))
			if !slices.Equal(tt.want, got) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestFindings are bounded, however many there are.
func TestFindingsAreBounded(t *testing.T) {
	var b bytes.Buffer
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		fmt.Fprintf(&b, "ghp_")
		for range 36 {
			b.WriteByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[r.IntN(62)])
		}
		b.WriteByte('\n')
	}
	if got := find(t, New(), "a", nil, b.Bytes()); len(got) != maxFindings || got[0].Line != 1 {
		t.Errorf("%d findings: %v", len(got), got)
	}
}

// FuzzFind: no text makes it panic, and every line that it names is there.
func FuzzFind(f *testing.F) {
	f.Add("a", "api_key = \"x7Kq92mZpL4wVt8s\"\n")
	f.Add("a.tf", "password = \"abc\"")
	f.Add("x.p12", "\x00\xff key=")
	s := New()
	f.Fuzz(func(t *testing.T, path, text string) {
		for _, found := range find(t, s, path, nil, []byte(text)) {
			if lines := strings.Count(text, "\n") + 1; found.Line < 1 || found.Line > lines {
				t.Errorf("line %d of %d", found.Line, lines)
			}
		}
	})
}

// TestSearchCompilesWhatItNeeds: a text without keywords needs no expression, and a path that no rule is about neither.
func TestSearchCompilesWhatItNeeds(t *testing.T) {
	s := New()
	if found, _, err := s.Find(t.Context(), Budget, "src/main.go", nil, []byte("package main\n")); err != nil || len(found) > 0 {
		t.Fatalf("%v, %v", found, err)
	}
	if len(s.compiled) > 0 || slices.ContainsFunc(s.known, func(c *candidate) bool { return c != nil }) {
		t.Errorf("%d expressions are compiled", len(s.compiled))
	}
}

// TestPathRulesHaveAPart: what is asked first about a path is in every path that the expression matches.
func TestPathRulesHaveAPart(t *testing.T) {
	for _, c := range New().pathRules {
		if c.part == "" {
			t.Errorf("%s: every path is compared with the expression", c.id)
		}
		for _, path := range []string{"a.p12", "dir/Cert.PFX", "x.P12", "dir/.p12", "a.txt", "p12"} {
			if regexp.MustCompile(c.path).MatchString(path) && !strings.Contains(strings.ToLower(path), c.part) {
				t.Errorf("%s: %q matches and does not have %q", c.id, path, c.part)
			}
		}
	}
}
