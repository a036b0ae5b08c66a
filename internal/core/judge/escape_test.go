// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

func TestEscape(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"an ordinary name":          {"web/index.html", "web/index.html"},
		"letters of all scripts":    {"docs/日本語-é.md", "docs/日本語-é.md"},
		"nothing":                   {"", `""`},
		"a space":                   {"a b", `"a b"`},
		"a quotation mark":          {`a"b`, `"a\"b"`},
		"a backslash":               {`a\b`, `"a\\b"`},
		"an escape sequence":        {"a\x1b[2J", `"a\x1b[2J"`},
		"a line break":              {"a\nReady: True", `"a\nReady: True"`},
		"a C1 control":              {"a\u009b", `"a\u009b"`},
		"reversed":                  {"a\u202egpj.exe", `"a\u202egpj.exe"`},
		"zero width":                {"a\u200bb", `"a\u200bb"`},
		"a variation selector":      {"a\ufe0f", `"a\ufe0f"`},
		"a tag":                     {"a\U000e0041", `"a\U000e0041"`},
		"not UTF-8":                 {"a\xffb", `"a\xffb"`},
		"a replacement character":   {"a\ufffdb", "a\ufffdb"},
		"what looks cut":            {"a…", `"a…"`},
		"exactly as long as it may": {strings.Repeat("x", maxEscaped), strings.Repeat("x", maxEscaped)},
		"too long":                  {strings.Repeat("x", maxEscaped+1), `"` + strings.Repeat("x", maxEscaped-3) + `…"`},
		"too long when quoted":      {strings.Repeat("\x01", 100), `"` + strings.Repeat(`\x01`, 49) + `…"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Escape(tt.in); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestEscapeOnce: what Escape gave is not escaped again, and everything else is escaped.
func TestEscapeOnce(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"an ordinary name":            {"web/a", "web/a"},
		"a name to be escaped":        {"web/a\nb", `"web/a\nb"`},
		"an escaped name":             {`"web/a\nb"`, `"web/a\nb"`},
		"quoted without need":         {`"web/a"`, `"\"web/a\""`},
		"quoted in another way":       {`"web/\u0061"`, `"\"web/\\u0061\""`},
		"a name in single quotes":     {`'a'`, `'a'`},
		"a quotation that has no end": {`"web/a b`, `"\"web/a b"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := EscapeOnce(tt.in); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"web/index.html", "a\x1b[2J\xff", "\u202e\u200b", strings.Repeat("é\x00", 150), `"\"`, "a…"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := Escape(name)
		if n := utf8.RuneCountInString(got); n > maxEscaped || n == 0 {
			t.Errorf("%q: %d characters", name, n)
		}
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) || plain.Invisible(r) }) {
			t.Errorf("%q: %q is not all visible", name, got)
		}
		if got != name && !(strings.HasPrefix(got, `"`) && strings.HasSuffix(got, `"`)) {
			t.Errorf("%q: changed but not quoted: %s", name, got)
		}
		if again := EscapeOnce(got); again != got {
			t.Errorf("%q: %s is escaped again: %s", name, got, again)
		}
		if strings.HasPrefix(name, `"`) && got == name {
			t.Errorf("%q passes for the quoted form of another name", name)
		}
	})
}
