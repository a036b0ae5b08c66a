// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// testingT is what *testing.T, *testing.B and *rapid.T have in common.
type testingT interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// readLimit of the engines, in bytes.
const readLimit = 1 << 20

// bench is a workspace with its trusted repository, laid out from a base.
type bench struct {
	t       testingT
	ctx     context.Context
	root    string
	scratch string
	repo    *git.Repository
	engine  *workspace.Engine
	base    objects.ID
	files   map[string]string
}

// newBench lays out a workspace with these files as the base. A content that begins with "-> " makes a link, "+x " an
// executable.
func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	b := openBench(t.Context(), t, t.TempDir(), t.TempDir(), files)
	t.Cleanup(b.close)
	return b
}

// openBench keeps the agent's side in one directory and the trusted one in another.
func openBench(ctx context.Context, t testingT, dir, trusted string, files map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, ctx: ctx, root: filepath.Join(dir, "workspace"), scratch: filepath.Join(trusted, "scratch"), files: files}
	for _, d := range []string{b.root, b.scratch} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if b.repo, err = git.Init(ctx, filepath.Join(trusted, "repo.git"), git.Options{}); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(trusted, "source")
	for path, content := range files {
		put(t, source, path, content)
	}
	if err := os.MkdirAll(source, 0o755); err != nil {
		t.Fatal(err)
	}
	b.git(nil, "--work-tree="+source, "add", "-A", "-f")
	tree := b.git(nil, "write-tree")
	b.base = parse(t, b.git(nil, "commit-tree", "-m", "Base", tree))
	b.engine = b.open()
	if _, err := b.engine.Restore(ctx, b.base); err != nil {
		t.Fatal(err)
	}
	return b
}

// open makes an engine that knows nothing but the base.
func (b *bench) open() *workspace.Engine {
	b.t.Helper()
	e, err := workspace.Open(b.ctx, workspace.Options{Root: b.root, Repository: b.repo, Scratch: b.scratch, ReadLimit: readLimit})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := e.Reset(b.ctx, b.base, b.base); err != nil {
		b.t.Fatal(err)
	}
	return e
}

func (b *bench) close() {
	if err := b.engine.Close(); err != nil {
		b.t.Fatal(err)
	}
	if err := b.repo.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// capture expects a settled snapshot of a quiet workspace.
func (b *bench) capture() workspace.Snapshot {
	b.t.Helper()
	return b.captureWith(workspace.Still{})
}

// captureWith expects a settled snapshot.
func (b *bench) captureWith(still workspace.Still) workspace.Snapshot {
	b.t.Helper()
	s, err := b.engine.Capture(b.ctx, still)
	if err != nil {
		b.t.Fatal(err)
	}
	if !s.Settled {
		b.t.Fatalf("snapshot is not settled: %s", s.Reason)
	}
	return s
}

// git runs stock git on the trusted repository.
func (b *bench) git(stdin []byte, args ...string) string {
	b.t.Helper()
	return runGit(b.t, stdin, []string{"GIT_DIR=" + b.repo.Dir(), "GIT_INDEX_FILE=" + filepath.Join(b.scratch, "test-index")}, args...)
}

func runGit(t testingT, stdin []byte, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = "/"
	cmd.Env = append(append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com"), env...)
	cmd.Stdin = bytes.NewReader(stdin)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	// check-ignore exits 1 when nothing is ignored.
	if err := cmd.Run(); err != nil && !(cmd.ProcessState.ExitCode() == 1 && complaints.Len() == 0) {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, complaints.String())
	}
	return strings.TrimSpace(out.String())
}

func parse(t testingT, s string) objects.ID {
	t.Helper()
	id, err := objects.ParseID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// put writes a file, link or executable; see newBench.
func put(t testingT, root, path, content string) {
	t.Helper()
	if err := tryPut(root, path, content); err != nil {
		t.Fatal(err)
	}
}

func tryPut(root, path, content string) error {
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if target, isLink := strings.CutPrefix(content, "-> "); isLink {
		return os.Symlink(target, path)
	}
	mode := fs.FileMode(0o644)
	content, executable := strings.CutPrefix(content, "+x ")
	if executable {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// listing shows a tree as "mode path" lines.
func (b *bench) listing(tree objects.ID) string {
	b.t.Helper()
	return b.git(nil, "ls-tree", "-r", "--format=%(objectmode) %(path)", tree.String())
}

// fsck makes sure that stock git accepts all that was written.
func (b *bench) fsck(trees ...objects.ID) {
	b.t.Helper()
	args := []string{"fsck", "--full", "--strict", "--no-dangling"}
	for _, tree := range trees {
		args = append(args, tree.String())
	}
	if out := b.git(nil, args...); strings.Contains(out, "error") || strings.Contains(out, "missing") {
		b.t.Fatalf("fsck: %s", out)
	}
}

// reference hashes the whole workspace by stock git, file by file; ignored tells what the base's rules ignore.
func (b *bench) reference() objects.ID {
	b.t.Helper()
	var info bytes.Buffer
	ignored := b.ignored()
	err := filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(b.root, path)
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if d.IsDir() || ignored[rel] || d.Type()&^fs.ModeSymlink != 0 {
			return nil
		}
		if st, err := d.Info(); err == nil && st.Size() > readLimit {
			return nil
		}
		var content []byte
		mode := "100644"
		if d.Type() == fs.ModeSymlink {
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			mode, content = "120000", []byte(target)
		} else {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
			if st, err := d.Info(); err == nil && st.Mode()&0o100 != 0 {
				mode = "100755"
			}
		}
		fmt.Fprintf(&info, "%s %s\t%s\x00", mode, b.git(content, "hash-object", "-w", "--stdin", "--no-filters"), rel)
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	index := filepath.Join(b.scratch, "reference-index")
	os.Remove(index)
	env := []string{"GIT_DIR=" + b.repo.Dir(), "GIT_INDEX_FILE=" + index}
	runGit(b.t, info.Bytes(), env, "update-index", "-z", "--index-info")
	return parse(b.t, runGit(b.t, nil, env, "write-tree"))
}

// ignored asks stock git, in a copy of the workspace's names that has the base's ignore files and no others.
func (b *bench) ignored() map[string]bool {
	b.t.Helper()
	mirror, err := os.MkdirTemp(b.scratch, "reference")
	if err != nil {
		b.t.Fatal(err)
	}
	defer os.RemoveAll(mirror)
	var paths bytes.Buffer
	err = filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(b.root, path)
		switch {
		case err != nil:
			return err
		case rel == ".":
			return nil
		case d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(mirror, rel), 0o755)
		}
		if _, tracked := b.files[rel]; !tracked {
			fmt.Fprintf(&paths, "./%s\x00", rel)
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	for path, content := range b.files {
		if filepath.Base(path) == ".gitignore" {
			// What stands there now may be a file.
			_ = tryPut(mirror, path, content)
		}
	}
	ignored := make(map[string]bool)
	repository := emptyRepository(b.t, b.scratch)
	out := runGit(b.t, paths.Bytes(), nil, "-C", mirror, "--git-dir="+repository, "--work-tree=.", "check-ignore", "--stdin", "-z", "-v", "-n", "--no-index")
	fields := strings.Split(out, "\x00")
	for i := 0; i+3 < len(fields); i += 4 {
		if fields[i+2] != "" && !strings.HasPrefix(fields[i+2], "!") {
			ignored[strings.TrimPrefix(fields[i+3], "./")] = true
		}
	}
	return ignored
}

// emptyRepository is what git takes for one; git init would be a process.
func emptyRepository(t testingT, dir string) string {
	t.Helper()
	dir = filepath.Join(dir, "empty.git")
	for _, name := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, "HEAD", "ref: refs/heads/main\n")
	return dir
}
