// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"slices"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// TestLists: what people read of a dialect is what the filter goes by.
func TestLists(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]dialect.Listed{
		"anthropic": {
			{Where: "tools[web_search]", Fate: dialect.TakesOut, Tool: "anthropic/web_search"}, {Where: "tools[mcp_toolset]", Fate: dialect.Refuses, Tool: "anthropic/mcp_servers"},
			{Where: "mcp_servers", Fate: dialect.Refuses, Tool: "anthropic/mcp_servers", Some: true}, {Where: "thread[create]", Fate: dialect.TakesOut, State: true},
		},
		"openai-responses": {
			{Where: "tools[file_search]", Fate: dialect.Refuses, Tool: "openai/file_search", State: true}, {Where: "tools[namespace]", Fate: dialect.Passes},
			{Where: "store", Fate: dialect.Replaces, State: true, Instead: "false"}, {Where: "previous_response_id", Fate: dialect.Refuses, State: true},
		},
		"openai-chat": {{Where: "tools[custom|function]", Fate: dialect.Passes}, {Where: "web_search_options", Fate: dialect.TakesOut, Tool: "openai/web_search"}},
		"gemini":      {{Where: "tools.googleSearch", Fate: dialect.TakesOut, Tool: "google/google_search"}, {Where: "contents.parts.fileData", Fate: dialect.Refuses, Tool: "google/url"}},
	} {
		d, _ := dialect.Find(name)
		known := d.Lists().Known
		for _, x := range want {
			if !slices.Contains(known, x) {
				t.Errorf("%s: %+v is not listed", name, x)
			}
		}
		for _, x := range known {
			if x.Tool != "" && !dialect.ValidTool(x.Tool) {
				t.Errorf("%s: no policy can list %q", name, x.Tool)
			}
		}
	}
	// Whatever is refused in a test is in a list.
	listed := map[string]bool{}
	for _, d := range dialect.All() {
		for _, x := range d.Lists().Known {
			listed[x.Tool] = true
		}
	}
	for _, d := range []string{"anthropic/mcp_servers", "anthropic/url", "openai/mcp", "openai/url", "openrouter/plugins", "azure/data_sources", "openai/skills"} {
		if !listed[d] {
			t.Errorf("%s is in no list", d)
		}
	}
}
