// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
	for glob, tc := range map[string]struct{ match, other string }{
		"main":              {"main", "mains Main x/main main/x"},
		"release-?":         {"release-1", "release- release-12 release-/"},
		"release-[0-9]":     {"release-1", "release-x"},
		"tidewaiter/*":      {"tidewaiter/a tidewaiter/a.b", "tidewaiter tidewaiter/a/b x/tidewaiter/a"},
		"tidewaiter/**":     {"tidewaiter/a tidewaiter/a/b", "tidewaiter tidewaiters/a"},
		"**/login":          {"login a/login a/b/login", "a/login/b logins"},
		"a/**/b":            {"a/b a/x/b a/x/y/b", "a b a/x"},
		"**":                {"a a/b/c", ""},
		`feature\[1\]`:      {"feature[1]", "feature1"},
		"*/*-[a-z]/**/x?/*": {"q/w-e/x1/z q/w-e/r/t/x1/z", "q/w-e/x/z w-e/x1/z"},
	} {
		g, err := ParseGlob(glob)
		if err != nil {
			t.Errorf("%s: %v", glob, err)
			continue
		}
		for name := range strings.FieldsSeq(tc.match) {
			if !g.Match(name) {
				t.Errorf("%s does not match %s", glob, name)
			}
		}
		for name := range strings.FieldsSeq(tc.other) {
			if g.Match(name) {
				t.Errorf("%s matches %q", glob, name)
			}
		}
	}
	if (Glob{}).Match("a") {
		t.Error("no glob matches a name")
	}
}

func TestParseGlob(t *testing.T) {
	space := " " // a literal of a key must not begin with one
	for glob, want := range map[string]string{
		"": "is empty", "/main": "empty name", "a//b": "empty name", "a/": "empty name", "a/../b": "canonical", "{a,b}": "braces", "[!a]": "negated", "!main": "negation",
		space + "main": "space", "a\u200b": "invisible", "[a": "not closed", strings.Repeat("a", 513): "longer than 512 bytes",
	} {
		if _, err := ParseGlob(glob); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", glob, err, want)
		}
	}
}
