// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// TestStreamUsageIsAskedFor puts stream_options into requests for streams that lack them, and changes no other byte.
func TestStreamUsageIsAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		body, want string
		without    []string
	}{
		"absent":              {body: `{ "model":"m","stream":true}`, want: `{"stream_options":{"include_usage":true}, "model":"m","stream":true}`},
		"null":                {body: `{"model":"m","stream":true,"stream_options": null }`, want: `{"model":"m","stream":true,"stream_options": {"include_usage":true} }`},
		"empty":               {body: `{"model":"m","stream":true,"stream_options":{ }}`, want: `{"model":"m","stream":true,"stream_options":{"include_usage":true }}`},
		"another option":      {body: `{"model":"m","stream":true,"stream_options":{"include_obfuscation":false}}`, want: `{"model":"m","stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}}`},
		"false":               {body: `{"stream_options":{"include_usage" : false},"model":"m","stream":true}`, want: `{"stream_options":{"include_usage" : true},"model":"m","stream":true}`},
		"a name with escapes": {body: `{"stream_options":{"include\u005fusage":null},"model":"m","stream":true}`, want: `{"stream_options":{"include\u005fusage":true},"model":"m","stream":true}`},
		"true":                {body: `{"model":"m","stream":true,"stream_options":{"include_usage": true}}`},
		"not streamed":        {body: `{"model":"m","stream":false}`},
		"no object":           {body: `{"model":"m","stream":true,"stream_options":[true]}`, want: `{"model":"m","stream":true,"stream_options":[true]}`},
		"stripped": {
			body: `{"model":"m","stream":true,"stream_options":{"include_usage":false}}`, want: `{"model":"m","stream":true}`, without: []string{"Stream-Options"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := readThrough(t, "openai-chat", tc.body)
			if r.LacksUsage() != (tc.want != "") {
				t.Fatalf("LacksUsage is %v", r.LacksUsage())
			}
			if tc.want == "" {
				return
			}
			out, err := r.Body(dialect.Edit{Model: "m", Usage: true, Without: dialect.Fold(tc.without...)})
			if err != nil || string(out) != tc.want {
				t.Errorf("%s %v", out, err)
			}
		})
	}
	for _, other := range []string{"anthropic", "openai-responses", "gemini"} {
		if readThrough(t, other, `{"model":"m","stream":true,"contents":[]}`).LacksUsage() {
			t.Errorf("%s counts tokens unasked", other)
		}
	}
}

// TestStreamOptionsThatFold are refused as every member is that two readers take for one.
func TestStreamOptionsThatFold(t *testing.T) {
	d, _ := dialect.Find("openai-chat")
	for _, options := range []string{`{"include_usage":true,"Include_Usage":false}`, `{"Include_Usage":false}`} {
		r, err := d.ReadRequest([]byte(`{"model":"m","stream":true,"stream_options":` + options + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err == nil {
			t.Errorf("%s is not refused", options)
		}
	}
}

func readThrough(t *testing.T, name, body string) dialect.Request {
	t.Helper()
	d, _ := dialect.Find(name)
	r, err := d.ReadRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if r, err = r.Filter(d.Endpoints[0], dialect.Allowed{}); err != nil {
		t.Fatal(err)
	}
	return r
}

// usageCases are streams, and what reaches a client that has not asked for a count.
func usageCases() map[string][2]string {
	const (
		word  = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":null}\n\n"
		count = "data: {\"id\":\"c\",\"choices\":[ ],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n"
		done  = "data: [DONE]\n\n"
	)
	crlf := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	long := "data: {\"choices\":[],\"usage\":{\"x\":\"" + strings.Repeat("y", 9<<10) + "\"}}\n\n"
	azure := "data: {\"choices\":[],\"prompt_filter_results\":[],\"usage\":null}\n\n"
	both := "data: {\"choices\":[{\"index\":0,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3}}\n\n"
	return map[string][2]string{
		"as OpenAI does":         {word + count + done, word + done},
		"CR and LF":              {crlf(word + count + done), crlf(word + done)},
		"with comments":          {": PROCESSING\n\n" + word + ": x\n" + count + done, ": PROCESSING\n\n" + word + done},
		"first of Azure":         {azure + word + count + done, azure + word + done},
		"beside a choice":        {word + both + done, word + both + done},
		"too long for a count":   {word + long + done, word + long + done},
		"a long word":            {strings.Replace(word, "x", strings.Repeat("x\\n", 1<<15), 1) + count + done, strings.Replace(word, "x", strings.Repeat("x\\n", 1<<15), 1) + done},
		"no blank line at last":  {word + strings.TrimSuffix(count, "\n"), word + strings.TrimSuffix(count, "\n")},
		"no JSON":                {"data: {\"usage\":\n\n" + done, "data: {\"usage\":\n\n" + done},
		"no choices":             {"data: {\"usage\":{}}\n\n", "data: {\"usage\":{}}\n\n"},
		"nothing":                {"", ""},
		"several lines of data":  {"data: {\"choices\":[],\ndata: \"usage\":{}}\n\n" + done, done},
		"no space behind data":   {"data:{\"choices\":[],\"usage\":{}}\n\n" + done, done},
		"blank lines in between": {"\n\n" + word + "\n" + count + "\n\n" + done, "\n\n" + word + "\n\n\n" + done},
	}
}

// TestUsageFilter leaves out the count alone, wherever the parts of the answer are cut.
func TestUsageFilter(t *testing.T) {
	for name, tc := range usageCases() {
		t.Run(name, func(t *testing.T) {
			for _, step := range []int{1, 2, 3, 7, 64, 1 << 20} {
				if got := throughFilter([]byte(tc[0]), step); string(got) != tc[1] {
					t.Fatalf("in steps of %d: %q, want %q", step, got, tc[1])
				}
			}
		})
	}
}

func throughFilter(stream []byte, step int) []byte {
	var f dialect.UsageFilter
	var got []byte
	for len(stream) > 0 {
		n := min(step, len(stream))
		got, stream = append(got, f.Pass(stream[:n])...), stream[n:]
	}
	return append(got, f.Rest()...)
}

// FuzzUsageFilter: what passes does not depend on where the parts are cut, nothing is added, and a second pass finds nothing more.
func FuzzUsageFilter(f *testing.F) {
	for _, tc := range usageCases() {
		f.Add([]byte(tc[0]), 3)
	}
	f.Fuzz(func(t *testing.T, stream []byte, step int) {
		whole := throughFilter(stream, len(stream)+1)
		if cut := throughFilter(stream, 1+(step&0xfff)); !bytes.Equal(cut, whole) {
			t.Fatalf("%q became %q and %q", stream, whole, cut)
		}
		if again := throughFilter(whole, len(whole)+1); !bytes.Equal(again, whole) || len(whole) > len(stream) {
			t.Fatalf("%q became %q and then %q", stream, whole, again)
		}
	})
}
