// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"errors"
	"fmt"

	json "github.com/go-json-experiment/json/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// retexter replaces the text of an answer in the form of one dialect.
type retexter interface {
	// see an event, before any is changed: the text goes where the last one was, which clients show as the answer.
	see(data []byte)
	// event of a stream, by its JSON: the new event, and events that follow it. A nil event is left out.
	event(data []byte) (now []byte, more [][]byte, err error)
	// whole answer that is not a stream.
	whole(body []byte) ([]byte, error)
}

// Retext replaces the text of an answer in the bytes that a provider has sent; thoughts, usage and everything else stay the same. It fails
// if the result does not have the new text: the answer is then unusable.
func (d Dialect) Retext(body []byte, streamed bool, text string) ([]byte, error) {
	r := d.retext(text)
	var now []byte
	var err error
	if streamed {
		if n := len(body); n > 0 && body[n-1] != '\n' || n > 1 && !bytes.HasSuffix(bytes.ReplaceAll(body[max(0, n-4):], []byte("\r"), nil), []byte("\n\n")) {
			body = append(bytes.Clone(body), "\n\n"...) // the last event ends with the stream
		}
		seen := seer{r}
		if _, err = retextEvents(body, seen); err == nil {
			now, err = retextEvents(body, r)
		}
	} else {
		now, err = r.whole(body)
	}
	if err != nil {
		return nil, err
	}
	read := func(body []byte) *conversation.Answer {
		in := conversation.NewReader(d.Answer(), streamed)
		in.Write(body)
		return in.Close()
	}
	// What agents do with an answer depends on more than its text.
	was, is := read(body), read(now)
	if string(is.Text) != text || is.Stop != was.Stop || is.Ended != was.Ended || is.Acts != was.Acts || is.Usage != was.Usage {
		return nil, errors.New("the answer does not have the form that is known of this dialect")
	}
	return now, nil
}

// seer only looks.
type seer struct{ retexter }

func (s seer) event(data []byte) (now []byte, more [][]byte, err error) {
	s.see(data)
	return nil, nil, nil
}

// retextEvents goes through a stream of server-sent events. One that has not ended is none.
func retextEvents(body []byte, r retexter) ([]byte, error) {
	out := make([]byte, 0, len(body))
	var e serverEvent
	for len(body) > 0 {
		line, rest, ended := bytes.Cut(body, []byte("\n"))
		if !ended {
			break
		}
		body = rest
		if !e.take(bytes.TrimSuffix(line, []byte("\r"))) {
			continue
		}
		var err error
		if out, err = e.retext(out, r); err != nil {
			return nil, err
		}
		e = serverEvent{data: e.data[:0]}
	}
	return out, nil
}

// serverEvent is an event under way: its data, and its other lines.
type serverEvent struct {
	lines [][]byte
	data  []byte
}

// take a line; whole says that it ends the event.
func (e *serverEvent) take(line []byte) (whole bool) {
	part, isData := bytes.CutPrefix(line, []byte("data:"))
	switch {
	case isData && len(e.data) > 0:
		e.data = append(e.data, '\n')
		fallthrough
	case isData:
		e.data = append(e.data, bytes.TrimPrefix(part, []byte(" "))...)
	case len(line) > 0:
		e.lines = append(e.lines, line)
	}
	return len(line) == 0
}

// retext appends the new form of the event. What has no data, such as a comment, stays as it is.
func (e *serverEvent) retext(out []byte, r retexter) ([]byte, error) {
	var now []byte
	var more [][]byte
	if len(e.data) > 0 {
		var err error
		if now, more, err = r.event(e.data); err != nil {
			return nil, err
		}
	}
	if now != nil || len(e.data) == 0 {
		for _, l := range e.lines {
			out = append(append(out, l...), '\n')
		}
	}
	switch {
	case now != nil:
		lines := bytes.ReplaceAll(now, []byte("\n"), []byte("\ndata: "))
		out = append(append(append(out, "data: "...), lines...), "\n\n"...)
	case len(e.data) == 0:
		out = append(out, '\n')
	}
	for _, m := range more {
		out = append(append(append(out, named(m)...), m...), "\n\n"...)
	}
	return out, nil
}

// named is the beginning of an event that is added, with its name where the dialect's events have one: that is their type.
func named(data []byte) string {
	if kind := kindOf(data); kind != "" {
		return fmt.Sprintf("event: %s\ndata: ", kind)
	}
	return "data: "
}

// kindOf is the type of an event that says so.
func kindOf(data []byte) string {
	var e struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(data, &e) // anything but an object has none
	return e.Type
}
