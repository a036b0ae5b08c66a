// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gitserver

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// smart is a request of Git's smart HTTP protocol. http-backend would start the same service as another process.
type smart struct {
	repository string // its directory
	service    string // upload-pack or receive-pack
	advertises bool   // what the repository has, before the service is asked
}

// smart reads a request; false for any other one, also if there is no such repository.
func (s *Server) smart(r *http.Request) (smart, bool) {
	var q smart
	path, name := strings.TrimPrefix(r.URL.Path, "/"), ""
	switch r.Method {
	case http.MethodGet:
		q.service = strings.TrimPrefix(r.URL.Query().Get("service"), "git-")
		name, q.advertises = strings.CutSuffix(path, "/info/refs")
	case http.MethodPost:
		at := max(strings.LastIndex(path, "/git-"), 0)
		name, q.service = path[:at], strings.TrimPrefix(path[at:], "/git-")
	}
	if q.service != "upload-pack" && q.service != "receive-pack" || q.advertises == (r.Method == http.MethodPost) || !filepath.IsLocal(name) {
		return smart{}, false
	}
	if !q.advertises && r.Header.Get("Content-Type") != "application/x-git-"+q.service+"-request" {
		return smart{}, false
	}
	q.repository = filepath.Join(s.dir, name)
	_, err := os.Stat(filepath.Join(q.repository, "HEAD"))
	return q, err == nil
}

// serve runs the service for one request.
func (s *Server) serve(w io.Writer, header http.Header, r *http.Request, q smart) error {
	mode, form := "--stateless-rpc", "result"
	if q.advertises {
		mode, form = "--http-backend-info-refs", "advertisement"
	}
	cmd := exec.CommandContext(r.Context(), s.git, q.service, mode, ".")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = q.repository, w, os.Stderr, 10*time.Second
	pusher, _, _ := r.BasicAuth()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"),
		"GIT_COMMITTER_NAME=" + cmp.Or(pusher, "anonymous"), "GIT_COMMITTER_EMAIL=" + cmp.Or(pusher, "anonymous") + "@http." + r.RemoteAddr}, s.env...)
	header.Set("Content-Type", "application/x-git-"+q.service+"-"+form)
	header.Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	if q.advertises && !strings.Contains(r.Header.Get("Git-Protocol"), "version=2") {
		line := "# service=git-" + q.service + "\n"
		if _, err := fmt.Fprintf(w, "%04x%s0000", len(line)+4, line); err != nil {
			return err
		}
	}
	if !q.advertises {
		body, err := plainBody(r)
		if err != nil {
			return err
		}
		cmd.Stdin = body
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git %s: %w", q.service, err)
	}
	return nil
}

// plainBody is the body of a request, which may be compressed.
func plainBody(r *http.Request) (io.Reader, error) {
	if e := r.Header.Get("Content-Encoding"); e != "gzip" && e != "x-gzip" {
		return r.Body, nil
	}
	body, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return body, nil
}
