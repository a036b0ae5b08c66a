// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// TestGeminiFilter: what Google would do for an agent is taken out where clients offer it by themselves, and refused otherwise.
func TestGeminiFilter(t *testing.T) {
	const contents = `"contents":[{"role":"user","parts":[{"text":"do"}]}]`
	for body, want := range map[string]string{
		`{` + contents + `,"tools":[{"functionDeclarations":[{"name":"x"}]}],"toolConfig":{}}`:                                          `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"x"}]}],"toolConfig":{}}`,
		`{` + contents + `,"tools":[{"functionDeclarations":[{"name":"x"}]},{"googleSearch":{}}]}`:                                      `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"x"}]}]}`,
		`{` + contents + `,"tools":[{"google_search":{}},{"url_context":{}},{"codeExecution":{}}],"tool_config":{}}`:                    `{` + contents + `}`,
		`{` + contents + `,"tools":[{"googleMaps":{}},{"computer_use":{}}]}`:                                                            `{` + contents + `,"tools":[{"computer_use":{}}]}`,
		`{` + contents + `,"serviceTier":"priority","store":true}`:                                                                      `{` + contents + `,"store":false}`,
		`{` + contents + `,"tools":[{"fileSearch":{"fileSearchStoreNames":["a"]}}]}`:                                                    "providerState",
		`{` + contents + `,"tools":[{"mcpServers":[{"url":"https://x.example"}]}]}`:                                                     "google/mcp_servers",
		`{` + contents + `,"tools":[{"newThing":{}}]}`:                                                                                  "google/unknown",
		`{` + contents + `,"tools":{"googleSearch":{}}}`:                                                                                `{` + contents + `}`,
		`{` + contents + `,"tools":["googleSearch"]}`:                                                                                   "google/unknown",
		`{` + contents + `,"cached_content":"cachedContents/x"}`:                                                                        "providerState",
		`{` + contents + `,"generateContentRequest":{}}`:                                                                                "send contents",
		`{` + contents + `,"Tools":[{"googleSearch":{}}]}`:                                                                              `read it as "tools"`,
		`{"contents":[{"parts":[{"fileData":{"fileUri":"https://x.example/a"}}]}]}`:                                                     "google/url",
		`{"contents":[{"parts":{"file_data":{"file_uri":"gs://a/b"}}}]}`:                                                                "google/url",
		`{"contents":[{"parts":[{"functionResponse":{"name":"x","parts":[{"fileData":{"fileUri":"files/a"}}]}}]}]}`:                     "google/url",
		`{"contents":[{"parts":[{"text":"x","hologram":{"url":"https://x.example"}}]}]}`:                                                "contents[0].parts[0]",
		`{"systemInstruction":{"parts":[{"hologram":["https://x.example"]}]},"contents":[]}`:                                            "google/unknown",
		`{"contents":[{"parts":[{"functionResponse":{"name":"x","parts":[{"hologram":{}}]}}]}]}`:                                        "google/unknown",
		`{"contents":[{"parts":[{"text":"x","index":1,"mediaResolution":{"level":"MEDIA_RESOLUTION_LOW"},"part_metadata":{"a":{}}}]}]}`: `{"contents":[{"parts":[{"text":"x","index":1,"mediaResolution":{"level":"MEDIA_RESOLUTION_LOW"},"part_metadata":{"a":{}}}]}]}`,
	} {
		r, err := find("gemini").ReadRequest([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		r, err = r.Filter(dialect.Endpoint{}, dialect.Allowed{})
		if refused, is := errors.AsType[*dialect.RefusedError](err); is {
			if !strings.Contains(refused.Error(), want) || want[0] == '{' {
				t.Errorf("%s: %v, want %s", body, err, want)
			}
			continue
		}
		got, err := r.Body(dialect.Edit{Model: "m"})
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", body, got, err, want)
		}
	}
}
