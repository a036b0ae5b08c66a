// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/core/sidecalls"
)

// runtimesThat are so, by their names.
func runtimesThat(are func(runtimes.Runtime) bool) (names []string) {
	for _, r := range runtimes.All() {
		if are(r) {
			names = append(names, r.Name)
		}
	}
	return names
}

// TestRuntimes: core/runtimes has a record of each runtime, and everything else that knows them by their names has them all.
func TestRuntimes(t *testing.T) {
	var (
		all     = runtimesThat(func(runtimes.Runtime) bool { return true })
		builtIn = runtimesThat(func(r runtimes.Runtime) bool { return r.Name != "command" })
		imaged  = runtimesThat(func(r runtimes.Runtime) bool { return !r.Included })
		// clients are the programs of others, for which there is an image.
		clients  = runtimesThat(func(r runtimes.Runtime) bool { return r.Name != "command" && !r.Included })
		sessions = runtimesThat(func(r runtimes.Runtime) bool { return r.Sessions })
		titles   = runtimesThat(func(r runtimes.Runtime) bool { return sidecalls.Of(r.Name).Any() })
		compact  = runtimesThat(func(r runtimes.Runtime) bool { return r.Compaction() != anomaly.Compaction{} })
	)
	const quoted, word = "`([a-z-]+)`", `([a-z]+(?:-[a-z]+)*)`
	for _, l := range []list{
		{"api/v1alpha1/agent_types.go", "the rule that an image is needed", `self\.runtime in \[([^\]]*)\]`, `'([a-z-]+)'`, imaged},
		{"api/v1alpha1/agent_types.go", "what is built in", `of its own for these: (.*)\. The condition`, word, builtIn},
		{"config/crd/bases/tidewaiter.dev_features.yaml", "the rule that an image is needed: run make generate", `self\.runtime in \[([^\]]*)\]`, `'([a-z-]+)'`, imaged},
		{"hack/agents.sh", "the images that are built", `(?m)^runtimes=\(([^)]*)\)`, word, clients},
		{"test/e2e/agents_test.go", "TestAgents", `(?s)func TestAgents\(.*?map\[string\]struct\{[^}]*\}\{\n(.*?)\n\t\} \{`, `(?m)^\t\t"([a-z-]+)":`, clients},
		{"test/e2e/sessions_test.go", "sessions", `(?s)\nvar sessions = map\[string\]string\{\n(.*?)\n\}`, `(?m)^\t"([a-z-]+)":`, sessions},
		{"test/e2e/sessions_test.go", "runtimesWithSessions", `runtimesWithSessions = \[\]string\{([^}]*)\}`, `"([a-z-]+)"`, sessions},
		{"README.md", "the runtimes of the example", `agent: \{runtime: claude-code,.*# or (.*), worker \(no image\), or command`, word, without(clients, "claude-code")},
		{"docs/tasks/write-a-feature.md", "which runtimes there are", "Tidewaiter starts (.*) on the prompt by itself", quoted, builtIn},
		{"docs/concepts/supervision.md", "where clients compact", `(?s)\| runtime \| its client compacts at \|\n(.*?)\n\| .command`, "(?m)^\\| " + quoted, compact},
		{"docs/tasks/deterministic-mode.md", "which runtimes are MCP clients", "Tidewaiter configures (.*) by itself", quoted, clients},
		{"docs/concepts/templates.md", "whose side calls are known", "Calls of (.*) that offer no tools", quoted, titles},
		{"docs/reference/agents.md", "the table of agents", `(?s)\| Runtime \| Tested \| Dialect \| Started as \|\n(.*?)\n\n`, "(?m)^\\| " + quoted, all},
		{"docs/reference/agents.md", "the versions that are three months older", `(?s)about three months older: (.*?)\(`, `([a-z]+(?:-[a-z]+)*) \d`, clients},
		{"docs/reference/agents.md", "the pages of runtimes", `(?s)Each has a page: (.*?)\. All of them`, `\(runtimes/([a-z-]+)\.md\)`, all},
	} {
		l.check(t)
	}
	compare(t, "docs/reference/runtimes", entries(t, "docs/reference/runtimes", ".md"), all)
	compare(t, "images", entries(t, "images", ""), clients)
	for _, name := range clients {
		for _, file := range []string{"Dockerfile", "versions.env", "versions-older.env"} {
			if _, err := os.Stat(filepath.Join(root, "images", name, file)); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestRunsOfRuntimes: the corpus is played in the way of a client for each dialect that clients differ by, and says why of the others.
func TestRunsOfRuntimes(t *testing.T) {
	played := list{"test/eval/corpus_test.go", "clients", `func clients\(\) \[\]client \{ return \[\]client\{(.*)\} \}`, `([a-z]+)\(\)`, nil}
	text, err := os.ReadFile(filepath.Join(root, played.file))
	if err != nil {
		t.Fatal(err)
	}
	found, err := played.names(string(text))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"claude": "claude-code"} // what the renderer is called, where it is not the runtime
	for i, name := range found {
		if runtime, other := names[name]; other {
			found[i] = runtime
		}
	}
	// Of these no run is played.
	for name, why := range map[string]string{
		"qwen-code":  "speaks openai-chat, as opencode does",
		"gemini-cli": "its entries are read by tests of core/dialect and of the watchdog alone",
	} {
		if why == "" {
			t.Errorf("say why no run is played in the way of %s", name)
		}
		found = append(found, name)
	}
	compare(t, "test/eval, clients, and the exceptions of this test", found, runtimesThat(func(r runtimes.Runtime) bool { return r.Dialect != "" }))
}

func without(list []string, name string) (rest []string) {
	for _, other := range list {
		if other != name {
			rest = append(rest, other)
		}
	}
	return rest
}
