// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitserver serves a directory of bare repositories over smart HTTP, by git's own http-backend, for tests and
// the demo.
package gitserver

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Server is an http.Handler.
type Server struct {
	dir     string
	user    string
	pass    string
	backend http.Handler
}

// New serves the repositories in dir: dir/shop.git is /shop.git. With a user every request must carry basic
// authentication; without one reading and pushing is free to all. The path / lists the repositories.
func New(dir, user, password string) (*Server, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("repositories: %w", err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("git program: %w", err)
	}
	return &Server{dir: dir, user: user, pass: password, backend: &cgi.Handler{
		Path: git,
		Args: []string{"http-backend"},
		Dir:  dir,
		Env: []string{
			"GIT_PROJECT_ROOT=" + dir,
			"GIT_HTTP_EXPORT_ALL=1",
			"GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_GLOBAL=/dev/null",
			"HOME=/nonexistent",
			"LC_ALL=C",
			"GIT_CONFIG_COUNT=3",
			"GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true",
			// The volume may belong to another user than the server's.
			"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
			"GIT_CONFIG_KEY_2=receive.fsckObjects", "GIT_CONFIG_VALUE_2=true",
		},
	}}, nil
}

// ServeHTTP answers Git's requests, and lists the repositories at /.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.allowed(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "authentication required", http.StatusUnauthorized)
		return
	}
	if r.URL.Path == "/" {
		s.list(w)
		return
	}
	if user, _, ok := r.BasicAuth(); ok {
		// http-backend takes a pusher's name from here; cgi.Handler passes it as an environment variable.
		r.Header.Set("Remote-User", user)
	}
	// CGI has no chunked bodies: the backend reads until the end of its input, which the handler closes.
	s.backend.ServeHTTP(w, r)
}

// allowed compares in constant time.
func (s *Server) allowed(r *http.Request) bool {
	if s.user == "" {
		return true
	}
	user, pass, _ := r.BasicAuth()
	sameUser := subtle.ConstantTimeCompare([]byte(user), []byte(s.user))
	samePass := subtle.ConstantTimeCompare([]byte(pass), []byte(s.pass))
	return sameUser&samePass == 1
}

// list writes one repository a line; it is read each time, so that a repository put there is served at once.
func (s *Server) list(w http.ResponseWriter) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		http.Error(w, "the repositories cannot be listed", http.StatusInternalServerError)
		return
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".git") {
			names = append(names, "/"+e.Name())
		}
	}
	slices.Sort(names)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, strings.Join(names, "\n"))
}
