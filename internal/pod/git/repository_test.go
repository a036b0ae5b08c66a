// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/testkit/gitspy"
)

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := git.Open(t.Context(), dir, git.Options{}); !errors.Is(err, git.ErrCorrupt) {
		t.Errorf("nothing there: %v, want ErrCorrupt", err)
	}
	sha256 := filepath.Join(dir, "sha256.git")
	plain(t, "", "init", "-q", "--bare", "--object-format=sha256", sha256)
	if _, err := git.Open(t.Context(), sha256, git.Options{}); !errors.Is(err, git.ErrCorrupt) {
		t.Errorf("SHA-256 names: %v, want ErrCorrupt", err)
	}
	for range 2 {
		r, err := git.Init(t.Context(), filepath.Join(dir, "repo.git"), git.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
}

// TestAKnownRepositoryNeedsNoProcess: git is not asked about a repository that is as it was made.
func TestAKnownRepositoryNeedsNoProcess(t *testing.T) {
	program, starts := gitspy.Starts(t)
	o, dir := git.Options{Git: program}, filepath.Join(t.TempDir(), "repo.git")
	r, err := git.Init(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a := root(t, r, "a")
	const ref = "refs/tidewaiter/chain"
	if err := r.UpdateRefs(t.Context(), []git.RefUpdate{{Name: ref, New: a}}); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func(context.Context, string, git.Options) (*git.Repository, error){git.Init, git.Open} {
		again, err := open(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		ignore, err := again.NewIgnore(filepath.Join(t.TempDir(), "ignore"))
		if err != nil {
			t.Fatal(err)
		}
		defer ignore.Close()
	}
	for range 3 {
		if got, err := r.Ref(t.Context(), ref); got != a || err != nil {
			t.Fatalf("%s is %s, %v, want %s", ref, got, err, a)
		}
		if got, err := r.Ref(t.Context(), "refs/tidewaiter/delivery"); !got.IsZero() || err != nil {
			t.Fatalf("a ref that does not exist is %s, %v", got, err)
		}
	}
	if diff := cmp.Diff([]string{"init", "update-ref", "cat-file"}, starts()); diff != "" {
		t.Errorf("git commands (-want +got):\n%s", diff)
	}
}

func TestInitCompletesWhatACrashLeft(t *testing.T) {
	for _, lost := range []string{"HEAD", "config", "objects", "objects/pack", "refs", "refs/heads"} {
		r := newRepository(t)
		if err := os.RemoveAll(filepath.Join(r.Dir(), lost)); err != nil {
			t.Fatal(err)
		}
		again, err := git.Init(t.Context(), r.Dir(), git.Options{})
		if err != nil {
			t.Errorf("without %s: %v", lost, err)
			continue
		}
		defer again.Close()
		if _, err := os.Stat(filepath.Join(r.Dir(), lost)); err != nil {
			t.Error(err)
		}
		a := root(t, again, "a")
		if err := again.UpdateRefs(t.Context(), []git.RefUpdate{{Name: "refs/tidewaiter/chain", New: a}}); err != nil {
			t.Errorf("without %s: %v", lost, err)
		}
	}
}

// TestRefsOfOtherMakes: another program has packed the refs, or lost the object of one.
func TestRefsOfOtherMakes(t *testing.T) {
	r := newRepository(t)
	a := root(t, r, "a")
	const ref = "refs/tidewaiter/chain"
	if err := r.UpdateRefs(t.Context(), []git.RefUpdate{{Name: ref, New: a}}); err != nil {
		t.Fatal(err)
	}
	same := func(when string) {
		t.Helper()
		if got, err := r.Ref(t.Context(), ref); got != a || err != nil {
			t.Errorf("%s: %s is %s, %v, want %s", when, ref, got, err, a)
		}
	}
	same("in a file")
	plain(t, r.Dir(), "pack-refs", "--all", "--prune")
	same("packed")
	if err := os.Remove(filepath.Join(r.Dir(), "objects", a.String()[:2], a.String()[2:])); err != nil {
		t.Fatal(err)
	}
	same("without its object")
	if _, err := r.Ref(t.Context(), a.String()); err == nil {
		t.Error("the ID of an object is taken for a ref")
	}
}

func TestUpdateRefsIsAllOrNothing(t *testing.T) {
	r := newRepository(t)
	a, b := root(t, r, "a"), root(t, r, "b")
	const chain, delivery = "refs/tidewaiter/chain", "refs/tidewaiter/delivery"
	steps := []struct {
		name       string
		updates    []git.RefUpdate
		wantErr    error
		wantChain  objects.ID
		wantDelive objects.ID
	}{
		{"made", []git.RefUpdate{{Name: chain, New: a}, {Name: delivery, New: a}}, nil, a, a},
		{"made twice", []git.RefUpdate{{Name: chain, New: b}}, git.ErrRefMoved, a, a},
		{"one of two has moved", []git.RefUpdate{{Name: chain, Old: a, New: b}, {Name: delivery, Old: b, New: a}}, git.ErrRefMoved, a, a},
		{"both moved", []git.RefUpdate{{Name: chain, Old: a, New: b}, {Name: delivery, Old: a, New: b}}, nil, b, b},
		{"removed", []git.RefUpdate{{Name: chain, Old: b}}, nil, objects.ID{}, b},
		{"gone already", []git.RefUpdate{{Name: chain, Old: b, New: a}}, git.ErrRefMoved, objects.ID{}, b},
	}
	for _, step := range steps {
		if err := r.UpdateRefs(t.Context(), step.updates); !errors.Is(err, step.wantErr) {
			t.Fatalf("%s: %v, want %v", step.name, err, step.wantErr)
		}
		for ref, want := range map[string]objects.ID{chain: step.wantChain, delivery: step.wantDelive} {
			if got, err := r.Ref(t.Context(), ref); got != want || err != nil {
				t.Errorf("%s: %s is %s, %v, want %s", step.name, ref, got, err, want)
			}
		}
	}
}

func TestObjects(t *testing.T) {
	r := newRepository(t)
	content := bytes.Repeat([]byte("line\n"), 20_000)
	pack := r.Store().NewPack(nil)
	id, err := pack.AddBlob(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	o := r.Objects()
	if _, _, err := o.Stat(t.Context(), id); !errors.Is(err, git.ErrNoObject) {
		t.Errorf("before it is written: %v, want ErrNoObject", err)
	}
	if err := pack.Commit(); err != nil {
		t.Fatal(err)
	}
	if kind, size, err := o.Stat(t.Context(), id); kind != objects.KindBlob || size != int64(len(content)) || err != nil {
		t.Errorf("stat: %s, %d, %v", kind, size, err)
	}
	if _, _, err := o.Read(t.Context(), id, 10); !errors.Is(err, git.ErrTooLarge) {
		t.Errorf("beyond the bound: %v, want ErrTooLarge", err)
	}
	if _, got, err := o.Read(t.Context(), id, 1<<20); !bytes.Equal(got, content) || err != nil {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := o.Stat(cancelled, id); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	var out bytes.Buffer
	if err := o.Copy(t.Context(), id, &out); err != nil || !bytes.Equal(out.Bytes(), content) {
		t.Errorf("copied %d bytes, %v", out.Len(), err)
	}
	if err := o.Copy(t.Context(), id, failing{}); err == nil {
		t.Error("a writer that fails is no error")
	}
	if _, _, err := o.Stat(t.Context(), id); err != nil {
		t.Errorf("after a failed copy: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no") }

func TestDamageIsTold(t *testing.T) {
	r := newRepository(t)
	base := root(t, r, "base")
	if err := r.UpdateRefs(t.Context(), []git.RefUpdate{{Name: "refs/tidewaiter/base", New: base}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(t.Context()); err != nil {
		t.Fatalf("sound repository: %v", err)
	}
	name := base.String()
	path := filepath.Join(r.Dir(), "objects", name[:2], name[2:])
	if err := errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, []byte("flipped"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(t.Context()); !errors.Is(err, git.ErrCorrupt) {
		t.Errorf("damaged commit: %v, want ErrCorrupt", err)
	}
	if _, err := r.ReadCommit(t.Context(), base); err == nil {
		t.Error("a damaged commit was read")
	}
}

func TestIgnore(t *testing.T) {
	r := newRepository(t)
	i, err := r.NewIgnore(filepath.Join(t.TempDir(), "ignore"))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	for dir, rules := range map[string]string{"": "*.log\nbuild/\n/only\n*\n!*/\n!*.go\n!src/**\n!-rf\n!:(top)*\n", "src": "*.gen\n!keep.gen\n"} {
		if err := i.Add(dir, []byte(rules)); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[git.Candidate]bool{
		{Path: "x.go"}:                   false,
		{Path: "x.txt"}:                  true,
		{Path: "some", Dir: true}:        false,
		{Path: "some"}:                   true,
		{Path: "src/a.gen"}:              true,
		{Path: "src/keep.gen"}:           false,
		{Path: "src/deep/b.gen"}:         true,
		{Path: "src", Dir: true}:         false,
		{Path: "-rf"}:                    false,
		{Path: ":(top)x"}:                false,
		{Path: "line\nbreak.go"}:         false,
		{Path: ".gitignore/x.go"}:        false,
		{Path: "bad\xff\xfe.go"}:         false,
		{Path: strings.Repeat("é", 200)}: true,
	}
	for range 2 {
		for c, want := range tests {
			got, err := i.Match(t.Context(), []git.Candidate{c})
			if err != nil || got[0] != want {
				t.Errorf("%+v: ignored %v, %v, want %v", c, got, err, want)
			}
		}
	}
}

func TestTreeEqualsLsTree(t *testing.T) {
	h := newHub(t)
	r := newRepository(t)
	base, err := r.Fetch(t.Context(), h.remote(), "main")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := r.Tree(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	tree.Walk(func(path string, e *objects.Entry) bool {
		got = append(got, fmt.Sprintf("%s %06o %s %d", path, e.Mode, e.ID, e.Size))
		return true
	})
	want := strings.Split(plain(t, r.Dir(), "ls-tree", "-r", "--format=%(path) %(objectmode) %(objectname) %(objectsize)", base.String()), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

// root makes a commit of the empty tree.
func root(t *testing.T, r *git.Repository, message string) objects.ID {
	t.Helper()
	tree, err := r.Store().Write(objects.KindTree, nil)
	if err != nil {
		t.Fatal(err)
	}
	who := objects.Person{Name: "Tide", Email: "t@example.com", When: time.Unix(1_700_000_000, 0)}
	id, err := r.WriteCommit(objects.Commit{Tree: tree, Author: who, Committer: who, Message: message})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestReadAll reads more objects than are asked for at once, with some that are not there or too large among them.
func TestReadAll(t *testing.T) {
	r := newRepository(t)
	var ids []objects.ID
	var want []string
	for i := range 2200 {
		content := strings.Repeat("x", i%3) + "\n"
		switch i % 50 {
		case 7:
			ids, want = append(ids, objects.Hash(objects.KindBlob, []byte("nowhere"))), append(want, "missing")
			continue
		case 9:
			content = strings.Repeat("y", 5000)
			want = append(want, "large")
		default:
			want = append(want, content)
		}
		id, err := r.Store().Write(objects.KindBlob, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	got := readAll(t, r.Objects(), ids)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
