// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egressproxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
)

// authority is a CA.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, pool: x509.NewCertPool()}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.certificate)
	return a
}

func (a *authority) leaf(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// gitRun is git with nothing of this machine's configuration and the given settings in its environment.
func gitRun(t *testing.T, dir string, settings map[string]string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	n := 0
	for key, value := range settings {
		cmd.Env = append(cmd.Env, "GIT_CONFIG_KEY_"+strconv.Itoa(n)+"="+key, "GIT_CONFIG_VALUE_"+strconv.Itoa(n)+"="+value)
		n++
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func gitMust(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := gitRun(t, dir, map[string]string{"user.name": "Shop", "user.email": "shop@example.com"}, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

// TestGitThroughTheProxy clones from and pushes to a real Git server, as the watchdog does.
func TestGitThroughTheProxy(t *testing.T) {
	w := newWorld(t, Limits{}, git(true))
	root := t.TempDir()
	source := filepath.Join(root, "source")
	gitMust(t, root, "init", "--quiet", "--initial-branch=main", source)
	// More than a few TLS records, and not to be compressed away.
	noise := make([]byte, 3<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "noise"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	gitMust(t, source, "add", "--all")
	gitMust(t, source, "commit", "--quiet", "--message", "Open the shop")
	gitMust(t, root, "clone", "--quiet", "--bare", source, "shop.git")
	gitMust(t, filepath.Join(root, "shop.git"), "config", "http.receivepack", "true")
	backend := filepath.Join(gitMust(t, root, "--exec-path"), "git-http-backend")
	w.server("git.example.com", "10.0.0.7:443", &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}})

	settings := func(token string) map[string]string {
		return map[string]string{
			"http.proxy": "https://" + egress.FieldGit.User() + ":" + token + "@" + w.proxy, "http.proxySSLCAInfo": w.ca.file(t), "http.proxyAuthMethod": "basic",
			"http.sslCAInfo": w.ca.file(t), "user.name": "Shop", "user.email": "shop@example.com",
		}
	}
	if out, err := gitRun(t, root, settings(goodToken), "clone", "--quiet", "https://git.example.com/shop.git", "copy"); err != nil {
		t.Fatalf("clone: %v\n%s", err, out)
	}
	gitMust(t, filepath.Join(root, "copy"), "commit", "--quiet", "--allow-empty", "--message", "Sell a thing")
	if out, err := gitRun(t, filepath.Join(root, "copy"), settings(goodToken), "push", "--quiet", "origin", "HEAD:refs/heads/work"); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	if got, want := gitMust(t, filepath.Join(root, "shop.git"), "rev-parse", "work"), gitMust(t, filepath.Join(root, "copy"), "rev-parse", "HEAD"); got != want {
		t.Errorf("the server has %s, pushed was %s", got, want)
	}
	for token, want := range map[string]string{"stolen": "407", pendingToken: "503"} {
		if out, err := gitRun(t, root, settings(token), "ls-remote", "https://git.example.com/shop.git"); err == nil || !strings.Contains(out, want) {
			t.Errorf("with the token %q: %v\n%s", token, err, out)
		}
	}
	if out, err := gitRun(t, root, settings(goodToken), "ls-remote", "https://evil.example/shop.git"); err == nil || !strings.Contains(out, "403") {
		t.Errorf("a host that is not listed: %v\n%s", err, out)
	}
}
