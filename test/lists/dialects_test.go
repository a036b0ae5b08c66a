// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// TestDialects: core/dialect has each dialect of models, and everything else that knows them by their names has them all.
func TestDialects(t *testing.T) {
	var all, short, paths []string
	for _, d := range dialect.All() {
		all, short = append(all, d.Name), append(short, strings.TrimPrefix(d.Name, "openai-"))
		path, _, _ := strings.Cut(d.Endpoints[0].Path, dialect.ModelPlace)
		paths = append(paths, path)
	}
	const key, quoted, code = `(?m)^\t\t"([a-z-]+)":`, `"([a-z-]+)"`, "`([a-z-]+)`"
	const prefix = "`(/[a-z]+)(?:/v1)?`" // base URLs of OpenAI's clients have the version
	for _, l := range []list{
		{"internal/core/speech/speech.go", "speeches", `(?s)func speeches\(\)[^{]*\{\n(.*?)\n\}\n`, key, all},
		{"internal/testkit/provider/provider.go", "dialects", `func dialects\(\) \[\]dialect \{ return \[\]dialect\{(.*)\} \}`, `([a-z]+)\{\}`, short},
		{"internal/gateway/modelserver/golden_test.go", "questions", `(?s)func questions\(\)[^{]*\{\n(.*?)\n\}\n`, key, all},
		{"internal/gateway/modelserver/answers_test.go", "spoken", `(?s)func spoken\(.*?return map\[string\]\[2\]string\{\n(.*?)\n\t\}\n`, key, all},
		{"internal/gateway/modelserver/server_test.go", "the backend of the tests", `Name: "main", Dialects: \[\]string\{([^}]*)\}`, quoted, all},
		{"test/sdk/sdk_test.go", "the backend of the tests", `Name: "main", Dialects: \[\]string\{([^}]*)\}`, quoted, all},
		{"test/cluster/provider.go", "Dialects", `var Dialects = \[\]string\{([^}]*)\}`, quoted, all},
		{"docs/reference/backends.md", "the key dialects of a backend", "\\| `dialects` \\| wire formats that it speaks: (.*) \\|", code, all},
		{"docs/reference/backends.md", "the paths below baseURL", `below which the dialect's paths are \((.*?)\)`, "`([^`…]+)…?`", paths},
		{"docs/reference/agents.md", "the addresses of models", "`TIDEWAITER_MODELS_URL`: (.*) \\|", prefix, dialect.Prefixes()},
		{"docs/reference/runtimes/command.md", "the addresses of models", "\\| `TIDEWAITER_MODELS_URL` \\| (.*) \\|", prefix, dialect.Prefixes()},
		{"docs/tasks/custom-agent-image.md", "the addresses of models", "below `\\$TIDEWAITER_MODELS_URL`: (.*) \\|", prefix, dialect.Prefixes()},
		{"docs/concepts/templates.md", "where the text begins", `(?s)the system prompt of the dialect: (.*?)\.\n`, "of `([a-z-]+)`", all},
		{"docs/reference/runtimes/worker.md", "the dialects that it speaks", `\| Dialects \| (.*) \|`, code, all},
	} {
		l.check(t)
	}
	// What no list says whole is in the sample, in the page of backends and in the tests of the providers' own clients.
	for file, format := range map[string]string{
		"config/samples/model-backends.yaml": "%s",
		"docs/reference/backends.md":         "`%s`",
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

// TestDialectsAreTried: the tables of tests that any dialect must be in have something of each.
func TestDialectsAreTried(t *testing.T) {
	for _, place := range []struct{ file, what string }{
		{"internal/core/dialect/dialect_test.go", "TestServe"},
		{"internal/core/dialect/dialect_test.go", "TestText"},
		{"internal/core/dialect/dialect_test.go", "TestObjections"},
		{"internal/core/dialect/history_test.go", "wires"},
		{"internal/core/dialect/answer_test.go", "readings"},
		{"internal/core/dialect/retext_test.go", "TestRetext"},
		{"internal/core/dialect/steer_test.go", "TestSteer"},
		{"internal/core/dialect/steer_test.go", "TestHasPlace"},
		{"internal/core/dialect/results_test.go", "TestResultsOfEachKind"},
		{"internal/core/dialect/limit_test.go", "TestLimit"},
		{"internal/core/dialect/lists_test.go", "TestLists"},
		{"internal/core/session/said_test.go", "TestSurgeryBehindSurgery"},
		{"internal/core/speech/speech_test.go", "TestRequests"},
		{"internal/core/speech/speech_test.go", "answers"},
		{"internal/app/watchdog/steer/service_test.go", "called"},
		{"internal/testkit/provider/manners_test.go", "spoken"},
		{"internal/testkit/provider/manners_test.go", "TestStopsAndChoices"},
		{"test/bench/supervision_test.go", "newCoder"},
		{"test/bench/supervision_test.go", "call"},
		{"test/bench/supervision_test.go", "toolCall"},
	} {
		region := regexp.MustCompile(`(?s)\n(?:func (?:\([^)]*\) )?` + place.what + `\(|var ` + place.what + ` = )(.*?)\n\}\n`).FindStringSubmatch(read(t, place.file))
		if region == nil {
			t.Errorf("%s, %s is not there: correct this test", place.file, place.what)
			continue
		}
		for _, d := range dialect.All() {
			name := d.Name
			if strings.HasPrefix(place.file, "internal/testkit/provider/") { // which has short names
				name = strings.TrimPrefix(name, "openai-")
			}
			if !strings.Contains(region[1], `"`+name+`"`) {
				t.Errorf("%s, %s: nothing of %s", place.file, place.what, name)
			}
		}
	}
	walls := read(t, "internal/core/dialect/filter_test.go") + read(t, "internal/core/dialect/gemini_filter_test.go")
	detours := read(t, "internal/testkit/detour/detour.go")
	for _, d := range dialect.All() {
		if !strings.Contains(walls, `"`+d.Name+`"`) {
			t.Errorf("internal/core/dialect/filter_test.go, refusals: nothing of %s", d.Name)
		}
		if !slices.ContainsFunc(d.Endpoints, func(e dialect.Endpoint) bool {
			return strings.Contains(detours, `"`+strings.ReplaceAll(d.Prefix+e.Path, "{model}", "large")+`"`)
		}) {
			t.Errorf("internal/testkit/detour: no request in %s would have a provider act elsewhere", d.Name)
		}
		if !slices.ContainsFunc(models.Kinds(), func(k models.Kind) bool {
			return slices.ContainsFunc(d.Endpoints, func(e dialect.Endpoint) bool {
				_, serves := k.Serves[e.Path]
				return serves
			})
		}) {
			t.Errorf("internal/core/models/kinds.go: no kind of backends serves %s", d.Name)
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
