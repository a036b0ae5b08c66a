// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
	json "github.com/go-json-experiment/json/v1"
)

// Chat Completions counts the tokens of a streamed answer only where the request asks for it: with this member, in a last event that has no
// choices. https://platform.openai.com/docs/api-reference/chat/create
const (
	streamOptions = "stream_options"
	includeUsage  = "include_usage"
	usageWanted   = `"` + includeUsage + `":true`
)

// foldedOptions is the member as Names have it.
var foldedOptions = folded(streamOptions)

// LacksUsage says whether the answer is streamed without a count of its tokens unless Edit.Usage asks for one. Call Filter before.
func (r Request) LacksUsage() bool {
	if !r.dialect.usageOnDemand || !r.Streamed {
		return false
	}
	options, is := r.options()
	if !is || r.body[options.from] != '{' {
		return true
	}
	value, _ := valueOf(r.body, options.from, includeUsage)
	return string(value) != "true"
}

// options is where the value of stream_options stands.
func (r Request) options() (at span, is bool) {
	for _, m := range r.top {
		if m.name == streamOptions {
			return m.value, true
		}
	}
	return span{}, false
}

// usage is the place where the request asks for a count of tokens; none where the value is one that the provider refuses.
func (r Request) usage() []place {
	options, is := r.options()
	if !is {
		return []place{{span{r.open, r.open}, `"` + streamOptions + `":{` + usageWanted, `},`}} // the request has a model, so something follows
	}
	switch value := r.body[options.from:options.to]; value[0] {
	case 'n':
		return []place{{options, "{" + usageWanted, "}"}}
	case '{':
		if at, is := placeOf(r.body, options.from, includeUsage); is {
			return []place{{at, "true", ""}}
		}
		first := options.from + 1
		return []place{{span{first, first}, usageWanted, comma(value)}}
	}
	return nil
}

// maxUsage is the most of an event that may be the count of tokens, in bytes: one of OpenAI has 400, one of OpenRouter 800.
const maxUsage = 8 << 10

// UsageFilter removes the event that counts the tokens from a streamed answer, for a client that has not asked for it. Its zero value is ready.
type UsageFilter struct {
	// held is the event that has not ended, and out what the last call gave.
	held, out []byte
	// filled: the line that has not ended is not a blank one.
	filled bool
	// passes: the event is longer than a count is, and what there is of it has passed.
	passes bool
}

// Pass returns the bytes of the next part that the client gets. They are valid until the next call.
func (f *UsageFilter) Pass(part []byte) []byte {
	f.out = f.out[:0]
	for len(part) > 0 {
		n := bytes.IndexByte(part, '\n') + 1
		ends := n > 0
		if !ends {
			n = len(part)
		}
		f.held = append(f.held, part[:n]...)
		f.filled = f.filled || len(bytes.TrimRight(part[:n], "\r\n")) > 0
		part = part[n:]
		over := ends && !f.filled // a blank line ends an event
		f.filled = f.filled && !ends
		switch {
		case over && !f.passes && len(f.held) <= maxUsage && countsTokens(f.held):
			f.held = f.held[:0]
		case over, f.passes, len(f.held) > maxUsage:
			f.out = append(f.out, f.held...)
			f.held, f.passes = f.held[:0], !over
		}
	}
	return f.out
}

// Rest returns the bytes that are still held when the answer ends.
func (f *UsageFilter) Rest() []byte { return f.held }

// countsTokens says whether an event is the count of tokens and nothing else: its list of choices is empty, and it has a usage.
func countsTokens(event []byte) bool {
	if bytes.Contains(event, []byte(`"delta"`)) || !bytes.Contains(event, []byte(`"usage"`)) { // nearly all are such
		return false
	}
	var data []byte
	for line := range bytes.Lines(event) {
		if value, is := bytes.CutPrefix(line, []byte("data:")); is {
			data = append(data, value...)
		}
	}
	var chunk struct {
		Choices []jsontext.Value `json:"choices"`
		Usage   jsontext.Value   `json:"usage"`
	}
	return json.Unmarshal(data, &chunk) == nil && chunk.Choices != nil && len(chunk.Choices) == 0 && chunk.Usage.Kind() == '{'
}

// lenient is a value that need not be what is known of it: nobody depends on it who reads the rest of an answer.
type lenient[T any] struct{ v T }

// UnmarshalJSON implements json.Unmarshaler.
func (l *lenient[T]) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &l.v) != nil {
		var none T
		l.v = none
	}
	return nil
}
