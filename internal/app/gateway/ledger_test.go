// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWhereTheLedgerIs: a Secret that has something else than the URL is an error. Replicas would else have a ledger each.
func TestWhereTheLedgerIs(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
		fails bool
	}{
		"no Secret":          {nil, "sqlite:///ledger.db", false},
		"the kubelet's own":  {map[string]string{"..data": ""}, "sqlite:///ledger.db", false},
		"a URL":              {map[string]string{"url": "postgres://db\n", "ca.crt": "PEM"}, "postgres://db", false},
		"another name of it": {map[string]string{"..data": "", "URL": "postgres://db"}, "", true},
	} {
		dir := t.TempDir()
		for file, text := range tc.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := &recorder{options: Options{Ledger: "sqlite:///ledger.db", LedgerFile: filepath.Join(dir, "url")}}
		if got, err := r.url(); got != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	r := &recorder{options: Options{Ledger: "sqlite:///ledger.db", LedgerFile: filepath.Join(t.TempDir(), "none", "url")}}
	if got, err := r.url(); got != "sqlite:///ledger.db" || err != nil {
		t.Errorf("no directory: %q, %v", got, err)
	}
}
