// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gitserver_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/testkit/gitserver"
)

// git runs git without the configuration of the machine, and gives what it prints.
func git(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := git(t, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

// TestServer: clients of each version of the protocol push what is larger than a chunk and clone it, and others than the user get nothing.
func TestServer(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), filepath.Join(t.TempDir(), "work")
	must(t, "init", "-q", "--bare", "-b", "main", filepath.Join(dir, "shop.git"))
	handler, err := gitserver.New(dir, "shop", "secret")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	url := strings.Replace(server.URL, "http://", "http://shop:secret@", 1)

	must(t, "init", "-q", "-b", "main", work)
	noise := make([]byte, 3<<20)
	for _, version := range []string{"0", "1", "2"} {
		_, _ = rand.Read(noise)
		if err := os.WriteFile(filepath.Join(work, "noise-"+version), noise, 0o644); err != nil {
			t.Fatal(err)
		}
		must(t, "-C", work, "add", "-A")
		must(t, "-C", work, "commit", "-q", "-m", "Begin")
		must(t, "-C", work, "-c", "protocol.version="+version, "push", "-q", url+"/shop.git", "main")
		clone := filepath.Join(t.TempDir(), "clone")
		must(t, "-c", "protocol.version="+version, "clone", "-q", url+"/shop.git", clone)
		if got, want := must(t, "-C", clone, "rev-parse", "main"), must(t, "-C", work, "rev-parse", "main"); got != want {
			t.Errorf("version %s: cloned %s, pushed %s", version, got, want)
		}
		must(t, "-C", clone, "fsck", "--full", "--strict")
	}
	for _, other := range []string{server.URL + "/shop.git", strings.Replace(url, "secret", "guess", 1) + "/shop.git", url + "/other.git", url + "/../shop.git/hooks"} {
		if out, err := git(t, "ls-remote", other); err == nil {
			t.Errorf("%s gives %s", other, out)
		}
	}
	response, err := http.Get(url + "/shop.git/HEAD") // not of the smart protocol
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %s", response.Status)
	}
}
