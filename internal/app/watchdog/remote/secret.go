// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// dataLink is the link that the kubelet replaces when a Secret changes: all keys change at once
	// (k8s.io/kubernetes/pkg/volume/util/atomic_writer.go).
	dataLink = "..data"
	// secretTries is how often a Secret is read again that changes while it is read.
	secretTries = 3
	// maxSecretKey bounds what is read of one key, in bytes; Kubernetes lets a Secret have 1 MiB.
	maxSecretKey = 1 << 20
	// maxListed bounds the list of hosts in a message, in bytes.
	maxListed = 300
)

// gitSecret is one version of the repository's Secret.
type gitSecret struct {
	username, password string
	// hosts lists the only hosts that it may be sent to; nil where the Secret has no such key.
	hosts *string
}

// readSecret reads the Secret that is mounted in a directory; all is empty where there is none. The keys are those of one
// version, so that no password is checked against the list of hosts of another one.
func readSecret(dir string) (gitSecret, error) {
	for range secretTries {
		version, secret, err := readVersion(dir)
		// The kubelet removes an old version only after the link has changed: while it has not, nothing is missing.
		if now, _ := os.Readlink(filepath.Join(dir, dataLink)); now == version {
			return secret, err
		}
	}
	return gitSecret{}, errors.New("read Git Secret: it changes again and again; trying again later")
}

// readVersion reads what is mounted now, and says which version that is.
func readVersion(dir string) (version string, s gitSecret, err error) {
	version, _ = os.Readlink(filepath.Join(dir, dataLink)) // Without the link it is a plain directory.
	if filepath.IsLocal(version) {
		dir = filepath.Join(dir, version)
	}
	hosts, there, hostsErr := readKey(dir, protocol.GitHostsFile)
	if there {
		s.hosts = &hosts
	}
	var userErr, passwordErr error
	s.username, _, userErr = readKey(dir, protocol.GitUsernameFile)
	s.password, _, passwordErr = readKey(dir, protocol.GitPasswordFile)
	return version, s, errors.Join(hostsErr, userErr, passwordErr)
}

// readKey reads one key, without the line breaks at its end, and says whether it is there.
func readKey(dir, key string) (value string, there bool, err error) {
	file, err := os.Open(filepath.Join(dir, key))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("read Git Secret: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSecretKey+1))
	if err == nil && len(data) > maxSecretKey {
		err = fmt.Errorf("key %s has more than %d bytes", key, maxSecretKey)
	}
	if err != nil {
		return "", false, fmt.Errorf("read Git Secret: %w", err)
	}
	return strings.TrimRight(string(data), "\r\n"), true, nil
}

// maySend fails where the Secret lists the hosts that it may be sent to, and the repository's is not among them.
func (s gitSecret) maySend(r protocol.Repository) error {
	if s.hosts == nil {
		return nil
	}
	hosts, err := egress.SecretHosts(*s.hosts)
	if err != nil {
		return &HostError{message: fmt.Sprintf("the watchdog cannot read key %q of Secret %q, so it sends the Secret nowhere: %v; correct it, and the Feature continues",
			protocol.GitHostsFile, r.SecretName, err)}
	}
	asked, may := egress.MaySend(hosts, r.URL)
	if may {
		return nil
	}
	listed := "none"
	if len(hosts) > 0 {
		listed = plain.CutBytes(strings.Join(strings.Fields(*s.hosts), " "), maxListed)
	}
	return &HostError{message: fmt.Sprintf("the watchdog does not send Secret %q to %s: its key %q lists the allowed hosts (%s). Add the host there, or name another Secret",
		r.SecretName, asked, protocol.GitHostsFile, listed)}
}
