// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// store keeps objects in memory, so that a patch can be tried without a repository.
type store map[objects.ID][]byte

func (s store) read(id objects.ID) ([]byte, error) {
	content, found := s[id]
	if !found {
		return nil, ErrNoObject
	}
	return content, nil
}

func (s store) write(kind objects.Kind, content []byte) (objects.ID, error) {
	id := objects.Hash(kind, content)
	s[id] = content
	return id, nil
}

// shop is a small tree of every kind of entry.
func (s store) shop(t testing.TB) *objects.Tree {
	t.Helper()
	var edits []objects.Edit
	for path, file := range map[string]struct {
		mode    uint32
		content string
	}{
		"README.md":          {objects.ModeFile, "The shop.\n"},
		"web/index.html":     {objects.ModeFile, "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"},
		"web/empty":          {objects.ModeFile, ""},
		"web/bare":           {objects.ModeFile, "no newline"},
		"web/dos.txt":        {objects.ModeFile, "one\r\ntwo\r\n"},
		"web/sp ace/ä.txt":   {objects.ModeFile, "umlaut\n"},
		"bin/run":            {objects.ModeExecutable, "#!/bin/sh\n"},
		"web/link":           {objects.ModeSymlink, "index.html"},
		"vendor/lib":         {objects.ModeGitlink, ""},
		"docs/a/b/deep.text": {objects.ModeFile, "deep\n"},
	} {
		id, _ := s.write(objects.KindBlob, []byte(file.content))
		edits = append(edits, objects.Edit{Path: path, Entry: &objects.Entry{Mode: file.mode, ID: id, Size: int64(len(file.content))}})
	}
	tree, err := (&objects.Tree{}).Apply(edits, func(objects.ID, []byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func (s store) patch(t testing.TB, text string) (before, after *objects.Tree, err error) {
	before = s.shop(t)
	p := patcher{over: before, read: s.read, write: s.write, fresh: map[objects.ID][]byte{}}
	after, err = p.apply(text)
	return before, after, err
}

// differences writes what differs as "path oldmode newmode content".
func (s store) differences(before, after *objects.Tree) map[string]string {
	all := map[string]string{}
	objects.Diff(before, after, func(path string, x, y *objects.Entry) {
		if y == nil {
			all[path] = "gone"
			return
		}
		all[path] = fmt.Sprintf("%o %s", y.Mode, s[y.ID])
		if x == nil {
			all[path] = "new " + all[path]
		}
	})
	return all
}

const index = "diff --git a/web/index.html b/web/index.html\n--- a/web/index.html\n+++ b/web/index.html\n"

func TestPatchesThatApply(t *testing.T) {
	for name, tc := range map[string]struct {
		patch string
		want  map[string]string
	}{
		"one line": {
			index + "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
			map[string]string{"web/index.html": "100644 one\n2\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"},
		},
		"two hunks, and lines counted from the result": {
			index + "@@ -1,2 +1,3 @@\n one\n+and a half\n two\n@@ -9,2 +10,1 @@\n-nine\n ten\n",
			map[string]string{"web/index.html": "100644 one\nand a half\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nten\n"},
		},
		"a line at the end": {
			index + "@@ -10 +10,2 @@\n ten\n+eleven\n",
			map[string]string{"web/index.html": "100644 one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\n"},
		},
		"a last line without its newline": {
			index + "@@ -10 +10 @@\n-ten\n+10",
			map[string]string{"web/index.html": "100644 one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n10\n"},
		},
		"a new file": {
			"diff --git a/web/login.html b/web/login.html\nnew file mode 100644\nindex 0000000..e69de29\n--- /dev/null\n+++ b/web/login.html\n@@ -0,0 +1 @@\n+<form>\n",
			map[string]string{"web/login.html": "new 100644 <form>\n"},
		},
		"a new file without lines, in a new directory": {
			"diff --git a/new/empty b/new/empty\nnew file mode 100755\n",
			map[string]string{"new/empty": "new 100755 "},
		},
		"a deleted file": {
			"diff --git a/README.md b/README.md\ndeleted file mode 100644\n--- a/README.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-The shop.\n",
			map[string]string{"README.md": "gone"},
		},
		"a deleted file without lines": {
			"diff --git a/web/empty b/web/empty\ndeleted file mode 100644\n",
			map[string]string{"web/empty": "gone"},
		},
		"a rename": {
			"diff --git a/README.md b/docs/README.md\nsimilarity index 100%\nrename from README.md\nrename to docs/README.md\n",
			map[string]string{"README.md": "gone", "docs/README.md": "new 100644 The shop.\n"},
		},
		"a rename with a change": {
			"diff --git a/README.md b/LIESMICH\nsimilarity index 50%\nrename from README.md\nrename to LIESMICH\n--- a/README.md\n+++ b/LIESMICH\n@@ -1 +1 @@\n-The shop.\n+Der Laden.\n",
			map[string]string{"README.md": "gone", "LIESMICH": "new 100644 Der Laden.\n"},
		},
		"a copy of an executable": {
			"diff --git a/bin/run b/bin/walk\nsimilarity index 100%\ncopy from bin/run\ncopy to bin/walk\n",
			map[string]string{"bin/walk": "new 100755 #!/bin/sh\n"},
		},
		"a mode": {
			"diff --git a/README.md b/README.md\nold mode 100644\nnew mode 100755\n",
			map[string]string{"README.md": "100755 The shop.\n"},
		},
		"a link": {
			"diff --git a/web/away b/web/away\nnew file mode 120000\n--- /dev/null\n+++ b/web/away\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n",
			map[string]string{"web/away": "new 120000 /etc/passwd"},
		},
		"no newline before, one after": {
			"diff --git a/web/bare b/web/bare\n--- a/web/bare\n+++ b/web/bare\n@@ -1 +1 @@\n-no newline\n\\ No newline at end of file\n+newline\n",
			map[string]string{"web/bare": "100644 newline\n"},
		},
		"lines that end in CRLF": {
			"diff --git a/web/dos.txt b/web/dos.txt\n--- a/web/dos.txt\n+++ b/web/dos.txt\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n+2\r\n",
			map[string]string{"web/dos.txt": "100644 one\r\n2\r\n"},
		},
		"a name in quotes": {
			`diff --git "a/web/sp ace/\303\244.txt" "b/web/sp ace/\303\244.txt"` + "\n" + `--- "a/web/sp ace/\303\244.txt"` + "\n" + `+++ "b/web/sp ace/\303\244.txt"` + "\n@@ -1 +1 @@\n-umlaut\n+ae\n",
			map[string]string{"web/sp ace/ä.txt": "100644 ae\n"},
		},
		"a file becomes a directory": {
			"diff --git a/web/bare b/web/bare\ndeleted file mode 100644\n--- a/web/bare\n+++ /dev/null\n@@ -1 +0,0 @@\n-no newline\n\\ No newline at end of file\n" +
				"diff --git a/web/bare/x b/web/bare/x\nnew file mode 100644\n--- /dev/null\n+++ b/web/bare/x\n@@ -0,0 +1 @@\n+x\n",
			map[string]string{"web/bare": "gone", "web/bare/x": "new 100644 x\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := store{}
			before, after, err := s.patch(t, tc.patch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.differences(before, after)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func newFile(name string) string {
	return "diff --git a/" + name + " b/" + name + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+x\n"
}

func TestPatchesThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ patch, want string }{
		"nothing":                       {"", "it is empty"},
		"too long":                      {strings.Repeat("x", 1<<20+1), "the limit is 1048576"},
		"words":                         {"Here is the patch:\n" + index + "@@ -1 +1 @@\n-one\n+1\n", "line 1: a patch begins with"},
		"words between":                 {index + "@@ -1 +1 @@\n-one\n+1\nand then\n" + newFile("x"), "neither a header nor inside of a hunk"},
		"a traditional patch":           {"--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-The shop.\n+x\n", "begins with 'diff --git"},
		"a traditional one within":      {"diff --git a/README.md b/README.md\nold mode 100644\nnew mode 100755\n\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+x\n", "as 2 files and as 1"},
		"a binary patch":                {"diff --git a/x b/x\nnew file mode 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n", "only text"},
		"too few lines":                 {index + "@@ -1,3 +1,3 @@\n one\n-two\n+2\n", "ends in the middle of a hunk"},
		"too many lines":                {index + "@@ -1 +1 @@\n-one\n+1\n two\n", "neither a header nor inside of a hunk"},
		"a hunk without a change":       {index + "@@ -1 +1 @@\n one\n", "no changes"},
		"other lines":                   {index + "@@ -1 +1 @@\n-uno\n+1\n", "hunk 1 does not match the file at its line 1"},
		"the wrong place":               {index + "@@ -2 +2 @@\n-one\n+1\n", "hunk 1 does not match the file at its line 2"},
		"beyond the end":                {index + "@@ -900 +900 @@\n-one\n+1\n", "fewer lines"},
		"far beyond the end":            {index + "@@ -999999999 +999999999 @@\n-one\n+1\n", "fewer lines"},
		"the wrong place after":         {index + "@@ -1 +1 @@\n-one\n+1\n@@ -3 +4 @@\n-three\n+3\n", "hunk 2 says that it begins at line 4 of the new file, and it is line 3"},
		"overlapping hunks":             {index + "@@ -1,2 +1,2 @@\n-one\n+1\n two\n@@ -2 +2 @@\n-two\n+2\n", "overlaps"},
		"hunks in another order":        {index + "@@ -3 +3 @@\n-three\n+3\n@@ -1 +1 @@\n-one\n+1\n", "hunk"},
		"nothing changes":               {index + "@@ -1 +1 @@\n-one\n+one\n", "changes nothing"},
		"a file twice":                  {index + "@@ -1 +1 @@\n-one\n+1\n" + index + "@@ -2 +2 @@\n-two\n+2\n", "names it twice"},
		"renamed and changed":           {"diff --git a/README.md b/x\nrename from README.md\nrename to x\ndiff --git a/README.md b/README.md\nold mode 100644\nnew mode 100755\n", "names it twice"},
		"no such file":                  {"diff --git a/no b/no\n--- a/no\n+++ b/no\n@@ -1 +1 @@\n-a\n+b\n", "there is no such file"},
		"new, and there":                {newFile("README.md"), "exists already"},
		"new, without saying so":        {"diff --git a/x b/x\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n", "/dev/null"},
		"over a directory":              {newFile("web"), "exists already"},
		"beneath a file":                {newFile("README.md/x"), "without saying so"},
		"a directory":                   {"diff --git a/web b/web\nold mode 100644\nnew mode 100755\n", "is a directory"},
		"a submodule":                   {"diff --git a/vendor/lib b/vendor/lib\ndeleted file mode 160000\n", "mode 160000"},
		"a submodule as a file":         {"diff --git a/vendor/lib b/vendor/lib\ndeleted file mode 100644\n", "submodule"},
		"a new submodule":               {"diff --git a/x b/x\nnew file mode 160000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+Subproject commit 1\n", "mode 160000"},
		"a setuid file":                 {"diff --git a/x b/x\nnew file mode 104755\n", "mode 104755"},
		"the wrong mode":                {"diff --git a/README.md b/README.md\nold mode 100755\nnew mode 100644\n", "its mode is 100755, and it is 100644"},
		"a file as a link":              {"diff --git a/README.md b/README.md\nindex 1..2 120000\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-The shop.\n+x\n", "its mode is 120000"},
		"up":                            {newFile("../x"), "not a path below the root"},
		"up within":                     {newFile("web/../../x"), "not a path below the root"},
		"here":                          {newFile("./x"), "not a path below the root"},
		"absolute":                      {newFile("/etc/passwd"), "inconsistent"},
		"ends in a slash":               {newFile("web/new/"), "not a path below the root"},
		".git":                          {newFile(".git/hooks/pre-commit"), "may touch a .git"},
		".GIT":                          {newFile("web/.GiT/config"), "may touch a .git"},
		"a rename into .git":            {"diff --git a/README.md b/.git/x\nrename from README.md\nrename to .git/x\n", "may touch a .git"},
		"NUL in a name":                 {"diff --git \"a/x\\000y\" \"b/x\\000y\"\nnew file mode 100644\n", "it is not a path"},
		"another name in the beginning": {"diff --git a/README.md b/README.md\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n", "inconsistent"},
		"names without a and b":         {"diff --git README.md ./README.md\n--- README.md\n+++ README.md\n@@ -1 +1 @@\n-The shop.\n+x\n", "must read 'diff --git"},
		"two names without a rename":    {"diff --git a/README.md b/x\n--- a/README.md\n+++ b/x\n@@ -1 +1 @@\n-The shop.\n+x\n", "rename from"},
		"new and renamed":               {"diff --git a/README.md b/x\nnew file mode 100644\nrename from README.md\nrename to x\n", "two things at once"},
		"deleted in part":               {"diff --git a/web/index.html b/web/index.html\ndeleted file mode 100644\n--- a/web/index.html\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "does not remove all of its lines"},
		"a copy over a file":            {"diff --git a/README.md b/bin/run\ncopy from README.md\ncopy to bin/run\n", "exists already"},
		"added without context":         {index + "@@ -10,0 +11 @@\n+eleven\n", "needs a line of context"},
		"many files":                    {manyFiles(501), "more than 500 files"},
		"many hunks":                    {index + strings.Repeat("@@ -1 +1 @@\n-one\n+1\n", 5001), "more than 5000 hunks"},
	} {
		t.Run(name, func(t *testing.T) {
			_, after, err := store{}.patch(t, tc.patch)
			if _, refused := errors.AsType[*PatchError](err); !refused {
				t.Fatalf("tree %v, error %v, want a PatchError", after, err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("refused because %q, want %q", err, tc.want)
			}
		})
	}
}

func manyFiles(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "diff --git a/f%d b/f%d\nnew file mode 100644\n", i, i)
	}
	return b.String()
}

// TestPatchedFilesAreBounded: copies of a large file are counted each, before anything is written for them.
func TestPatchedFilesAreBounded(t *testing.T) {
	s := store{}
	id, _ := s.write(objects.KindBlob, []byte(strings.Repeat("x", maxPatchedFile)))
	big := objects.Edit{Path: "big", Entry: &objects.Entry{Mode: objects.ModeFile, ID: id}}
	tree, err := s.shop(t).Apply([]objects.Edit{big}, func(objects.ID, []byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range 10 {
		fmt.Fprintf(&text, "diff --git a/big b/c%d\ncopy from big\ncopy to c%d\n", i, i)
	}
	p := patcher{over: tree, read: s.read, write: s.write, fresh: map[objects.ID][]byte{}}
	if _, err := p.apply(text.String()); err == nil || !strings.Contains(err.Error(), "together") {
		t.Errorf("ten copies: %v", err)
	}
}

// FuzzPatch: whatever the patch, reading it does not panic, what it makes is a proper tree, and every difference between
// the trees is one that the patch names.
func FuzzPatch(f *testing.F) {
	f.Add(index + "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")
	f.Add(newFile("web/x") + "diff --git a/README.md b/docs/README.md\nrename from README.md\nrename to docs/README.md\n")
	f.Add("diff --git \"a/web/sp ace/\\303\\244.txt\" b/x\ncopy from \"web/sp ace/\\303\\244.txt\"\ncopy to x\nold mode 100644\nnew mode 100755\n")
	f.Add("diff --git a/web/bare b/web/bare\n--- a/web/bare\n+++ b/web/bare\n@@ -1 +1 @@\n-no newline\n\\ No newline at end of file\n+newline\n")
	f.Add("diff --git a/x b/x\nnew file mode 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n")
	f.Add("diff --git a/web/dos.txt b/web/dos.txt\n--- a/web/dos.txt\n+++ b/web/dos.txt\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n+2\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := store{}
		before, after, err := s.patch(t, text)
		if err != nil {
			return
		}
		seen := 0
		objects.Diff(before, after, func(path string, x, y *objects.Entry) {
			seen++
			if err := checkPatchPath(path); err != nil {
				t.Fatalf("a path that no patch may name: %v", err)
			}
			// As it is, in quotes, or (a byte that is not printable) in some other spelling within quotes.
			if !strings.Contains(text, path) && !strings.Contains(text, `"`) {
				t.Fatalf("%q changed, and the patch does not name it", path)
			}
			for _, e := range []*objects.Entry{x, y} {
				if e != nil && e.Mode != objects.ModeFile && e.Mode != objects.ModeExecutable && e.Mode != objects.ModeSymlink {
					t.Fatalf("%q has mode %o", path, e.Mode)
				}
			}
			if y != nil && objects.Hash(objects.KindBlob, s[y.ID]) != y.ID {
				t.Fatalf("%q has no content", path)
			}
		})
		if seen == 0 {
			t.Fatal("a patch that changes nothing was taken")
		}
	})
}
