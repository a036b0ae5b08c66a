// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// TestAStreamBreaksOffAsItsLinesEnd: the event that says that a stream broke off ends its lines as the stream does. Clients that look for either end
// of an event take two events for one where the ends differ.
func TestAStreamBreaksOffAsItsLinesEnd(t *testing.T) {
	requests := map[string][2]string{
		"anthropic":        {"/v1/messages", `{"model":"large","stream":true,"messages":[{"role":"user","content":"Hello"}]}`},
		"openai-responses": {"/v1/responses", `{"model":"large","stream":true,"store":false,"input":"Hello"}`},
		"openai-chat":      {"/v1/chat/completions", `{"model":"large","stream":true,"messages":[{"role":"user","content":"Hello"}]}`},
		"gemini":           {"/v1beta/models/large:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`},
	}
	const whole = `data: {"whole":1}`
	for _, d := range dialect.All() {
		request, known := requests[d.Name]
		if !known {
			t.Fatalf("no request of %s", d.Name)
		}
		for name, ends := range map[string]string{"LF": "\n", "CRLF": "\r\n"} {
			for at, tail := range map[string]string{
				"between events": "", "in an event": `data: {"cut`, "behind a line": `data: {"cut":1}` + ends, "in the end of a line": `data: {"cut":1}` + strings.TrimSuffix(ends, "\n"),
			} {
				t.Run(strings.Join([]string{d.Name, name, at}, "/"), func(t *testing.T) {
					w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
						rw.Header().Set("Content-Type", "text/event-stream")
						for _, part := range []string{whole + ends + ends, tail} {
							fmt.Fprint(rw, part)
							_ = http.NewResponseController(rw).Flush()
						}
						panic(http.ErrAbortHandler)
					}), quick())
					_, text := w.ask("login", http.MethodPost, d.Prefix+request[0], request[1])
					if ends == "\r\n" && strings.Count(text, "\r\n") != max(strings.Count(text, "\n"), strings.Count(text, "\r")) || ends == "\n" && strings.Contains(text, "\r") {
						t.Errorf("lines end in two ways: %q", text)
					}
					events := strings.FieldsFunc(strings.ReplaceAll(text, ends+ends, "\x00"), func(c rune) bool { return c == 0 })
					if len(events) < 2 || strings.TrimRight(events[0], "\r\n") != whole || !strings.Contains(events[len(events)-1], "broke off") || strings.Contains(events[len(events)-1], `"cut`) {
						t.Errorf("the events are %q", events)
					}
				})
			}
		}
	}
}
