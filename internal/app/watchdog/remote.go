// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/host/git"
)

// proxyUser is the user that the gateway expects beside the pod's token.
const proxyUser = "tidewaiter"

// remote is the Feature's repository as it is reached now: Secret and token are read each time, because both change
// while pods run. It fails where the Secret may not be sent to the repository's host, before anything is sent.
func (a *attempt) remote(r contract.Repository) (git.Remote, error) {
	remote := git.Remote{URL: r.URL}
	secret, err := readSecret(a.Paths.GitSecret)
	if err != nil {
		return remote, err
	}
	if r.HasCredentials && secret.password == "" {
		return remote, &credentialsError{message: fmt.Sprintf("Secret %q does not exist or has no key %q; create it, and the "+
			"Feature goes on", r.SecretName, contract.GitPasswordFile)}
	}
	if err := secret.maySend(r); err != nil {
		return remote, err
	}
	remote.Username, remote.Password = secret.username, secret.password
	ca := filepath.Join(a.Paths.GitSecret, contract.GitCAFile)
	if _, err := os.Stat(ca); err == nil {
		remote.CAFile = ca
	}
	if a.Gateway == "" {
		return remote, nil
	}
	token, err := os.ReadFile(a.Paths.Token)
	if err != nil {
		return remote, fmt.Errorf("read the pod's token: %w", err)
	}
	remote.Proxy = &git.Proxy{URL: a.Gateway, User: proxyUser, Password: strings.TrimSpace(string(token)), CAFile: a.Paths.CA}
	return remote, nil
}
