// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

// token is a made-up one of a form that a rule finds.
const token = "ghp_" + "x7Kq2mVw9TzR4bNc8LdY1sHf6JgPaE3uQ5oi"

// key is a made-up private key of so many lines.
func key(lines int) string {
	var b strings.Builder
	b.WriteString("-----BEGIN RSA PRIVATE KEY-----\n")
	for n := range lines {
		fmt.Fprintf(&b, "MIIEpAIBAAKCAQEA7bq2Jm4cXy9ZrTq0Hn3vLk8sPdWf%020d\n", n*7919)
	}
	b.WriteString("-----END RSA PRIVATE KEY-----\n")
	return b.String()
}

// files by their ID; reads counts how often one is read.
type files struct {
	texts map[string]string
	reads int
}

func (f *files) read(_ context.Context, id string) ([]byte, error) {
	f.reads++
	text, known := f.texts[id]
	switch {
	case !known:
		return nil, fmt.Errorf("no file %s", id)
	case len(text) > MaxFile:
		return nil, ErrTooLarge
	}
	return []byte(text), nil
}

// part of a patch for a file with a hunk.
func part(name, before, after, hunk string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nindex %[2]s..%[3]s 100644\n--- a/%[1]s\n+++ b/%[1]s\n%[4]s", name, before, after, hunk)
}

func (f *files) patch(t *testing.T, text string) (kept, missing string) {
	t.Helper()
	kept, missing, err := NewMaker().Patch(t.Context(), bufio.NewReader(strings.NewReader(text)), f.read)
	if err != nil {
		t.Fatal(err)
	}
	return kept, missing
}

const none = "0000000000000000000000000000000000000000"

// TestPatch: a difference is kept as it is, but for what Git says behind the place of a hunk.
func TestPatch(t *testing.T) {
	f := &files{texts: map[string]string{"b1": "1\n2\n3\n", "b2": "1\n2b\n3\n"}}
	in := part("web/a.html", "b1", "b2", "@@ -1,3 +1,3 @@ func main() {\n 1\n-2\n+2b\n 3\n") +
		"diff --git a/bin/x b/bin/x\nold mode 100644\nnew mode 100755\n" +
		"diff --git a/logo.png b/logo.png\nnew file mode 100644\nindex " + none + "..b1\nBinary files /dev/null and b/logo.png differ\n" +
		part("end", "b1", none, "@@ -1 +0,0 @@\n-1\n\\ No newline at end of file\n")
	got, missing := f.patch(t, in)
	if diff := cmp.Diff(strings.Replace(in, " func main() {", "", 1), got); diff != "" || missing != "" {
		t.Errorf("missing %q (-want +got):\n%s", missing, diff)
	}
	if got, missing := f.patch(t, ""); got != "" || missing != "" {
		t.Errorf("of nothing there is %q, %q", got, missing)
	}
	// Lines of a file that look like those of a patch are lines of a file.
	f.texts["b3"] = "-- a/x\n@@ -1 +1 @@\ndiff --git a/x b/x\n"
	in = part("forged", none, "b3", "@@ -0,0 +1,3 @@\n+-- a/x\n+@@ -1 +1 @@\n+diff --git a/x b/x\n") + part("web/a.html", "b1", "b2", "@@ -2 +2 @@\n-2\n+2b\n")
	if got, missing := f.patch(t, in); got != in || missing != "" {
		t.Errorf("missing %q:\n%s", missing, got)
	}
}

// TestWhatGitNeverWrites is an error and no panic.
func TestWhatGitNeverWrites(t *testing.T) {
	f := &files{texts: map[string]string{"b1": "1\n", "b2": "2\n"}}
	for _, hunk := range []string{"@@ -1\n", "@@ -x +1 @@\n", "@@ -1,x +1 @@\n", "@@ -1 +1 @@\n\n", "@@ -1 +1 @@\nx\n"} {
		if _, _, err := NewMaker().Patch(t.Context(), bufio.NewReader(strings.NewReader(part("a", "b1", "b2", hunk))), f.read); err == nil {
			t.Errorf("%q passes", hunk)
		}
	}
	if _, _, err := NewMaker().Patch(t.Context(), bufio.NewReader(strings.NewReader(part("a", "gone", "b2", "@@ -1 +1 @@\n-1\n+1\n"))), f.read); err == nil {
		t.Error("a file that is not there passes")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := NewMaker().Patch(ctx, bufio.NewReader(strings.NewReader(part("a", "b1", "b2", "@@ -1 +1 @@\n-1\n+2\n"))), f.read); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context has ended: %v", err)
	}
}

// TestSecretsInPatches: what is kept has no part of a secret, also where its beginning is on none of the lines that are shown.
func TestSecretsInPatches(t *testing.T) {
	whole := "start\n" + key(30) + "end\n"
	lines := strings.SplitAfter(whole, "\n")
	changed := slices.Clone(lines)
	changed[20] = "MIIEpAIBAAKCAQEAchangedchangedchangedchangedchanged0000000000\n"
	f := &files{texts: map[string]string{
		"b1": whole, "b2": strings.Join(changed, ""), "t1": "token: " + token + " # mine\nb\n", "t2": "token: none\nb\n",
		"j1": `{"key": "` + strings.ReplaceAll(strings.TrimSpace(key(4)), "\n", `\n`) + `", "name": "x"}` + "\n",
	}}
	var hunk strings.Builder
	hunk.WriteString("@@ -18,7 +18,7 @@ " + lines[3])
	for n := 17; n < 24; n++ {
		if n == 20 {
			hunk.WriteString("-" + lines[n] + "+" + changed[n])
		} else {
			hunk.WriteString(" " + lines[n])
		}
	}
	in := part("key.pem", "b1", "b2", hunk.String()) + part("conf.yaml", "t1", "t2", "@@ -1,2 +1,2 @@\n-token: "+token+" # mine\n+token: none\n b\n") +
		part("key.json", none, "j1", "@@ -0,0 +1 @@\n+"+f.texts["j1"]) + part(token, "t2", none, "@@ -1,2 +0,0 @@\n-token: none\n-b\n")
	got, missing := f.patch(t, in)
	for _, secret := range []string{"MII", token, "PRIVATE"} {
		if strings.Contains(got, secret) {
			t.Errorf("%q is in what is kept:\n%s", secret, got)
		}
	}
	for _, want := range []string{"diff --git a/key.pem b/key.pem", "-[redacted]", "+[redacted]", "-token: [redacted: github-pat] # mine\n", "+token: none\n b\n", `", "name": "x"}`, "a/[redacted: github-pat]"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in what is kept:\n%s", want, got)
		}
	}
	if missing != "" {
		t.Errorf("missing %q: a secret is marked", missing)
	}
}

// TestHiddenLines agree with a text in which each secret is replaced as a whole: what is left of it is the same.
func TestHiddenLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := make([]byte, random.IntN(60))
		for i := range text {
			text[i] = "abcdefg\n\n"[random.IntN(9)]
		}
		var places []secrets.Place
		secret := make([]bool, len(text))
		for range random.IntN(4) {
			if len(text) == 0 {
				break
			}
			from := random.IntN(len(text))
			to := from + 1 + random.IntN(len(text)-from)
			places = append(places, secrets.Place{Rule: "r", From: from, To: to})
			for i := from; i < to; i++ {
				secret[i] = true
			}
		}
		var want, got []byte // what is shown of the text itself
		for i, b := range text {
			if !secret[i] && b != '\n' {
				want = append(want, b)
			}
		}
		h := hiddenIn(text, places)
		number := 0
		for line := range bytes.Lines(text) {
			number++
			shown, is := h.line(number)
			if !is {
				shown = string(bytes.TrimSuffix(line, []byte("\n")))
			}
			got = append(got, strings.NewReplacer("[redacted: r]", "", "[redacted]", "").Replace(shown)...)
		}
		if !bytes.Equal(want, got) {
			t.Fatalf("%q with %v shows %q, want %q", text, places, got, want)
		}
	}
}

// TestBoundsOfPatches: whatever there is, what is kept is bounded, is text, says what is missing, and takes time in proportion.
func TestBoundsOfPatches(t *testing.T) {
	wide := strings.Repeat("w", 5<<20)
	escapes := strings.Repeat("\x1b\xff\x00\u202e", 30<<10)
	tall := strings.Repeat("+line of a list\n", 60_000)
	f := &files{texts: map[string]string{"w": "x\n", "e": "x\n", "t": strings.Repeat("line of a list\n", 60_000), "big": strings.Repeat("b", MaxFile+1), "n": strings.Repeat("\n", MaxFile), "p": "-----BEGIN PRIVATE KEY-----" + strings.Repeat("\n", MaxFile-100) + "-----END PRIVATE KEY-----"}}
	var many strings.Builder
	for n := range 30_000 {
		many.WriteString(part(fmt.Sprintf("dir/file-%d", n), none, "w", "@@ -0,0 +1 @@\n+x\n"))
	}
	for name, tc := range map[string]struct {
		in, want, missing string
	}{
		"a line of 5 MiB":          {part("min.js", none, "w", "@@ -0,0 +1 @@\n+"+wide+"\n"), strings.Repeat("w", maxLine) + "…", "1 lines of more than 2 KiB"},
		"escapes":                  {part("esc", none, "e", "@@ -0,0 +1 @@\n+"+escapes+"\n"), `+\u001b\xff\u0000\u202e`, "1 lines of more than 2 KiB"},
		"a list":                   {part("list", none, "t", "@@ -0,0 +1,60000 @@\n"+tall) + part("more", none, "w", "@@ -0,0 +1 @@\n+after\n"), "more lines of this file are not kept]\ndiff --git a/more", "1 files with diffs of more than 256 KiB"},
		"30,000 files":             {many.String(), "[more is not kept]\n", "the diff is longer than 1024 KiB"},
		"a large file":             {"diff --git a/big b/big\nindex " + none + "..big\nBinary files /dev/null and b/big differ\n", "Binary files", "1 files of more than 1024 KiB"},
		"a million lines":          {part("lines", none, "n", "@@ -0,0 +1,1048576 @@\n"+strings.Repeat("+\n", MaxFile)), "+\n+\n", "1 files with diffs of more than"},
		"a million secret lines":   {part("lines", none, "p", "@@ -0,0 +1,1048477 @@\n"+strings.Repeat("+\n", MaxFile-100)+"+x\n"), "diff --git", ""},
		"too large to be searched": {part("big", none, "big", "@@ -0,0 +1 @@\n+b\n"), "[1 more lines of this file are withheld: the file is too large to be searched for secrets]", "1 files of more than 1024 KiB"},
	} {
		began := time.Now()
		got, missing := f.patch(t, tc.in)
		if len(got) > protocol.MaxPatch || !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\x00\u202e\r") || !strings.Contains(got, tc.want) || !strings.Contains(missing, tc.missing) {
			t.Errorf("%s: %d bytes, missing %q:\n%.600s\n…\n%s", name, len(got), missing, got, got[max(0, len(got)-200):])
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s took %s", name, took)
		}
	}
}

// TestNoMoreIsReadThanIsKept: Git can be ended when there is enough.
func TestNoMoreIsReadThanIsKept(t *testing.T) {
	f := &files{texts: map[string]string{"w": "x\n"}}
	read := 0
	one := part("file", none, "w", "@@ -0,0 +1 @@\n+"+strings.Repeat("x", 1000)+"\n")
	endless := readerFunc(func(p []byte) (int, error) {
		n := 0
		for n < len(p) {
			c := copy(p[n:], one[read%len(one):])
			n, read = n+c, read+c
		}
		return n, nil
	})
	if _, missing, err := NewMaker().Patch(t.Context(), bufio.NewReader(endless), f.read); err != nil || missing == "" {
		t.Errorf("%q, %v", missing, err)
	}
	if read > 3*protocol.MaxPatch {
		t.Errorf("read %d bytes", read)
	}
}

type readerFunc func([]byte) (int, error)

func (r readerFunc) Read(p []byte) (int, error) { return r(p) }

// TestNames are bounded, can be seen, and have no secrets.
func TestNames(t *testing.T) {
	list := []judge.Change{
		{Path: "web/größe.html", Kind: judge.Added, New: judge.Entry{Mode: 0o100644, Size: 7}},
		{Path: "a b", Kind: judge.Modified}, {Path: "link", Kind: judge.TypeChanged}, {Path: "gone", Kind: judge.Deleted, Old: judge.Entry{Size: 9}},
		{Path: "new\nline\x1b[2J", Kind: judge.Added}, {Path: "no\xfftext", Kind: judge.Added}, {Path: "right\u202eleft", Kind: judge.Added},
		{Path: `"quoted"`, Kind: judge.Added}, {Path: "keys/" + token, Kind: judge.Added},
		// Names of two files are no secret together: what is between them must be seen.
		{Path: "-----BEGIN PRIVATE KEY-----", Kind: judge.Added}, {Path: "between", Kind: judge.Added}, {Path: "-----END PRIVATE KEY-----", Kind: judge.Added},
	}
	got, err := NewMaker().Names(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, n := range got {
		paths = append(paths, n.Type+" "+n.Path)
	}
	want := []string{
		"add web/größe.html", "change a b", "change link", "unlink gone", `add "new\nline\x1b[2J"`, `add "no\xfftext"`, `add "right\u202eleft"`,
		`add "\"quoted\""`, "add keys/[redacted: github-pat]", "add -----BEGIN PRIVATE KEY-----", "add between", "add -----END PRIVATE KEY-----",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[0].Size != 7 || got[0].Mode != 0o100644 || got[3].Size != 0 {
		t.Errorf("%+v", got)
	}
	for path, most := range map[string]int{"short": protocol.MaxListed, strings.Repeat("\xff", 4000): protocol.MaxNames / 16000} {
		got, err := NewMaker().Names(t.Context(), slices.Repeat([]judge.Change{{Path: path}}, 100_000))
		if err != nil || len(got) > most || len(got) < most/2 {
			t.Errorf("%d names of at most %d, %v", len(got), most, err)
		}
	}
}
