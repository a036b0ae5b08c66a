// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remote is the Feature's repository as it is reached: its Secret, its CA and the gateway's proxy.
package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
)

// Access has what the watchdog needs to reach a repository.
type Access struct {
	// GitSecret is the mount path of the repository's Secret.
	GitSecret string
	// Gateway as a URL: Git goes through its proxy with the pod's token, read from the path Token, and the CA at the path CA.
	// Without a URL Git goes straight to the server.
	Gateway   string
	Token, CA string
}

// Remote is the Feature's repository under the policy in effect now. Each use reads Secret and token again, because both change while pods
// run. It fails with a CredentialsError or a HostError before anything is sent.
func (a Access) Remote(o protocol.Orders) (git.Remote, error) {
	r := o.Repository
	remote := git.Remote{URL: r.URL, Silence: o.Policy.GitSilence}
	secret, err := readSecret(a.GitSecret)
	if err != nil {
		return remote, err
	}
	ca := filepath.Join(a.GitSecret, protocol.GitCAFile)
	if _, err := os.Stat(ca); err == nil {
		remote.CAFile = ca
	}
	// A Secret with nothing but a CA is for a public repository on a server with a CA of its own.
	if onlyCA := remote.CAFile != "" && secret.username == ""; r.HasCredentials && secret.password == "" && !onlyCA {
		return remote, &CredentialsError{message: fmt.Sprintf("Secret %q does not exist or has no key %q; create it, and the "+
			"Feature continues", r.SecretName, protocol.GitPasswordFile)}
	}
	if err := secret.maySend(r); err != nil {
		return remote, err
	}
	remote.Username, remote.Password = secret.username, secret.password
	if a.Gateway == "" {
		return remote, nil
	}
	token, err := os.ReadFile(a.Token)
	if err != nil {
		return remote, fmt.Errorf("read the pod's token: %w", err)
	}
	remote.Proxy = &git.Proxy{URL: a.Gateway, User: egress.FieldGit.User(), Password: strings.TrimSpace(string(token)), CAFile: a.CA}
	return remote, nil
}
