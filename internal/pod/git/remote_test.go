// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

func TestFetchNames(t *testing.T) {
	h := newHub(t)
	for _, revision := range []string{"main", "v1", "HEAD", "refs/heads/main", "refs/tags/v1", h.base.String()} {
		t.Run(revision, func(t *testing.T) {
			r := newRepository(t)
			got, err := r.Fetch(t.Context(), h.remote(), revision)
			if err != nil {
				t.Fatal(err)
			}
			if got != h.base {
				t.Errorf("commit %s, want %s", got, h.base)
			}
			if n := plain(t, r.Dir(), "rev-list", "--count", got.String()); n != "2" {
				t.Errorf("history has %s commits, want 2", n)
			}
			if refs := plain(t, r.Dir(), "for-each-ref"); refs != "" {
				t.Errorf("fetch set refs:\n%s", refs)
			}
		})
	}
}

// A server that speaks HTTP/2 as well is asked in HTTP/1.1, in which no Git waits for itself.
func TestRemotesAreAskedInHTTP1(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Proto:
		default:
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	_, err := newRepository(t).Fetch(t.Context(), git.Remote{URL: server.URL + "/shop.git", CAFile: certFile(t, server)}, "main")
	if !errors.Is(err, git.ErrNotFound) {
		t.Fatalf("error %v, want ErrNotFound", err)
	}
	if got := <-asked; got != "HTTP/1.1" {
		t.Errorf("the server was asked in %s, want HTTP/1.1", got)
	}
}

// A push of more than Git keeps in memory (http.postBuffer, 1 MiB) is sent in chunks.
func TestALargePush(t *testing.T) {
	h, r := newHub(t), newRepository(t)
	base, err := r.Fetch(t.Context(), h.remote(), "main")
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 2<<20)
	rand.NewChaCha8([32]byte{}).Read(random) //nolint:gosec // it never fails, and keeps no secret
	work := child(t, r, base, hex.EncodeToString(random))
	if err := r.Push(t.Context(), h.remote(), work, "large"); err != nil {
		t.Fatal(err)
	}
	if got := revision(t, h.dir, "large"); got != work {
		t.Errorf("the branch is at %s, want %s", got, work)
	}
}

func TestRemoteFailures(t *testing.T) {
	h := newHub(t)
	broken := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer broken.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	tests := map[string]struct {
		change   func(*git.Remote)
		revision string
		want     error
		wantText string
	}{
		"no such branch":        {revision: "nowhere", want: git.ErrRevisionNotFound, wantText: "spec.repository.revision"},
		"no such commit":        {revision: strings.Repeat("1", 40), want: git.ErrRevisionNotFound},
		"an option as a branch": {revision: "--upload-pack=touch", want: git.ErrRevisionNotFound},
		"no such repository": {
			change: func(r *git.Remote) { r.URL = strings.Replace(r.URL, "shop", "nothing", 1) }, want: git.ErrNotFound, wantText: "check the URL",
		},
		"wrong password": {change: func(r *git.Remote) { r.Password = "wrong-secret" }, want: git.ErrAuthFailed, wantText: "Secret"},
		"no password":    {change: func(r *git.Remote) { r.Username, r.Password = "", "" }, want: git.ErrAuthFailed},
		"unknown certificate": {
			change: func(r *git.Remote) { r.CAFile = "" }, want: git.ErrUnreachable, wantText: "ca.crt",
		},
		"nobody listens": {
			change: func(r *git.Remote) { r.URL = "https://" + closed.Addr().String() + "/shop.git" }, want: git.ErrUnreachable,
		},
		"server is ill": {
			change: func(r *git.Remote) { r.URL, r.CAFile = broken.URL+"/shop.git", certFile(t, broken) }, want: git.ErrUnreachable,
		},
		"plain http":     {change: func(r *git.Remote) { r.URL = "http://127.0.0.1/shop.git" }, want: git.ErrUnreachable, wantText: "https"},
		"a local path":   {change: func(r *git.Remote) { r.URL = h.dir }, want: git.ErrUnreachable},
		"a command":      {change: func(r *git.Remote) { r.URL = "ext::sh -c touch% /tmp/x" }, want: git.ErrUnreachable},
		"secrets in URL": {change: func(r *git.Remote) { r.URL = "https://u:hidden@h/shop.git" }, want: git.ErrUnreachable},
		"proxy refuses the host": {
			change: func(r *git.Remote) { r.Proxy = newProxy(t, http.StatusForbidden) }, want: git.ErrEgressDenied, wantText: "egress.git",
		},
		"proxy cannot reach the host": {
			change: func(r *git.Remote) { r.Proxy = newProxy(t, http.StatusBadGateway) }, want: git.ErrUnreachable,
		},
		"proxy refuses the token": {
			change: func(r *git.Remote) { r.Proxy = newProxy(t, http.StatusOK); r.Proxy.Password = "stale-token" }, want: git.ErrUnreachable,
			wantText: "token",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			remote := h.remote()
			if test.change != nil {
				test.change(&remote)
			}
			revision := test.revision
			if revision == "" {
				revision = "main"
			}
			_, err := newRepository(t).Fetch(t.Context(), remote, revision)
			if !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			t.Log(err)
			if !strings.Contains(err.Error(), test.wantText) {
				t.Errorf("error %q does not say %q", err, test.wantText)
			}
			for _, secret := range []string{"secret", "hidden", "to.ken", "stale-token", "p%40ss"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("error %q tells a secret", err)
				}
			}
		})
	}
}

func TestThroughProxy(t *testing.T) {
	h := newHub(t)
	remote := h.remote()
	remote.Proxy = newProxy(t, http.StatusOK)
	r := newRepository(t)
	base, err := r.Fetch(t.Context(), remote, "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Push(t.Context(), remote, base, "copy"); err != nil {
		t.Fatal(err)
	}
}

// TestBranch: a branch is at a commit, or is not there.
func TestBranch(t *testing.T) {
	h := newHub(t)
	r := newRepository(t)
	base, err := r.Fetch(t.Context(), h.remote(), "main")
	if err != nil {
		t.Fatal(err)
	}
	ours := child(t, r, base, "ours")
	if err := r.Push(t.Context(), h.remote(), ours, "tidewaiter/x"); err != nil {
		t.Fatal(err)
	}
	for branch, want := range map[string]objects.ID{"main": base, "tidewaiter/x": ours, "x": {}, "tidewaiter": {}} {
		if there, err := r.Branch(t.Context(), h.remote(), branch); err != nil || there != want {
			t.Errorf("%s is at %s, want %s: %v", branch, there, want, err)
		}
	}
	if _, err := r.Branch(t.Context(), h.remote(), "--upload-pack=x"); err == nil {
		t.Error("an option is taken for a branch")
	}
	away := h.remote()
	away.URL = strings.Replace(away.URL, "shop", "shed", 1)
	if _, err := r.Branch(t.Context(), away, "main"); !errors.Is(err, git.ErrNotFound) {
		t.Errorf("without a repository: %v", err)
	}
}

func TestPush(t *testing.T) {
	h := newHub(t)
	r := newRepository(t)
	base, err := r.Fetch(t.Context(), h.remote(), "main")
	if err != nil {
		t.Fatal(err)
	}
	ours := child(t, r, base, "ours")
	theirs := child(t, r, base, "theirs")
	for _, what := range []string{"first", "again"} {
		if err := r.Push(t.Context(), h.remote(), ours, "tidewaiter/x"); err != nil {
			t.Fatalf("%s push: %v", what, err)
		}
	}
	if err := r.Push(t.Context(), h.remote(), child(t, r, ours, "more"), "tidewaiter/x"); err != nil {
		t.Fatalf("push of a descendant: %v", err)
	}
	before := revision(t, h.dir, "tidewaiter/x")
	err = r.Push(t.Context(), h.remote(), theirs, "tidewaiter/x")
	if !errors.Is(err, git.ErrConflict) || !strings.Contains(err.Error(), "tidewaiter/x") {
		t.Errorf("push over other commits: %v, want ErrConflict naming the branch", err)
	}
	if after := revision(t, h.dir, "tidewaiter/x"); after != before {
		t.Errorf("branch moved from %s to %s", before, after)
	}
	plain(t, h.dir, "config", "receive.denyDeletes", "true")
	write(t, h.dir, "hooks/update", "#!/bin/sh\necho no pushing today >&2\nexit 1\n")
	if err := makeExecutable(filepath.Join(h.dir, "hooks/update")); err != nil {
		t.Fatal(err)
	}
	if err := r.Push(t.Context(), h.remote(), theirs, "other"); !errors.Is(err, git.ErrRejected) {
		t.Errorf("push against a hook: %v, want ErrRejected", err)
	}
	wrong := h.remote()
	wrong.Password = "no"
	if err := r.Push(t.Context(), wrong, theirs, "third"); !errors.Is(err, git.ErrAuthFailed) {
		t.Errorf("push with a wrong password: %v, want ErrAuthFailed", err)
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	remote := git.Remote{URL: "https://" + silent.Addr().String() + "/x.git"}
	_, err = newRepository(t).Fetch(ctx, remote, "main")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline", err)
	}
}

func TestSecretsStayOffCommandLineAndDisk(t *testing.T) {
	h := newHub(t)
	log := filepath.Join(t.TempDir(), "argv")
	wrapper := filepath.Join(t.TempDir(), "git")
	write(t, filepath.Dir(wrapper), "git", "#!/bin/sh\nprintf '%s\\n' \"$@\" >> "+log+"\nexec git \"$@\"\n")
	if err := makeExecutable(wrapper); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "repo.git")
	r, err := git.Init(t.Context(), dir, git.Options{Git: wrapper})
	if err != nil {
		t.Fatal(err)
	}
	remote := h.remote()
	remote.Proxy = newProxy(t, http.StatusOK)
	base, err := r.Fetch(t.Context(), remote, "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Push(t.Context(), remote, base, "copy"); err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{log, dir} {
		for _, secret := range []string{password, "p%40ss", "secret", "to.ken", "Authorization"} {
			if found := grep(t, where, secret); found != "" {
				t.Errorf("%q is in %s", secret, found)
			}
		}
	}
	if grep(t, log, "fetch") == "" {
		t.Error("the wrapper saw no fetch: the test proves nothing")
	}
}

// child makes a commit with the tree of its parent.
func child(t *testing.T, r *git.Repository, parent objects.ID, message string) objects.ID {
	t.Helper()
	c, err := r.ReadCommit(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	who := objects.Person{Name: "Tide", Email: "t@example.com", When: time.Unix(1_700_000_000, 0)}
	id, err := r.WriteCommit(objects.Commit{Tree: c.Tree, Parents: []objects.ID{parent}, Author: who, Committer: who, Message: message})
	if err != nil {
		t.Fatal(err)
	}
	return id
}
