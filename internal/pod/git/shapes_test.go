// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// TestRepositoriesThatAreRefused has repositories on the server that no workspace can be made of.
func TestRepositoriesThatAreRefused(t *testing.T) {
	sha256 := newHub(t)
	work := filepath.Join(t.TempDir(), "work")
	plain(t, "", "init", "-q", "-b", "main", "--object-format=sha256", work)
	write(t, work, "a", "a\n")
	plain(t, work, "add", "-A")
	plain(t, work, "commit", "-q", "-m", "one")
	sha256.serve(t, "clone", "-q", "--bare", work)
	long := plain(t, work, "rev-parse", "HEAD")

	twice := newHub(t)
	file := objects.Entry{Name: "a", Mode: objects.ModeFile, ID: twice.blob(t, "a\n")}
	double := twice.tree(t, file, file)
	twice.commit(t, double)

	holed := newHub(t)
	gone := holed.lose(t, "main:src/a.go")

	for name, tc := range map[string]struct {
		hub      hub
		revision string
		want     error
		words    []string
	}{
		"SHA-256 names":                {sha256, "main", git.ErrObjectFormat, []string{sha256.url, "SHA-256", "SHA-1"}},
		"a commit with a SHA-256 name": {sha256, long, git.ErrObjectFormat, []string{"SHA-1"}},
		"no commit among SHA-256":      {sha256, strings.Repeat("1", 40), git.ErrObjectFormat, []string{"SHA-1"}},
		"a name that is there twice":   {twice, "main", git.ErrDamaged, []string{double.String(), "duplicateEntries"}},
		"a file that the server lacks": {holed, "main", git.ErrDamaged, []string{gone}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newRepository(t).Fetch(t.Context(), tc.hub.remote(), tc.revision)
			if !errors.Is(err, tc.want) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			for _, word := range tc.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("error %q does not say %q", err, word)
				}
			}
		})
	}
}

// TestBrokenVolume has trusted repositories that lack what they should hold.
func TestBrokenVolume(t *testing.T) {
	h := newHub(t)
	r := newRepository(t)
	base, err := r.Fetch(t.Context(), h.remote(), "main")
	if err != nil {
		t.Fatal(err)
	}
	packs, err := filepath.Glob(filepath.Join(r.Dir(), "objects", "pack", "pack-*"))
	if err != nil || len(packs) == 0 {
		t.Fatalf("no pack: %v", err)
	}
	for _, path := range packs {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.UpdateRefs(t.Context(), []git.RefUpdate{{Name: "refs/tidewaiter/base", New: base}}); !errors.Is(err, git.ErrCorrupt) {
		t.Errorf("a ref to a commit that is gone: %v, want ErrCorrupt", err)
	}
	if _, err := r.Packs().History(t.Context(), base, objects.ID{}, t.TempDir()); !errors.Is(err, git.ErrCorrupt) {
		t.Errorf("history of a commit that is gone: %v, want ErrCorrupt", err)
	}
	if _, err := r.Ref(t.Context(), "refs/tidewaiter/base"); errors.Is(err, git.ErrCorrupt) {
		t.Errorf("a ref that was never made: %v", err)
	}
}

// serve replaces the repository by one that git makes with these arguments and its path.
func (h hub) serve(t *testing.T, args ...string) {
	t.Helper()
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	plain(t, "", append(args, h.dir)...)
}

func (h hub) blob(t *testing.T, content string) objects.ID {
	t.Helper()
	return h.object(t, objects.KindBlob, []byte(content))
}

// tree writes a tree with entries as they are, in the modes and in the order in which they come.
func (h hub) tree(t *testing.T, entries ...objects.Entry) objects.ID {
	t.Helper()
	_, content := objects.NewTree(entries)
	return h.object(t, objects.KindTree, content)
}

func (h hub) object(t *testing.T, kind objects.Kind, content []byte) objects.ID {
	t.Helper()
	path := filepath.Join(t.TempDir(), "object")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	id, err := objects.ParseID(plain(t, h.dir, "hash-object", "-w", "--literally", "-t", string(kind), path))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// commit makes a tree the newest commit of the branch main.
func (h hub) commit(t *testing.T, tree objects.ID) objects.ID {
	t.Helper()
	id := plain(t, h.dir, "commit-tree", "-m", "odd", "-p", "main", tree.String())
	plain(t, h.dir, "update-ref", "refs/heads/main", id)
	return revision(t, h.dir, id)
}

// lose removes one object from the server, and gives its name.
func (h hub) lose(t *testing.T, name string) string {
	t.Helper()
	id := plain(t, h.dir, "rev-parse", name)
	if err := os.Remove(filepath.Join(h.dir, "objects", id[:2], id[2:])); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestShallowServer has a server that lacks the older part of its history.
func TestShallowServer(t *testing.T) {
	full := newHub(t)
	for name, what := range map[string]string{"a branch": "main", "a tag": "v1", "a commit": full.base.String()} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.serve(t, "clone", "-q", "--bare", "--depth", "1", "file://"+full.dir)
			r := newRepository(t)
			base, err := r.Fetch(t.Context(), h.remote(), what)
			if err != nil {
				t.Fatal(err)
			}
			if base != full.base {
				t.Errorf("base %s, want %s", base, full.base)
			}
			work := child(t, r, base, "work")
			if err := r.UpdateRefs(t.Context(), []git.RefUpdate{{Name: "refs/tidewaiter/chain", New: work}}); err != nil {
				t.Fatal(err)
			}
			if err := r.Push(t.Context(), h.remote(), work, "tidewaiter/x"); err != nil {
				t.Fatal(err)
			}
			if got := revision(t, h.dir, "tidewaiter/x"); got != work {
				t.Errorf("the branch is at %s, want %s", got, work)
			}
			if err := r.Packs().Prune(t.Context(), base); err != nil {
				t.Error(err)
			}
			if err := r.Check(t.Context()); err != nil {
				t.Errorf("check: %v", err)
			}
		})
	}
}

// TestFetchThatIsKilled has the machine kill git's check of what was fetched, as it does where memory is short: nothing is known of the
// server then.
func TestFetchThatIsKilled(t *testing.T) {
	h := newHub(t)
	programs := t.TempDir()
	have, err := filepath.Glob(filepath.Join(plain(t, "", "--exec-path"), "git-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range have {
		if err := os.Symlink(path, filepath.Join(programs, filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
	}
	script := func(path, text string) {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\nexec git \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script(filepath.Join(programs, "git"), "PATH=/usr/local/bin:/usr/bin:/bin; case \" $* \" in *\" rev-list \"*) kill -9 $$;; esac")
	outer := filepath.Join(t.TempDir(), "git")
	script(outer, "export GIT_EXEC_PATH="+programs)
	r, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "repo.git"), git.Options{Git: outer})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Fetch(t.Context(), h.remote(), "main"); err == nil || errors.Is(err, git.ErrDamaged) {
		t.Errorf("error %v, want one that does not say that the server's repository is damaged", err)
	}
}

// TestServerThatLeavesAnObjectOut has a server that sends a history without one of its objects.
func TestServerThatLeavesAnObjectOut(t *testing.T) {
	for name, what := range map[string]string{"a file": "main:src/a.go", "a directory": "main:src", "a commit": "main~1"} {
		t.Run(name, func(t *testing.T) {
			hook := filepath.Join(t.TempDir(), "hook")
			h := newHub(t, "uploadpack.packObjectsHook="+hook)
			gone := plain(t, h.dir, "rev-parse", what)
			text := "#!/bin/sh\ncat >/dev/null\ngit cat-file --batch-check --batch-all-objects | cut -d' ' -f1 | grep -v " + gone + " | git pack-objects --stdout -q\n"
			if err := os.WriteFile(hook, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := newRepository(t).Fetch(t.Context(), h.remote(), "main")
			if !errors.Is(err, git.ErrDamaged) || !strings.Contains(err.Error(), gone) {
				t.Errorf("error %v, want ErrDamaged and %s", err, gone)
			}
		})
	}
}

// TestNameOfARepositoryIsNoSymptom has a repository that is called after an algorithm, on a server that is down.
func TestNameOfARepositoryIsNoSymptom(t *testing.T) {
	h := newHub(t)
	remote := h.remote()
	remote.URL = "https://127.0.0.1:1/sha256-simd.git"
	if _, err := newRepository(t).Fetch(t.Context(), remote, "main"); !errors.Is(err, git.ErrUnreachable) {
		t.Errorf("error %v, want ErrUnreachable", err)
	}
}
