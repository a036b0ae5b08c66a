// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitserver serves a directory of bare repositories over smart HTTP, for tests and the demo. What is not of the smart protocol is served by
// git's own http-backend.
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
	"strconv"
	"strings"
	"sync"
)

// Server is an http.Handler.
type Server struct {
	dir     string
	user    string
	pass    string
	git     string   // its program
	env     []string // of git
	backend http.Handler
}

// publicFile is the name of a file in a repository that everybody may read, as for git-daemon.
const publicFile = "git-daemon-export-ok"

// New serves the repositories in dir: dir/shop.git is /shop.git. With a user every request must carry basic
// authentication, unless it reads a repository that has publicFile; without a user reading and pushing is free to all. The path / lists the repositories.
// Settings are lines of Git's configuration for the server, such as "uploadpack.keepAlive=1".
func New(dir, user, password string, settings ...string) (*Server, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("repositories: %w", err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("git program: %w", err)
	}
	backend, err := httpBackend()
	if err != nil {
		return nil, err
	}
	settings = append([]string{
		"http.receivepack=true",
		"safe.directory=*", // The volume may belong to another user than the server's.
		"receive.fsckObjects=true",
		"receive.autoGC=false", // Each push would start one process more.
	}, settings...)
	env := append([]string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent", "LC_ALL=C"}, environment(settings)...)
	return &Server{dir: dir, user: user, pass: password, git: git, env: env, backend: &cgi.Handler{
		Path: backend,
		Dir:  dir,
		Env:  append([]string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}, env...),
	}}, nil
}

// httpBackend is the path of git-http-backend. Through git itself, each request would start one process more.
var httpBackend = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return "", fmt.Errorf("git program: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), nil
})

// environment that sets Git's configuration.
func environment(settings []string) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for i, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return env
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
	if q, is := s.smart(r); is {
		// As with http-backend, a client reads of a failure that the answer ends too early.
		if err := s.serve(flushing{w}, w.Header(), r, q); err != nil && r.Context().Err() == nil {
			fmt.Fprintln(os.Stderr, "gitserver:", err)
		}
		return
	}
	if user, _, ok := r.BasicAuth(); ok {
		// http-backend takes a pusher's name from here; cgi.Handler passes it as an environment variable.
		r.Header.Set("Remote-User", user)
	}
	// Git sends a large push in chunks, which cgi.Handler refuses because CGI has none. The server has put them together already, and the backend
	// reads until the end of its input.
	r.TransferEncoding = nil
	s.backend.ServeHTTP(flushing{w}, r)
}

// flushing sends what it is given at once, as the servers of Git hosts do: progress that waits for more is none.
type flushing struct{ http.ResponseWriter }

// Write sends what it is given.
func (f flushing) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	if flusher, ok := f.ResponseWriter.(http.Flusher); ok && err == nil {
		flusher.Flush()
	}
	return n, err
}

// allowed compares in constant time.
func (s *Server) allowed(r *http.Request) bool {
	if s.user == "" {
		return true
	}
	user, pass, given := r.BasicAuth()
	if !given && s.public(r) {
		return true
	}
	sameUser := subtle.ConstantTimeCompare([]byte(user), []byte(s.user))
	samePass := subtle.ConstantTimeCompare([]byte(pass), []byte(s.pass))
	return sameUser&samePass == 1
}

// public says whether a request reads a repository that everybody may read.
func (s *Server) public(r *http.Request) bool {
	path, reads := strings.CutSuffix(r.URL.Path, "/git-upload-pack")
	if !reads {
		path, reads = strings.CutSuffix(r.URL.Path, "/info/refs")
		reads = reads && r.URL.Query().Get("service") == "git-upload-pack"
	}
	if !reads || !filepath.IsLocal(strings.TrimPrefix(path, "/")) {
		return false
	}
	_, err := os.Stat(filepath.Join(s.dir, path, publicFile))
	return err == nil
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
