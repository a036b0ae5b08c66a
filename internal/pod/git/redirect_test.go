// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/testkit/gitserver"
)

// eavesdropper is a Git server that anybody may use, and that notes what credentials it was sent.
type eavesdropper struct {
	http.Handler
	mu   sync.Mutex
	seen []string
	hits int
}

func (e *eavesdropper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	e.hits++
	for name, values := range r.Header {
		if text := strings.Join(values, " "); name == "Authorization" || strings.Contains(text, "Basic ") {
			e.seen = append(e.seen, r.Method+" "+r.URL.Path+": "+name)
		}
	}
	e.mu.Unlock()
	e.Handler.ServeHTTP(w, r)
}

// elsewhere serves the hub's repositories a second time, at another address and without a password.
func elsewhere(t *testing.T, h hub) (*eavesdropper, *httptest.Server) {
	t.Helper()
	open, err := gitserver.New(strings.TrimSuffix(h.dir, "/shop.git"), "", "")
	if err != nil {
		t.Fatal(err)
	}
	e := &eavesdropper{Handler: open}
	server := httptest.NewTLSServer(e)
	t.Cleanup(server.Close)
	return e, server
}

// TestCredentialsFollowNoRedirect: the server at the repository's address could otherwise send the credentials to any
// host: git asks the new address with all the headers of the old one.
func TestCredentialsFollowNoRedirect(t *testing.T) {
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		h := newHub(t)
		ear, other := elsewhere(t, h)
		front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.RequestURI(), code)
		}))
		defer front.Close()
		remote := h.remote()
		remote.URL, remote.CAFile = front.URL+"/shop.git", certFile(t, front) // The test servers share one certificate.
		r := newRepository(t)
		_, fetched := r.Fetch(t.Context(), remote, "main")
		commit, err := r.Fetch(t.Context(), h.remote(), "main")
		if err != nil {
			t.Fatal(err)
		}
		pushed := r.Push(t.Context(), remote, commit, "tidewaiter/login")
		for what, err := range map[string]error{"fetch": fetched, "push": pushed} {
			if !errors.Is(err, git.ErrUnreachable) || !strings.Contains(err.Error(), "redirects") {
				t.Errorf("%d: %s: %v", code, what, err)
			}
		}
		if len(ear.seen) > 0 {
			t.Errorf("%d: the credentials were sent to another host: %v", code, ear.seen)
		}
	}
}

// TestWithoutCredentialsRedirectsAreFollowed: a public repository may have moved.
func TestWithoutCredentialsRedirectsAreFollowed(t *testing.T) {
	h := newHub(t)
	ear, other := elsewhere(t, h)
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	defer front.Close()
	remote := git.Remote{URL: front.URL + "/shop.git", CAFile: certFile(t, front)}
	if got, err := newRepository(t).Fetch(t.Context(), remote, "main"); err != nil || got != h.base || ear.hits == 0 {
		t.Errorf("%s, %v after %d requests", got, err, ear.hits)
	}
}
