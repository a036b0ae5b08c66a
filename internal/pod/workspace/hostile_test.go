// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

func TestFindings(t *testing.T) {
	b := newBench(t, shop())
	put(t, b.root, "hide/.git/config", "[core]\n")
	put(t, b.root, "hide/visible.txt", "must not be hidden by the repository beside it\n")
	put(t, b.root, "deep/.GIT", "gitdir: elsewhere\n")
	put(t, b.root, "zero/.g\u200cit/HEAD", "x")
	put(t, b.root, ".git/HEAD", "the agent's own is none\n")
	if err := unix.Mkfifo(filepath.Join(b.root, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(filepath.Join(b.root, "null"), unix.S_IFCHR|0o644, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.root, "README.md")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(b.root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sparse(t, filepath.Join(b.root, "big"), 1<<40)
	began := time.Now()
	s := b.capture()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("a FIFO or a file with 1 TiB held the capture up for %v", took)
	}
	for i := range s.Found {
		if s.Found[i].Kind != judge.FoundTooLarge {
			s.Found[i].Size = 0
		}
	}
	want := []judge.Found{
		{Path: "README.md", Kind: judge.FoundSocket},
		{Path: "big", Kind: judge.FoundTooLarge, Size: 1 << 40},
		{Path: "deep/.GIT", Kind: judge.FoundGitDir},
		{Path: "hide/.git", Kind: judge.FoundGitDir},
		{Path: "null", Kind: judge.FoundDevice},
		{Path: "pipe", Kind: judge.FoundFIFO},
		{Path: "zero/.g\u200cit", Kind: judge.FoundGitDir},
	}
	if diff := cmp.Diff(want, s.Found); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	listing := b.listing(s.Tree)
	if !strings.Contains(listing, "hide/visible.txt") || strings.Contains(listing, "README.md") || strings.Contains(listing, "git/") {
		t.Errorf("tree:\n%s", listing)
	}
	b.fsck(s.Tree)
	if _, err := b.engine.Restore(t.Context(), b.base); err != nil {
		t.Fatal(err)
	}
	again := b.capture()
	if len(again.Found) != 0 || len(again.Changes) != 0 {
		t.Errorf("after the restore: %v, %v", again.Found, again.Changes)
	}
	if _, err := os.Stat(filepath.Join(b.root, ".git/HEAD")); err != nil {
		t.Errorf("the agent's repository did not stay: %v", err)
	}
}

// TestHardlinks: a file is found that has a name outside of what is captured, and only such a file.
func TestHardlinks(t *testing.T) {
	b := newBench(t, shop())
	elsewhere := filepath.Join(t.TempDir(), "outside")
	put(t, filepath.Dir(elsewhere), "outside", "x\n")
	link := func(from, to string) {
		t.Helper()
		if err := os.Link(from, filepath.Join(b.root, to)); err != nil {
			t.Fatal(err)
		}
	}
	link(elsewhere, "foreign")
	link(elsewhere, "again")
	put(t, b.root, "one", "both names are captured\n")
	link(filepath.Join(b.root, "one"), "two")
	want := []judge.Found{{Path: "again", Kind: judge.FoundHardlink}, {Path: "foreign", Kind: judge.FoundHardlink}}
	for range 2 {
		if diff := cmp.Diff(want, b.capture().Found); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for _, name := range []string{"again", "foreign"} {
		if err := os.Remove(filepath.Join(b.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if s := b.capture(); len(s.Found) != 0 {
		t.Errorf("the links are gone, found %v", s.Found)
	}
}

func sparse(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
}

func TestLargeFileOfTheBaseStays(t *testing.T) {
	large := strings.Repeat("x", 3<<20)
	b := newBench(t, map[string]string{"large": large, "small": "s\n"})
	if s := b.capture(); len(s.Found) != 0 || len(s.Changes) != 0 {
		t.Fatalf("untouched: %v, %v", s.Found, s.Changes)
	}
	put(t, b.root, "large", strings.Repeat("y", 3<<20))
	s := b.capture()
	if len(s.Found) != 1 || s.Found[0].Kind != judge.FoundTooLarge {
		t.Errorf("changed: found %v", s.Found)
	}
	if s := b.capture(); len(s.Found) != 1 {
		t.Errorf("changed, once more: found %v", s.Found)
	}
}

// TestFileThatOutgrowsTheLimitLeavesTheTree: its old content must not stand for it.
func TestFileThatOutgrowsTheLimitLeavesTheTree(t *testing.T) {
	for name, watched := range map[string]bool{"watched": true, "not watched": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shop())
			if watched {
				if err := b.engine.Watch(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			b.capture()
			sparse(t, filepath.Join(b.root, "README.md"), readLimit+1)
			s := b.capture()
			if b.hasFile(s.Tree, "README.md", b.files["README.md"]) {
				t.Error("the tree still has what the file was before it grew")
			}
			want := []judge.Found{{Path: "README.md", Kind: judge.FoundTooLarge, Size: readLimit + 1}}
			if diff := cmp.Diff(want, s.Found); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSwappedPathsNeverLeak swaps every component of a path with links to a secret while captures run.
func TestSwappedPathsNeverLeak(t *testing.T) {
	const canary = "CANARY-dcd8c1b2"
	b := newBench(t, map[string]string{"a/b/c/file": "harmless\n", "a/b/other": "harmless too\n"})
	secret := filepath.Join(filepath.Dir(b.root), "secret")
	put(t, secret, "b/c/file", canary)
	put(t, secret, "c/file", canary)
	put(t, secret, "file", canary)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		race(ctx, b.root, secret)
	}()
	for range 60 {
		if _, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: stops()}); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	<-done
	b.git(nil, "repack", "-a", "-d", "-q", "-k")
	all := b.git(nil, "cat-file", "--batch-all-objects", "--batch")
	if strings.Contains(all, canary) {
		t.Error("the secret outside the workspace is in the trusted repository")
	}
	if !strings.Contains(all, "harmless") {
		t.Error("nothing was captured: the test proves nothing")
	}
}

// race exchanges directories and files with links, as fast as it can.
func race(ctx context.Context, root, secret string) {
	swaps := [][2]string{{"a", secret}, {"a/b", filepath.Join(secret, "b")}, {"a/b/c", filepath.Join(secret, "c")}, {"a/b/c/file", filepath.Join(secret, "file")}}
	for i := 0; ctx.Err() == nil; i++ {
		path, target := filepath.Join(root, swaps[i%4][0]), swaps[i%4][1]
		link := filepath.Join(root, "link")
		if os.Symlink(target, link) != nil {
			continue
		}
		for range 4 {
			unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE)
		}
		os.Remove(link)
	}
}

// TestUnreadableIsFound: what the agent took its own permissions from is a finding and no failure. What was captured of it
// before stays, and a restore takes it back.
func TestUnreadableIsFound(t *testing.T) {
	if os.Getuid() == 0 {
		// Root reads everything.
		runAsAgent(t)
		return
	}
	for name, watched := range map[string]bool{"watched": true, "not watched": false} {
		t.Run(name, func(t *testing.T) { findUnreadable(t, watched) })
	}
}

func findUnreadable(t *testing.T, watched bool) {
	tests := map[string]struct {
		spoil string
		mode  os.FileMode
		write string
		found string
	}{
		"file":                              {spoil: "src/main.go", write: "src/main.go", found: "src/main.go"},
		"new file":                          {spoil: "src/new.go", write: "src/new.go", found: "src/new.go"},
		"directory":                         {spoil: "src", write: "src/main.go", found: "src"},
		"directory that cannot be listed":   {spoil: "src", mode: 0o300, write: "src/main.go", found: "src"},
		"directory that cannot be searched": {spoil: "src", mode: 0o600, write: "src/main.go", found: "src"},
		"directory above":                   {spoil: "docs", write: "docs/a/b/c.md", found: "docs"},
		"new and empty directory":           {spoil: "x", write: "x/y", found: "x"},
		"name that is no text":              {spoil: "src/\xff\xfe", write: "src/\xff\xfe", found: "src/\xff\xfe"},
		"root":                              {spoil: ".", write: "src/main.go", found: ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shop())
			if watched {
				if err := b.engine.Watch(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			before := b.capture()
			put(t, b.root, test.write, "changed\n")
			spoilt := filepath.Join(b.root, test.spoil)
			t.Cleanup(func() { _ = os.Chmod(spoilt, 0o755) })
			if err := os.Chmod(spoilt, test.mode); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: stops()})
				if err != nil {
					t.Fatal(err)
				}
				want := []judge.Found{{Path: test.found, Kind: judge.FoundUnreadable}}
				if diff := cmp.Diff(want, s.Found); diff != "" || !s.Settled || !s.Incomplete {
					t.Errorf("settled %v (%s), incomplete %v, found (-want +got):\n%s", s.Settled, s.Reason, s.Incomplete, diff)
				}
				// What can be searched and not listed can still be read where a path is known.
				if s.Tree != before.Tree && test.mode != 0o300 {
					t.Errorf("what was captured before did not stay: %v", s.Changes)
				}
			}
			if err := os.Chmod(spoilt, 0o755); err != nil {
				t.Fatal(err)
			}
			content := objects.Hash(objects.KindBlob, []byte("changed\n")).String()
			if s := b.capture(); s.Incomplete || !strings.Contains(b.git(nil, "ls-tree", "-r", s.Tree.String()), content) {
				t.Errorf("readable again: found %v, tree\n%s", s.Found, b.listing(s.Tree))
			}
			if err := os.Chmod(spoilt, test.mode); err != nil {
				t.Fatal(err)
			}
			if _, err := b.engine.Restore(t.Context(), b.base); err != nil {
				t.Fatalf("restore: %v", err)
			}
			if s := b.capture(); s.Incomplete || len(s.Changes) != 0 {
				t.Errorf("after the restore: found %v, changes %v", s.Found, s.Changes)
			}
		})
	}
}

// TestUnreadableRootDoesNotKeepTheEngineFromOpening: a watchdog that is started again must get past what the agent did.
func TestUnreadableRootDoesNotKeepTheEngineFromOpening(t *testing.T) {
	if os.Getuid() == 0 {
		runAsAgent(t)
		return
	}
	b := newBench(t, shop())
	if err := errors.Join(b.engine.Close(), os.Chmod(b.root, 0)); err != nil {
		t.Fatal(err)
	}
	b.engine = b.open()
	if s := b.capture(); len(s.Changes) != 0 {
		t.Errorf("changes %v", s.Changes)
	}
}

// runAsAgent runs the test again as the user that a pod runs as.
func runAsAgent(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "agent")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	if err := errors.Join(os.WriteFile(binary, self, 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "--- PASS: "+t.Name()) {
		t.Fatalf("as uid 1000: %v\n%s", err, out.String())
	}
}

func TestDeepAndManyNeverHang(t *testing.T) {
	b := newBench(t, shop())
	d, err := os.Open(b.root)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(d.Fd())
	for range 700 {
		if err := unix.Mkdirat(fd, "deeper", 0o755); err != nil {
			t.Fatal(err)
		}
		below, err := unix.Openat(fd, "deeper", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		fd = below
	}
	unix.Close(fd)
	s, err := b.engine.Capture(t.Context(), workspace.Still{})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Settled || !s.Incomplete || len(s.Found) != 1 || s.Found[0].Kind != judge.FoundTooDeep {
		t.Errorf("settled %v, reason %q, incomplete %v, found %v", s.Settled, s.Reason, s.Incomplete, s.Found)
	}
	if _, err := b.engine.Restore(t.Context(), b.base); err != nil {
		t.Fatal(err)
	}
	few, err := workspace.Open(t.Context(), workspace.Options{Root: b.root, Repository: b.repo, Scratch: t.TempDir(), MaxEntries: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer few.Close()
	if err := few.Reset(t.Context(), b.base, b.base); err != nil {
		t.Fatal(err)
	}
	s, err = few.Capture(t.Context(), workspace.Still{})
	if err != nil || !s.Settled || !s.Incomplete || !s.Workspace.Uncounted {
		t.Errorf("too many entries: %v, settled %v, incomplete %v, workspace %+v", err, s.Settled, s.Incomplete, s.Workspace)
	}
}

func TestFullTrustedVolumeIsTypedAndLosesNothing(t *testing.T) {
	b := newBench(t, shop())
	b.capture()
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatalf("a small volume is needed: %v", err)
	}
	defer unix.Unmount(small, unix.MNT_DETACH)
	repo, err := git.Init(t.Context(), filepath.Join(small, "repo.git"), git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	tree, err := repo.Store().Write(objects.KindTree, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := workspace.Open(t.Context(), workspace.Options{Root: b.root, Repository: repo, Scratch: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Reset(t.Context(), tree, tree); err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 400<<10)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	key := objects.Hash(objects.KindBlob, noise)
	for i := range noise {
		noise[i] ^= key[i%20] + byte(i>>8) + byte(i*7>>5)
		if i%20 == 0 {
			key = objects.Hash(objects.KindBlob, key[:])
		}
	}
	put(t, b.root, "noise", string(noise))
	_, err = e.Capture(t.Context(), workspace.Still{})
	if !errors.Is(err, git.ErrFull) {
		t.Fatalf("error %v, want ErrFull", err)
	}
	left, err := filepath.Glob(filepath.Join(small, "repo.git/objects/pack/*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := os.Remove(filepath.Join(b.root, "noise")); err != nil {
		t.Fatal(err)
	}
	s, err := e.Capture(t.Context(), workspace.Still{})
	if err != nil || !s.Settled {
		t.Fatalf("with room again: %v, %v", err, s.Reason)
	}
	if len(s.Changes) != len(shop()) {
		t.Errorf("%d changes, want every file: %v", len(s.Changes), s.Changes)
	}
}
