// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const oneBackend = `
backends:
- name: main
  dialects: [anthropic]
  baseURL: https://api.example.com
  key: main
  models: [{name: large, contextWindow: 200000}]
`

// TestBackends: the files are followed, and a broken configuration takes nothing away.
func TestBackends(t *testing.T) {
	dir := t.TempDir()
	file, keys := filepath.Join(dir, "backends.yaml"), filepath.Join(dir, "keys")
	var log bytes.Buffer
	var told []map[string]bool
	b := &backends{file: file, keys: keys, log: slog.New(slog.NewTextHandler(&log, nil)), told: func(ready map[string]bool) { told = append(told, ready) }}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broken := map[string]bool(nil)
	for _, step := range []struct {
		name string
		do   func()
		want map[string]bool
		same bool // nothing new is told
		log  string
	}{
		{"no files", func() {}, map[string]bool{}, false, "Backends"},
		{"no change", func() {}, nil, true, ""},
		{"a backend", func() { write(file, oneBackend) }, map[string]bool{"main": false}, false, "Backends"},
		{"its key", func() {
			write(filepath.Join(keys, "main"), "secret-of-main\n")
			write(filepath.Join(keys, "..data"), "the kubelet's")
		}, map[string]bool{"main": true}, false, "Backends"},
		{"an unknown field", func() { write(file, oneBackend+"  colour: red\n") }, broken, false, "colour"},
		{"still broken", func() {}, nil, true, ""},
		{"a mistake", func() { write(file, strings.Replace(oneBackend, "https://", "ftp://", 1)) }, broken, false, "backends[0].baseURL"},
		{"a bad certificate", func() { write(file, oneBackend+"  ca: nonsense\n") }, broken, false, "backends[0].ca"},
		{"fixed", func() { write(file, strings.Replace(oneBackend, "name: main", "name: other", 1)) }, map[string]bool{"other": true}, false, "Backends"},
		{"a model whose window is not known", func() {
			write(file, strings.Replace(oneBackend, "models: [", "models: [{name: small}, ", 1))
		}, map[string]bool{"main": true}, false, "models=[main/small]"},
		{"too large", func() { write(file, oneBackend+strings.Repeat("#", maxBackendsFile)) }, broken, false, "are the most"},
		{"none again", func() { _ = os.Remove(file) }, map[string]bool{}, false, "Backends"},
	} {
		log.Reset()
		told = nil
		before := b.table.Load()
		step.do()
		b.load(t.Context())
		if step.same {
			if len(told) != 0 || log.Len() != 0 || b.table.Load() != before {
				t.Errorf("%s: told %v, %s", step.name, told, log.String())
			}
			continue
		}
		if diff := cmp.Diff([]map[string]bool{step.want}, told); diff != "" || !strings.Contains(log.String(), step.log) {
			t.Errorf("%s: %s (-want +got):\n%s", step.name, log.String(), diff)
		}
		if changed := b.table.Load() != before; changed == (step.want == nil) {
			t.Errorf("%s: the table changed: %v", step.name, changed)
		}
		if strings.Contains(log.String(), "secret-of-main") {
			t.Errorf("%s: the log has a key", step.name)
		}
	}
}
