// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestWhatASecretNeeds: a Secret has credentials, or nothing but the CA of a server that gives the repository to everybody.
func TestWhatASecretNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		keys    map[string]string
		missing bool
	}{
		"credentials":                {keys: map[string]string{protocol.GitUsernameFile: "tidewaiter", protocol.GitPasswordFile: "pass"}},
		"a token":                    {keys: map[string]string{protocol.GitPasswordFile: "token"}},
		"credentials and a CA":       {keys: map[string]string{protocol.GitUsernameFile: "tidewaiter", protocol.GitPasswordFile: "pass", protocol.GitCAFile: "PEM"}},
		"a CA":                       {keys: map[string]string{protocol.GitCAFile: "PEM"}},
		"a CA, the rest empty":       {keys: map[string]string{protocol.GitUsernameFile: "", protocol.GitPasswordFile: "", protocol.GitCAFile: "PEM"}},
		"no password":                {keys: map[string]string{protocol.GitUsernameFile: "tidewaiter"}, missing: true},
		"a CA, but no password":      {keys: map[string]string{protocol.GitUsernameFile: "tidewaiter", protocol.GitCAFile: "PEM"}, missing: true},
		"a Secret that is not there": {missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for key, value := range c.keys {
				if err := os.WriteFile(filepath.Join(dir, key), []byte(value), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, err := Access{GitSecret: dir}.Remote(protocol.Orders{Repository: protocol.Repository{URL: "https://git.example.com/shop.git", HasCredentials: true, SecretName: "shop-git"}})
			var refused *CredentialsError
			if errors.As(err, &refused) != c.missing {
				t.Fatalf("Remote: %v", err)
			}
			if err == nil && (r.Password != c.keys[protocol.GitPasswordFile] || (r.CAFile != "") != (c.keys[protocol.GitCAFile] != "")) {
				t.Errorf("Remote = %+v", r)
			}
		})
	}
}
