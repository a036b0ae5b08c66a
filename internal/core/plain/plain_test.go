// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func TestWriter(t *testing.T) {
	for text, want := range map[string]string{
		"+\tplain text, größer\n": "+\tplain text, größer\n",
		"\x1b[2J\r\a":             `\u001b[2J\u000d\u0007`,
		"a\u202eb\u200bc":         `a\u202eb\u200bc`,
		"\U000e0041":              `\udb40\udc41`,
		"\xff\xe4\xb8":            `\xff\xe4\xb8`,
		"\xe4\xb8x":               `\xe4\xb8x`,
		"\x7f\u0085":              `\u007f\u0085`,
	} {
		if got := string(Append([]byte("before "), []byte(text))); got != "before "+want {
			t.Errorf("%q: appended %q, want %q", text, got, want)
		}
		for step := range len(text) { // however the text is cut
			var out bytes.Buffer
			w := NewWriter(&out)
			for rest := []byte(text); len(rest) > 0; {
				n := min(step+1, len(rest))
				if wrote, err := w.Write(rest[:n]); wrote != n || err != nil {
					t.Fatal(wrote, err)
				}
				rest = rest[n:]
			}
			if err := w.Flush(); err != nil || out.String() != want {
				t.Errorf("%q in steps of %d: %q, %v, want %q", text, step+1, out.String(), err, want)
			}
		}
	}
}

// FuzzWriter: what comes out is text that a terminal only shows, and JSON still means the same.
func FuzzWriter(f *testing.F) {
	f.Add("a\x1b\u202e\U000e0041\xff", 3)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		show := func(text string) string {
			var out bytes.Buffer
			w := NewWriter(&out)
			cut := max(0, min(cut, len(text)))
			_, err := w.Write([]byte(text[:cut]))
			if err == nil {
				_, err = w.Write([]byte(text[cut:]))
			}
			if err == nil {
				err = w.Flush()
			}
			if err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		for _, r := range show(text) {
			if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\u202e' || r == '\u009b' {
				t.Fatalf("%q lets %q through", text, r)
			}
		}
		if !utf8.ValidString(text) {
			return
		}
		line, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var again string
		if err := json.Unmarshal([]byte(show(string(line))), &again); err != nil || again != text {
			t.Fatalf("%s became %s (%v)", line, again, err)
		}
	})
}
