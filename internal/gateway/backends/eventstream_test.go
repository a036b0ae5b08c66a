// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
)

// frame of a stream, as Bedrock sends it.
func frame(t testing.TB, payload string, headers ...string) []byte {
	t.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var out bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// chunk has an event, padded as Bedrock does.
func chunk(t testing.TB, event string) []byte {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"bytes": []byte(event), "p": "abcdefgh"})
	if err != nil {
		t.Fatal(err)
	}
	return frame(t, string(payload), ":message-type", "event", ":event-type", "chunk", ":content-type", "application/json")
}

func messagesDialect() dialect.Dialect {
	d, _ := dialect.Find("anthropic")
	return d
}

// translated reads an answer of Bedrock.
func translated(status int, contentType string, body []byte) (answer *http.Response, text string, err error) {
	answer = &http.Response{StatusCode: status, Status: "429 Too Many Requests", Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body))}
	translate(answer, messagesDialect())
	read, err := io.ReadAll(answer.Body)
	return answer, string(read), err
}

// TestStreamOfAWS: events are as Anthropic sends them, and what ends a stream early is an error of the dialect.
func TestStreamOfAWS(t *testing.T) {
	start := chunk(t, `{"type":"message_start","message":{"id":"msg_bdrk_1"}}`)
	const started = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_bdrk_1\"}}\n\n"
	exception := func(name, text string) []byte {
		return frame(t, text, ":message-type", "exception", ":exception-type", name, ":content-type", "application/json")
	}
	tooLarge := binary.BigEndian.AppendUint32(nil, maxFrame+1)
	for name, tc := range map[string]struct {
		body      []byte
		want, err string
	}{
		"whole":                 {bytes.Join([][]byte{start, chunk(t, `{"type":"message_stop"}`)}, nil), started + "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", ""},
		"nothing":               {nil, "", ""},
		"lines within":          {chunk(t, "{\n\"type\":\r\n\"ping\"}"), "event: ping\ndata: { \"type\":  \"ping\"}\n\n", ""},
		"another kind of frame": {append(frame(t, "{}", ":message-type", "event", ":event-type", "metrics"), start...), started, ""},
		"throttled":             {append(bytes.Clone(start), exception("throttlingException", `{"message":"Too many tokens"}`)...), started + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"Too many tokens\"}}\n\n", ""},
		"failed":                {exception("modelStreamErrorException", `no JSON`), "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"modelStreamErrorException\"}}\n\n", ""},
		"an error": {frame(t, "", ":message-type", "error", ":error-code", "InternalError", ":error-message", "It broke."),
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"It broke.\"}}\n\n", ""},
		"cut off":             {start[:len(start)-3], "", "unexpected EOF"},
		"cut off at once":     {start[:2], "", "unexpected EOF"},
		"too large":           {tooLarge, "", "1048577 bytes, and the limit is 1048576"},
		"altered":             {append(start[:len(start)-1:len(start)-1], start[len(start)-1]^1), "", "checksum"},
		"an unknown type":     {frame(t, "{}", ":message-type", "command"), "", `of the type "command"`},
		"no JSON":             {frame(t, "x", ":message-type", "event", ":event-type", "chunk"), "", "has no JSON"},
		"no JSON within":      {chunk(t, "x"), "", "is no JSON"},
		"a type that injects": {chunk(t, `{"type":"a\ndata: b"}`), "", "is not one word"},
	} {
		answer, text, err := translated(http.StatusOK, eventStream, tc.body)
		if diff := cmp.Diff(tc.want, text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: %v, want %q", name, err, tc.err)
		}
		if answer.Header.Get("Content-Type") != "text/event-stream" || answer.ContentLength != -1 {
			t.Errorf("%s: %v", name, answer.Header)
		}
	}
}

// TestErrorsOfAWS are errors of the dialect; whole answers are as they came.
func TestErrorsOfAWS(t *testing.T) {
	for name, tc := range map[string]struct {
		status     int
		body, want string
	}{
		"throttled":    {429, `{"message":"Too many requests"}`, `{"type":"error","error":{"type":"rate_limit_error","message":"Too many requests"}}`},
		"capital":      {400, `{"Message":"Input is too long for requested model."}`, `{"type":"error","error":{"type":"invalid_request_error","message":"Input is too long for requested model."}}`},
		"no JSON":      {429, `<html>`, `{"type":"error","error":{"type":"rate_limit_error","message":"429 Too Many Requests"}}`},
		"whole answer": {200, `{"type":"message"}`, `{"type":"message"}`},
	} {
		if _, text, err := translated(tc.status, "application/json", []byte(tc.body)); err != nil || strings.TrimSpace(text) != tc.want {
			t.Errorf("%s: %s, %v; want %s", name, text, err, tc.want)
		}
	}
}

// FuzzStreamOfAWS: whatever comes, what is read of it is bounded by it, ends, and has whole events alone.
func FuzzStreamOfAWS(f *testing.F) {
	f.Add(chunk(f, `{"type":"message_stop"}`))
	f.Add(frame(f, `{"message":"no"}`, ":message-type", "exception", ":exception-type", "throttlingException"))
	f.Add(append(chunk(f, `{"type":"ping"}`), 0, 0, 1, 0))
	f.Add(binary.BigEndian.AppendUint32(nil, maxFrame+1))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, text, _ := translated(http.StatusOK, eventStream, body)
		if len(text) > 2*len(body)+2*maxMessage {
			t.Errorf("%d bytes of %d", len(text), len(body))
		}
		if text != "" && !strings.HasSuffix(text, "\n\n") {
			t.Errorf("the stream ends with %q", text)
		}
		for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
			if text != "" && (strings.Count(event, "\n") != 1 || !strings.HasPrefix(event, "event: ")) {
				t.Errorf("%q is no event", event)
			}
		}
	})
}
