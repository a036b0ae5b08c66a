// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// TestBackends: the page of backends has each kind with the dialects that it serves. The provider of an example is one that agents may not ask directly.
func TestBackends(t *testing.T) {
	const page = "docs/reference/backends.md"
	hosts := map[string]string{} // of the examples, by kind
	for example := range strings.SplitSeq(read(t, page), "\n- name: ") {
		kind := regexp.MustCompile(`(?m)^  kind: (\S+)$`).FindStringSubmatch(example)
		host := regexp.MustCompile(`(?m)^  baseURL: https?://([^/:\s]+)`).FindStringSubmatch(example)
		if kind != nil && host != nil {
			hosts[kind[1]] = host[1]
		}
	}
	// own are kinds of servers that somebody runs: they have any host.
	own := []string{"ollama", "vllm", "generic"}
	for _, k := range models.Kinds() {
		switch host := hosts[k.Name]; {
		case host == "":
			t.Errorf("%s: no example of %s", page, k.Name)
		case egress.Provider(host) == "" && !slices.Contains(own, k.Name):
			t.Errorf("internal/core/egress/providers.go: %s is missing, which %s is at: agents could ask it without the gateway", host, k.Name)
		}
		if k.Serves == nil { // those that a backend lists
			continue
		}
		if row := "| `" + k.Name + "` |"; !strings.Contains(read(t, page), "\n"+row) {
			t.Errorf("%s: no row %s", page, row)
			continue
		}
		list{page, "the dialects of " + k.Name, "(?m)^\\| `" + k.Name + "` \\| ([^|]*) \\|", "`([a-z-]+)`", served(k)}.check(t)
	}
}

// served are the dialects in which a kind of backends gives answers.
func served(k models.Kind) (names []string) {
	for _, d := range dialect.All() {
		if slices.ContainsFunc(d.Endpoints, func(e dialect.Endpoint) bool {
			_, serves := k.Serves[e.Path]
			return serves && e.Kind == dialect.Generate && !e.Side
		}) {
			names = append(names, d.Name)
		}
	}
	return names
}
