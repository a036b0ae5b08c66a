// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
)

// TestACAFileIsTheOnlyTrust: where a user names the CAs of a server, the system's CAs cannot vouch for another server in its place.
func TestACAFileIsTheOnlyTrust(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		h := newHub(t)
		const system = "/etc/ssl/certs" // of Debian's curl
		if err := os.MkdirAll(system, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(filepath.Dir(h.caFile), system, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		remote := h.remote()
		if _, err := newRepository(t).Fetch(t.Context(), remote, "main"); err != nil {
			t.Fatalf("with the CA of the server: %v", err)
		}
		remote.CAFile = otherCA(t)
		if _, err := newRepository(t).Fetch(t.Context(), remote, "main"); !errors.Is(err, git.ErrUnreachable) {
			t.Errorf("with another CA than that of the server: %v, want ErrUnreachable", err)
		}
	})
}

// otherCA vouches for nobody.
func otherCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "other.crt")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
