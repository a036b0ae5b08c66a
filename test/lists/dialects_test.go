// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// TestDialects: core/dialect has each dialect of models, and everything else that knows them by their names has them all.
func TestDialects(t *testing.T) {
	var all, short []string
	for _, d := range dialect.All() {
		all, short = append(all, d.Name), append(short, strings.TrimPrefix(d.Name, "openai-"))
	}
	const key, quoted, code = `(?m)^\t\t"([a-z-]+)":`, `"([a-z-]+)"`, "`([a-z-]+)`"
	for _, l := range []list{
		{"internal/core/worker/speech.go", "speeches", `(?s)func speeches\(\)[^{]*\{\n(.*?)\n\}\n`, key, all},
		{"internal/testkit/provider/provider.go", "dialects", `func dialects\(\) \[\]dialect \{ return \[\]dialect\{(.*)\} \}`, `([a-z]+)\{\}`, short},
		{"internal/gateway/modelserver/golden_test.go", "questions", `(?s)func questions\(\)[^{]*\{\n(.*?)\n\}\n`, key, all},
		{"internal/gateway/modelserver/answers_test.go", "spoken", `(?s)func spoken\(.*?return map\[string\]\[2\]string\{\n(.*?)\n\t\}\n`, key, all},
		{"internal/gateway/modelserver/server_test.go", "the backend of the tests", `Name: "main", Dialects: \[\]string\{([^}]*)\}`, quoted, all},
		{"test/sdk/sdk_test.go", "the backend of the tests", `Name: "main", Dialects: \[\]string\{([^}]*)\}`, quoted, all},
		{"test/cluster/provider.go", "Dialects", `var Dialects = \[\]string\{([^}]*)\}`, quoted, all},
		{"docs/models.md", "the key dialects of a backend", "\\| `dialects` \\| wire formats that it speaks: (.*) \\|", code, all},
		{"docs/runtimes/worker.md", "the dialects that it speaks", `\| Dialects \| (.*) \|`, code, all},
	} {
		l.check(t)
	}
	// What no list says whole is in the sample, in the page of backends and in the tests of the providers' own clients.
	for file, format := range map[string]string{
		"config/samples/model-backends.yaml": "%s",
		"docs/backends.md":                   "`%s`",
	} {
		text := read(t, file)
		for _, name := range all {
			if !strings.Contains(text, strings.ReplaceAll(format, "%s", name)) {
				t.Errorf("%s: %s is missing", file, name)
			}
		}
	}
	var clients strings.Builder
	files, err := filepath.Glob(filepath.Join(root, "test/sdk/*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("test/sdk: %d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		clients.Write(text)
	}
	for name, client := range map[string]string{
		"anthropic": "github.com/anthropics/anthropic-sdk-go", "openai-responses": "github.com/openai/openai-go", "openai-chat": "github.com/openai/openai-go", "gemini": "google.golang.org/genai",
	} {
		if !strings.Contains(clients.String(), client) {
			t.Errorf("test/sdk: nothing asks %s with %s", name, client)
		}
		short = without(short, strings.TrimPrefix(name, "openai-"))
	}
	for _, name := range short {
		t.Errorf("test/sdk: ask %s with its provider's own client, and name the client in this test", name)
	}
	for _, r := range runtimes.All() {
		if _, known := dialect.Find(r.Dialect); r.Dialect != "" && !known {
			t.Errorf("runtime %s asks in %s, and core/dialect has no such dialect", r.Name, r.Dialect)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
