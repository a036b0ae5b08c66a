// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package consult_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// said is a streamed answer of a provider.
type said struct {
	text string
	// calls are the name of a tool, a space, and the arguments as the model wrote them.
	calls []string
	// stop is the reason in the dialect; empty for a call of a tool.
	stop string
	// usage in the dialect; empty for 100 tokens of input and 20 of output.
	usage string
	// open: the event that ends the answer does not come.
	open bool
}

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string has a JSON text
	}
	return string(data)
}

// events of the answer in a dialect.
func (s said) events(dialect string) string {
	var b strings.Builder
	event := func(format string, values ...any) { fmt.Fprintf(&b, "data: "+format+"\n\n", values...) }
	switch dialect {
	case "anthropic":
		s.anthropic(event)
	case "openai-chat":
		s.chat(event)
	case "openai-responses":
		s.responses(event)
	}
	return b.String()
}

func (s said) anthropic(event func(format string, values ...any)) {
	usage := cmp.Or(s.usage, `{"input_tokens":100,"output_tokens":20}`)
	event(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"large","content":[],"usage":%s}}`, usage)
	if s.text != "" {
		event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":%s}}`, quoted(s.text))
		event(`{"type":"content_block_stop","index":0}`)
	}
	for i, call := range s.calls {
		name, arguments, _ := strings.Cut(call, " ")
		event(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"t%d","name":%s,"input":{}}}`, i+1, i, quoted(name))
		event(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, i+1, quoted(arguments))
		event(`{"type":"content_block_stop","index":%d}`, i+1)
	}
	if !s.open {
		event(`{"type":"message_delta","delta":{"stop_reason":%s},"usage":%s}`, quoted(cmp.Or(s.stop, "tool_use")), usage)
		event(`{"type":"message_stop"}`)
	}
}

func (s said) chat(event func(format string, values ...any)) {
	event(`{"id":"c","model":"large","choices":[{"index":0,"delta":{"role":"assistant","content":%s}}]}`, quoted(s.text))
	for i, call := range s.calls {
		name, arguments, _ := strings.Cut(call, " ")
		event(`{"id":"c","model":"large","choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"t%d","type":"function","function":{"name":%s,"arguments":%s}}]}}]}`, i, i, quoted(name), quoted(arguments))
	}
	if !s.open {
		event(`{"id":"c","model":"large","choices":[{"index":0,"delta":{},"finish_reason":%s}],"usage":%s}`, quoted(cmp.Or(s.stop, "tool_calls")), cmp.Or(s.usage, `{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}`))
		event(`[DONE]`)
	}
}

func (s said) responses(event func(format string, values ...any)) {
	event(`{"type":"response.created","response":{"id":"r","object":"response","model":"large","status":"in_progress","output":[]}}`)
	if s.text != "" {
		event(`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":%s}]}}`, quoted(s.text))
	}
	for i, call := range s.calls {
		name, arguments, _ := strings.Cut(call, " ")
		event(`{"type":"response.output_item.done","output_index":%d,"item":{"type":"function_call","call_id":"t%d","name":%s,"arguments":%s}}`, i+1, i, quoted(name), quoted(arguments))
	}
	status, reason := "completed", "null"
	if s.stop != "" {
		status, reason = "incomplete", fmt.Sprintf(`{"reason":%s}`, quoted(s.stop))
	}
	if !s.open {
		event(`{"type":"response.%s","response":{"id":"r","object":"response","model":"large","status":%s,"incomplete_details":%s,"output":[],"usage":%s}}`, status, quoted(status), reason, cmp.Or(s.usage, `{"input_tokens":100,"output_tokens":20,"total_tokens":120}`))
	}
}

// streams text as events, of which the client gets each at once.
func streams(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte(text)) // fails where the client has closed the connection
	_ = http.NewResponseController(w).Flush()
}
