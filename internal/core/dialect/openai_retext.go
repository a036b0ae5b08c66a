// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"fmt"

	json "github.com/go-json-experiment/json/v1"
)

// responsesRetext replaces the last part of text. The others become empty.
type responsesRetext struct {
	text string
	// last is the part that has the text. Told says that its stream has had it.
	last part
	told bool
}

// part of an item of an answer.
type part struct{ item, content int }

// say is what a part says from now on.
func (r *responsesRetext) say(p part) []byte {
	if p == r.last {
		return quoted(r.text)
	}
	return []byte(`""`)
}

// items changes the parts of a message; the pointer leads to the item.
func (r *responsesRetext) message(values map[string][]byte, i responsesItem, number int, pointer string) {
	if i.Type != "message" {
		return
	}
	for n, c := range i.Content {
		if c.Type == "output_text" {
			at := fmt.Sprintf("%s/content/%d", pointer, n)
			values[at+"/text"], values[at+"/annotations"], values[at+"/logprobs"] = r.say(part{number, n}), []byte("[]"), []byte("[]")
		}
	}
}

// follows says whether a part comes after another one.
func (p part) follows(o part) bool {
	return p.item > o.item || p.item == o.item && p.content > o.content
}

// note a part of text.
func (r *responsesRetext) note(p part) {
	if p.follows(r.last) {
		r.last = p
	}
}

// noteItem notes the parts of a message.
func (r *responsesRetext) noteItem(i responsesItem, number int) {
	if i.Type != "message" {
		return
	}
	for n, c := range i.Content {
		if c.Type == "output_text" && c.Text != "" {
			r.note(part{number, n})
		}
	}
}

func (r *responsesRetext) see(data []byte) {
	var e struct {
		Type    string        `json:"type"`
		Item    int           `json:"output_index"`
		Content int           `json:"content_index"`
		Whole   responsesItem `json:"item"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "response.output_text.delta":
		r.note(part{e.Item, e.Content})
	case "response.output_item.done":
		r.noteItem(e.Whole, e.Item)
	}
}

func (r *responsesRetext) event(data []byte) (now []byte, more [][]byte, err error) {
	var e struct {
		Type     string          `json:"type"`
		Item     int             `json:"output_index"`
		Content  int             `json:"content_index"`
		Whole    responsesItem   `json:"item"`
		Response json.RawMessage `json:"response"`
		Part     struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"part"`
	}
	if json.Unmarshal(data, &e) != nil {
		return data, nil, nil //nolint:nilerr // nothing that is known is said
	}
	values := map[string][]byte{}
	switch p := (part{e.Item, e.Content}); e.Type {
	case "response.output_text.delta":
		text := r.say(p)
		if p != r.last || r.told {
			return nil, nil, nil
		}
		r.told = true
		values["/delta"], values["/logprobs"] = text, []byte("[]")
	case "response.output_text.annotation.added":
		return nil, nil, nil
	case "response.output_text.done":
		values["/text"], values["/logprobs"] = r.say(p), []byte("[]")
	case "response.content_part.done":
		if e.Part.Type == "output_text" {
			values["/part/text"], values["/part/annotations"], values["/part/logprobs"] = r.say(p), []byte("[]"), []byte("[]")
		}
	case "response.output_item.done":
		r.message(values, e.Whole, e.Item, "/item")
	case "response.completed", "response.incomplete":
		var whole response
		if json.Unmarshal(e.Response, &whole) != nil {
			return data, nil, nil //nolint:nilerr // nothing that is known is said
		}
		for n, item := range whole.Output {
			r.message(values, item, n, fmt.Sprintf("/response/output/%d", n))
		}
	}
	if len(values) == 0 {
		return bytes.Clone(data), nil, nil
	}
	now, err = spliceValues(data, values)
	return now, nil, err
}

func (r *responsesRetext) whole(body []byte) ([]byte, error) {
	var whole response
	if err := json.Unmarshal(body, &whole); err != nil {
		return nil, err
	}
	for n, item := range whole.Output {
		r.noteItem(item, n)
	}
	values := map[string][]byte{}
	for n, item := range whole.Output {
		r.message(values, item, n, fmt.Sprintf("/output/%d", n))
	}
	return spliceValues(body, values)
}

// chatRetext replaces the first piece of the first choice. The others become empty.
type chatRetext struct {
	text string
	told bool
}

func (*chatRetext) see([]byte) {}

func (r *chatRetext) event(data []byte) (now []byte, more [][]byte, err error) {
	now, err = r.choices(data, func(n int) string { return fmt.Sprintf("/choices/%d/delta/content", n) })
	return now, nil, err
}

func (r *chatRetext) whole(body []byte) ([]byte, error) {
	return r.choices(body, func(n int) string { return fmt.Sprintf("/choices/%d/message/content", n) })
}

func (r *chatRetext) choices(data []byte, pointer func(int) string) ([]byte, error) {
	var c chat
	if json.Unmarshal(data, &c) != nil {
		return bytes.Clone(data), nil //nolint:nilerr // such as [DONE]
	}
	values := map[string][]byte{}
	for n, choice := range c.Choices {
		if choice.Index != 0 || choice.Delta.Content+choice.Message.Content == "" {
			continue
		}
		values[fmt.Sprintf("/choices/%d/logprobs", n)] = []byte("null")
		if values[pointer(n)] = []byte(`""`); !r.told {
			values[pointer(n)], r.told = quoted(r.text), true
		}
	}
	return spliceValues(data, values)
}
