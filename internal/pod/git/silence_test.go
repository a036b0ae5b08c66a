// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/testkit/gitserver"
)

// hook lays a hook of the server's repository down.
func (h hub) hook(t *testing.T, name, script string) {
	t.Helper()
	write(t, h.dir, "hooks/"+name, "#!/bin/sh\n"+script+"\n")
	if err := makeExecutable(filepath.Join(h.dir, "hooks", name)); err != nil {
		t.Fatal(err)
	}
}

// work is a commit on the hub's base that the repository has and the hub has not.
func (h hub) work(t *testing.T) (*git.Repository, objects.ID) {
	t.Helper()
	r := newRepository(t)
	base, err := r.Fetch(t.Context(), h.remote(), "main")
	if err != nil {
		t.Fatal(err)
	}
	return r, child(t, r, base, "work")
}

// A server that accepts and then says nothing is left, and the fault names the field that bounds its silence.
func TestASilentServerIsLeft(t *testing.T) {
	left := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(left)
	}))
	defer server.Close()
	remote := git.Remote{URL: server.URL + "/shop.git", CAFile: certFile(t, server), Silence: time.Second}
	_, err := newRepository(t).Fetch(t.Context(), remote, "main")
	if !errors.Is(err, git.ErrUnreachable) || !strings.Contains(err.Error(), "git.silenceTimeout") {
		t.Errorf("error %v, want ErrUnreachable that names git.silenceTimeout", err)
	}
	<-left
}

// A server that counts for longer than it may be silent is waited for while it says anything: its progress, or the empty
// packet by which Git's servers keep a connection.
func TestASlowFetchIsWaitedFor(t *testing.T) {
	for name, script := range map[string]string{
		"progress":   `for i in 1 2 3 4 5 6 7 8 9 10; do echo "counting $i" >&2; sleep 0.4; done; exec "$@"`,
		"keep-alive": `sleep 4; exec "$@"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := t.TempDir()
			write(t, hook, "slow", "#!/bin/sh\n"+script+"\n")
			if err := makeExecutable(filepath.Join(hook, "slow")); err != nil {
				t.Fatal(err)
			}
			h := newHub(t, "uploadpack.packObjectsHook="+filepath.Join(hook, "slow"), "uploadpack.keepAlive=1")
			remote := h.remote()
			remote.Silence = 2 * time.Second
			if got, err := newRepository(t).Fetch(t.Context(), remote, "main"); err != nil || got != h.base {
				t.Errorf("fetched %s, %v", got, err)
			}
		})
	}
}

func TestASlowHookIsWaitedFor(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	r, ours := h.work(t)
	plain(t, h.dir, "config", "receive.keepAlive", "1")
	h.hook(t, "pre-receive", "sleep 4")
	remote := h.remote()
	remote.Silence = 2 * time.Second
	if err := r.Push(t.Context(), remote, ours, "slow"); err != nil {
		t.Error(err)
	}
}

// front stands before a hub. It counts the pushes, and answers them as it was told.
type front struct {
	hub    http.Handler
	answer func(w http.ResponseWriter, r *http.Request, hub http.Handler)
	pushes atomic.Int32
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
		f.hub.ServeHTTP(w, r)
		return
	}
	f.pushes.Add(1)
	f.answer(w, r, f.hub)
}

// behind a front the hub is reached at another address.
func (h hub) behind(t *testing.T, answer func(http.ResponseWriter, *http.Request, http.Handler)) (hub, *front) {
	t.Helper()
	server, err := gitserver.New(filepath.Dir(h.dir), user, password)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{hub: server, answer: answer}
	before := httptest.NewTLSServer(f)
	t.Cleanup(before.Close)
	h.url, h.caFile = before.URL+"/shop.git", certFile(t, before)
	return h, f
}

// The server took the branch and its answer was lost: what is there is the delivery.
func TestAPushWithoutAnAnswerIsLookedUp(t *testing.T) {
	h, f := newHub(t).behind(t, func(_ http.ResponseWriter, r *http.Request, hub http.Handler) {
		hub.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	r, ours := h.work(t)
	if err := r.Push(t.Context(), h.remote(), ours, "cut"); err != nil {
		t.Errorf("the branch is there: %v", err)
	}
	if at := revision(t, h.dir, "cut"); at != ours || f.pushes.Load() == 0 {
		t.Errorf("the branch is at %s after %d pushes, want %s", at, f.pushes.Load(), ours)
	}
}

// The server has moved the branch and its hook never ends: the same, after the silence.
func TestAPushWithAnEndlessHookIsLookedUp(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	r, ours := h.work(t)
	plain(t, h.dir, "config", "receive.keepAlive", "1000")
	h.hook(t, "post-receive", "exec sleep 8")
	remote := h.remote()
	remote.Silence = time.Second
	if err := r.Push(t.Context(), remote, ours, "hooked"); err != nil {
		t.Errorf("the branch is there: %v", err)
	}
}

func TestAPushThatWasNotTakenIsNoDelivery(t *testing.T) {
	h, _ := newHub(t).behind(t, func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) })
	r, ours := h.work(t)
	if err := r.Push(t.Context(), h.remote(), ours, "cut"); !errors.Is(err, git.ErrUnreachable) || git.Definite(err) {
		t.Errorf("error %v, want ErrUnreachable, which is not definite", err)
	}
}

// What a server refuses by a rule or for want of rights it will refuse again, and its words say why.
func TestDefiniteRefusals(t *testing.T) {
	h := newHub(t)
	r, ours := h.work(t)
	h.hook(t, "pre-receive", "echo 'GH006: branch is protected' >&2; exit 1")
	err := r.Push(t.Context(), h.remote(), ours, "main2")
	if !errors.Is(err, git.ErrRejected) || !git.Definite(err) || !strings.Contains(err.Error(), "GH006: branch is protected") || !strings.Contains(err.Error(), "pre-receive hook declined") {
		t.Errorf("hook: %v", err)
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		closed, f := h.behind(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "no", status)
		})
		err := r.Push(t.Context(), closed.remote(), ours, "other")
		if !errors.Is(err, git.ErrAuthFailed) || !git.Definite(err) || f.pushes.Load() == 0 {
			t.Errorf("%d: %v after %d pushes", status, err, f.pushes.Load())
		}
	}
}

// A ref that somebody holds for a moment is no refusal; one that can never be made beside another is.
func TestALockedBranchIsTriedAgain(t *testing.T) {
	h := newHub(t)
	r, ours := h.work(t)
	write(t, h.dir, "refs/heads/busy.lock", "")
	if err := r.Push(t.Context(), h.remote(), ours, "busy"); !errors.Is(err, git.ErrNotTaken) || git.Definite(err) {
		t.Errorf("locked: %v", err)
	}
	if err := r.Push(t.Context(), h.remote(), ours, "main/beneath"); !errors.Is(err, git.ErrConflict) || !git.Definite(err) {
		t.Errorf("beneath another branch: %v", err)
	}
}
