// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"bytes"

	json "github.com/go-json-experiment/json/v1"
)

// maxEvent bounds one event of a stream, and MaxWhole an answer that is not a stream, in bytes. What is larger is not read:
// Responses repeats a whole answer in its last event.
const (
	maxEvent = 4 << 20
	MaxWhole = 8 << 20
)

// Decoder reads the messages of one dialect.
type Decoder interface {
	// Event of a stream, by its JSON.
	Event(a *Answer, data []byte)
	// Whole is an answer that is not a stream.
	Whole(a *Answer, body []byte)
}

// Reader reads an answer while its bytes pass by. Make it with NewReader.
type Reader struct {
	decoder  Decoder
	streamed bool
	answer   Answer
	// buffer holds the line that has not ended, or all of an answer that is not a stream.
	buffer []byte
	// data is what the lines of an event have said.
	data []byte
	// skips the rest of an event, or answer, that is too large.
	skips bool
	// whole says that the whole answer, which is not a stream, was read.
	whole bool
	// says that something of the answer has come since Says was called last.
	says bool
}

// NewReader reads an answer that is a stream of server-sent events, or one JSON document.
func NewReader(d Decoder, streamed bool) *Reader { return &Reader{decoder: d, streamed: streamed} }

// Write takes the next bytes. It keeps no reference to them, and never fails.
func (r *Reader) Write(p []byte) {
	if !r.streamed {
		r.says = r.says || len(bytes.TrimSpace(p)) > 0
		if r.skips = r.skips || len(r.buffer)+len(p) > MaxWhole; r.skips {
			r.buffer, r.answer.Cut = nil, true
			return
		}
		r.buffer = append(r.buffer, p...)
		return
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			r.hold(p)
			r.says = r.says || len(r.buffer) > maxLive || r.skips
			return
		}
		r.hold(p[:end])
		p = p[end+1:]
		r.line(bytes.TrimSuffix(r.buffer, []byte("\r")))
		r.buffer = r.buffer[:0]
	}
}

// hold adds to the line that has not ended.
func (r *Reader) hold(p []byte) {
	if r.skips = r.skips || len(r.buffer)+len(r.data)+len(p) > maxEvent; r.skips {
		r.buffer, r.data, r.answer.Cut = r.buffer[:0], r.data[:0], true
		return
	}
	r.buffer = append(r.buffer, p...)
}

// line of a stream (https://html.spec.whatwg.org/multipage/server-sent-events.html). The name of an event is in its data
// too, in every dialect.
func (r *Reader) line(line []byte) {
	if len(line) == 0 && !r.skipping() {
		if len(r.data) > 0 {
			r.says = r.says || !live(r.data)
			r.decoder.Event(&r.answer, r.data)
			r.data = r.data[:0]
		}
		return
	}
	data, is := bytes.CutPrefix(line, []byte("data:"))
	if !is {
		return
	}
	if len(r.data) > 0 {
		r.data = append(r.data, '\n')
	}
	r.data = append(r.data, bytes.TrimPrefix(data, []byte(" "))...)
}

// maxLive is the most that an event may have that only keeps the connection open, in bytes. Known ones have a quarter of it.
const maxLive = 256

// live says whether an event only keeps the connection open: "ping" of Anthropic (https://docs.claude.com/en/docs/build-with-claude/streaming), and
// "keepalive" of OpenAI (https://github.com/openai/openai-node/issues/1964). Others do so with comments, which are not events.
func live(data []byte) bool {
	if len(data) > maxLive || !bytes.Contains(data, []byte(`"ping"`)) && !bytes.Contains(data, []byte(`"keepalive"`)) {
		return false
	}
	var event struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(data, &event) == nil && (event.Type == "ping" || event.Type == "keepalive")
}

// Says says whether a part of the answer has arrived since the last call of Says. What only keeps the connection open does not count:
// comments, pings, and blanks before a document.
func (r *Reader) Says() bool {
	says := r.says
	r.says = false
	return says
}

// skipping ends with the line that was too long; what was read of its event is gone.
func (r *Reader) skipping() bool {
	was := r.skips
	r.skips = false
	return was
}

// Size is how much memory the reader has taken, in bytes.
func (r *Reader) Size() int {
	return cap(r.buffer) + cap(r.data) + cap(r.answer.Text) + r.answer.argued
}

// Whole reads once an answer that is not a stream. The caller owns its bytes, and Whole keeps no reference to them.
func (r *Reader) Whole(body []byte) *Answer {
	if r.whole {
		return &r.answer
	}
	r.whole = true
	if len(body) > MaxWhole {
		r.answer.Cut = true
	} else if len(body) > 0 {
		r.decoder.Whole(&r.answer, body)
	}
	return &r.answer
}

// Answer as far as it was read.
func (r *Reader) Answer() *Answer { return &r.answer }

// Close ends the input, and returns the answer.
func (r *Reader) Close() *Answer {
	if !r.streamed && len(r.buffer) > 0 {
		r.decoder.Whole(&r.answer, r.buffer)
	}
	if r.streamed && len(r.buffer)+len(r.data) > 0 { // the last event ends with the stream
		r.Write([]byte("\n\n"))
	}
	r.buffer, r.data = nil, nil
	return &r.answer
}
