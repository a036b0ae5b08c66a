// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"io"
	"io/fs"
	"net"
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

const (
	user     = "tide"
	password = "p@ss/w:rd%41 secret"
)

// hub is a Git server with one repository, shop.git, that has a few commits.
type hub struct {
	url    string
	dir    string
	caFile string
	base   objects.ID
}

// newHub has a server with more settings of Git's configuration, such as "uploadpack.keepAlive=1".
func newHub(t *testing.T, settings ...string) hub {
	t.Helper()
	dir := t.TempDir()
	server, err := gitserver.New(dir, user, password, settings...)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(server)
	t.Cleanup(front.Close)
	h := hub{url: front.URL + "/shop.git", dir: filepath.Join(dir, "shop.git"), caFile: certFile(t, front)}
	plain(t, "", "init", "-q", "--bare", "-b", "main", h.dir)
	plainWith(t, history, h.dir, "fast-import", "--quiet")
	h.base = revision(t, h.dir, "main")
	return h
}

// history of the repository, for git fast-import.
const history = `commit refs/heads/main
committer a <a@example.com> 1700000000 +0000
data 5
First
M 644 inline README.md
data 4
one

commit refs/heads/main
committer a <a@example.com> 1700000001 +0000
data 6
Second
M 644 inline src/a.go
data 10
package a

tag v1
from refs/heads/main
tagger a <a@example.com> 1700000002 +0000
data 3
one
`

func (h hub) remote() git.Remote {
	return git.Remote{URL: h.url, Username: user, Password: password, CAFile: h.caFile}
}

func certFile(t *testing.T, server *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newRepository(t *testing.T) *git.Repository {
	t.Helper()
	r, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "repo.git"), git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// plain runs stock git, as a person would.
func plain(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return plainWith(t, "", dir, args...)
}

// plainWith gives it an input.
func plainWith(t *testing.T, input, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, complaints.String())
	}
	return strings.TrimSpace(out.String())
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func commit(t *testing.T, work, message string) objects.ID {
	t.Helper()
	plain(t, work, "add", "-A")
	plain(t, work, "commit", "-q", "-m", message)
	return revision(t, work, "HEAD")
}

func revision(t *testing.T, dir, name string) objects.ID {
	t.Helper()
	id, err := objects.ParseID(plain(t, dir, "rev-parse", name))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// newProxy is a CONNECT proxy over TLS that answers with status, and tunnels when that is 200 and the user is right.
func newProxy(t *testing.T, status int) *git.Proxy {
	t.Helper()
	const proxyUser, proxyPassword = "tidewaiter", "to.ken/%+="
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		probe := &http.Request{Header: http.Header{"Authorization": {r.Header.Get("Proxy-Authorization")}}}
		if u, p, _ := probe.BasicAuth(); r.Method != http.MethodConnect || u != proxyUser || p != proxyPassword {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
		tunnel(w, r.Host)
	}))
	server.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return &git.Proxy{URL: server.URL, User: proxyUser, Password: proxyPassword, CAFile: certFile(t, server)}
}

func tunnel(w http.ResponseWriter, host string) {
	target, err := net.Dial("tcp", host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer target.Close()
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() {
		io.Copy(target, buffered)
		target.(*net.TCPConn).CloseWrite()
	}()
	io.Copy(conn, target)
}

// makeExecutable makes a file executable.
func makeExecutable(path string) error { return os.Chmod(path, 0o755) }

// grep gives the first file below path that holds text.
func grep(t *testing.T, path, text string) (found string) {
	t.Helper()
	err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			found = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
