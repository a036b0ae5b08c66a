// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/testkit/gitserver"
)

// commitsOfLong is how long the history of a long server is; each commit has a tree and a file of its own. It is many times as long as what the
// tests add to it.
const commitsOfLong = 500

// longHub is a server with a long history.
func longHub(t *testing.T) hub {
	t.Helper()
	h := newHub(t)
	var stream bytes.Buffer
	for i := range commitsOfLong {
		content := fmt.Sprintf("state %d\n", i)
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter a <a@example.com> %d +0000\ndata 1\nc\n", 1_700_000_000+i)
		if i == 0 {
			stream.WriteString("from refs/heads/main^0\n")
		}
		fmt.Fprintf(&stream, "M 644 inline file\ndata %d\n%s\n", len(content), content)
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = h.dir, &stream
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fast-import: %v\n%s", err, out)
	}
	h.base = revision(t, h.dir, "main")
	return h
}

// objectsOf counts the objects of a pack.
func objectsOf(t *testing.T, pack string) int {
	t.Helper()
	index, err := os.Open(pack + ".idx")
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	cmd := exec.Command("git", "show-index")
	cmd.Stdin = index
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(out, []byte{'\n'})
}

// TestLongHistory works on a base with a long history, of which everything but the base itself is taken away: what would walk
// it fails, so that what takes memory is what checkpoints add, however long the history is.
func TestLongHistory(t *testing.T) {
	h := longHub(t)
	c := &checkpoints{t: t, r: newRepository(t)}
	base, err := c.r.Fetch(t.Context(), h.remote(), "main")
	if err != nil {
		t.Fatal(err)
	}
	packs := c.r.Packs()
	if err := packs.Keep(); err != nil {
		t.Fatal(err)
	}
	whole, err := packs.History(t.Context(), base, base, t.TempDir())
	if err != nil || len(whole) != 1 || filepath.Dir(whole[0]) != filepath.Join(c.r.Dir(), "objects", "pack") {
		t.Fatalf("history of the base is in %q, %v: want the pack that was fetched, as it is", whole, err)
	}
	if n := objectsOf(t, whole[0]); n < 3*commitsOfLong {
		t.Fatalf("the history has %d objects: the test proves nothing", n)
	}
	c.forget(base, whole[0])
	c.update(git.RefUpdate{Name: chainRef, New: base})
	c.chain = []objects.ID{base}
	for range 3 {
		c.take()
	}
	staging := t.TempDir()
	agents, err := packs.History(t.Context(), c.chain[3], base, staging)
	if err != nil || len(agents) != 2 {
		t.Fatalf("history of the head is in %q, %v, want the kept pack and another one", agents, err)
	}
	if n := objectsOf(t, agents[1]); n != 9 {
		t.Errorf("%d objects were packed for the agent, want commit, tree and file of 3 checkpoints", n)
	}
	if err := packs.Prune(t.Context(), base); err != nil {
		t.Errorf("prune: %v", err)
	}
	if n := c.missing(c.chain); n > 0 {
		t.Errorf("%d commits are lost", n)
	}
	if n := c.missing(c.stray); n != len(c.stray) {
		t.Errorf("%d of %d objects that nothing reaches are still there", len(c.stray)-n, len(c.stray))
	}
	keep := c.r.NewReach()
	keep.Add(c.chain[3])
	if err := packs.Retain(t.Context(), keep); err != nil {
		t.Errorf("retain: %v", err)
	}
	if n := c.missing([]objects.ID{base, c.chain[3]}); n != 0 {
		t.Errorf("%d of base and head are lost", n)
	}
	if n := c.missing(c.chain[1:3]); n != 2 {
		t.Errorf("%d of 2 commits that are not needed are gone", n)
	}
}

// TestMarksThatAreNotTrue has marks of packs as crashes leave them: of a pack that never came to be, and none of the pack that holds the
// base.
func TestMarksThatAreNotTrue(t *testing.T) {
	h := newHub(t)
	c := &checkpoints{t: t, r: newRepository(t)}
	packs, dir := c.r.Packs(), filepath.Join(c.r.Dir(), "objects", "pack")
	if err := os.WriteFile(filepath.Join(dir, "pack-"+strings.Repeat("1", 40)+".keep"), []byte("fetch-pack 7 on host\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	old, err := c.r.Fetch(t.Context(), h.remote(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := packs.Keep(); err != nil {
		t.Fatal(err)
	}
	paths, err := packs.History(t.Context(), old, old, t.TempDir())
	if err != nil || len(paths) != 1 {
		t.Fatalf("history is in %q, %v, want the one pack that there is", paths, err)
	}
	if n := objectsOf(t, paths[0]); n == 0 {
		t.Error("the pack is empty")
	}
	base := h.commit(t, h.tree(t, objects.Entry{Name: "later", Mode: objects.ModeFile, ID: h.blob(t, "later\n")}))
	if _, err := c.r.Fetch(t.Context(), h.remote(), "main"); err != nil {
		t.Fatal(err)
	}
	c.update(git.RefUpdate{Name: "refs/tidewaiter/base", New: base})
	if err := packs.Prune(t.Context(), base); err != nil {
		t.Fatal(err)
	}
	if n := c.missing([]objects.ID{old, base}); n > 0 {
		t.Errorf("%d commits of the base's history are lost", n)
	}
	if err := c.r.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// forget takes everything but the commit, its tree and its files away from a pack that is kept.
func (c *checkpoints) forget(commit objects.ID, pack string) {
	c.t.Helper()
	ids := plain(c.t, c.r.Dir(), "rev-list", "--objects", "--no-walk", "--no-object-names", commit.String())
	cmd := exec.Command("git", "pack-objects", "-q", filepath.Join(filepath.Dir(pack), "pack"))
	cmd.Dir, cmd.Stdin = c.r.Dir(), strings.NewReader(ids+"\n")
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatal(err)
	}
	name := filepath.Join(filepath.Dir(pack), "pack-"+strings.TrimSpace(string(out)))
	if err := os.WriteFile(name+".keep", nil, 0o444); err != nil {
		c.t.Fatal(err)
	}
	old, err := filepath.Glob(pack + ".*")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			c.t.Fatal(err)
		}
	}
	c.r.Close()
}

func (c *checkpoints) update(u git.RefUpdate) {
	c.t.Helper()
	if err := c.r.UpdateRefs(c.t.Context(), []git.RefUpdate{u}); err != nil {
		c.t.Fatal(err)
	}
}

// TestPushSendsWhatTheServerLacks pushes work whose base is no branch of the server any more, because its branch went on.
func TestPushSendsWhatTheServerLacks(t *testing.T) {
	h := newHub(t, "receive.unpackLimit=1")
	r := newRepository(t)
	base, err := r.Fetch(t.Context(), h.remote(), "main")
	if err != nil {
		t.Fatal(err)
	}
	plain(t, h.dir, "tag", "-d", "v1")
	h.commit(t, h.tree(t, objects.Entry{Name: "later", Mode: objects.ModeFile, ID: h.blob(t, "later\n")}))
	work := child(t, r, base, "work")
	if err := r.Push(t.Context(), h.remote(), work, "tidewaiter/x"); err != nil {
		t.Fatal(err)
	}
	sent := 0
	packs, err := filepath.Glob(filepath.Join(h.dir, "objects", "pack", "*.idx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range packs {
		sent += objectsOf(t, strings.TrimSuffix(path, ".idx"))
	}
	if sent != 1 {
		t.Errorf("%d objects were sent, want the one commit that the server lacked", sent)
	}
}

// TestPushToAServerThatLacksWhatItNames has a server with the commit of the base, whose branch it has left, and without its files.
func TestPushToAServerThatLacksWhatItNames(t *testing.T) {
	h := newHub(t)
	r := newRepository(t)
	base, err := r.Fetch(t.Context(), h.remote(), "main")
	if err != nil {
		t.Fatal(err)
	}
	plain(t, h.dir, "tag", "-d", "v1")
	other := plain(t, h.dir, "commit-tree", "-m", "other", h.tree(t).String())
	plain(t, h.dir, "update-ref", "refs/heads/main", other)
	h.lose(t, base.String()+":src/a.go")
	work := child(t, r, base, "work")
	if err := r.Push(t.Context(), h.remote(), work, "tidewaiter/x"); err != nil {
		t.Fatal(err)
	}
	if got := revision(t, h.dir, "tidewaiter/x"); got != work {
		t.Errorf("the branch is at %s, want %s", got, work)
	}
}

// TestPushIsNotJudgedByTheQuestion has a server that tells nobody what it has, and is down for a push.
func TestPushIsNotJudgedByTheQuestion(t *testing.T) {
	h := newHub(t)
	r := newRepository(t)
	base, err := r.Fetch(t.Context(), h.remote(), "main")
	if err != nil {
		t.Fatal(err)
	}
	work := child(t, r, base, "work")
	server, err := gitserver.New(filepath.Dir(h.dir), user, password)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case strings.Contains(q.URL.String(), "upload-pack"):
			w.WriteHeader(http.StatusForbidden)
		case q.Method == http.MethodPost:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			server.ServeHTTP(w, q)
		}
	}))
	t.Cleanup(front.Close)
	h.url, h.caFile = front.URL+"/shop.git", certFile(t, front)
	if err := r.Push(t.Context(), h.remote(), work, "tidewaiter/x"); !errors.Is(err, git.ErrUnreachable) {
		t.Errorf("error %v, want ErrUnreachable, which passes", err)
	}
}
