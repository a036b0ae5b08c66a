// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"fmt"
	"strconv"

	json "github.com/go-json-experiment/json/v1"
)

// anthropicRetext replaces the last text block with the text. The others are left out, because no conversation may hold
// one that is empty, and the blocks after them get new numbers.
type anthropicRetext struct {
	text string
	// last is the number of the last text block, as it came.
	last int
	// numbers of blocks now, by their original numbers; omitted ones are below zero. out counts the omitted ones.
	numbers map[int]int
	out     int
}

const omitted = -1

func (r *anthropicRetext) see(data []byte) {
	var e struct {
		Type  string         `json:"type"`
		Index int            `json:"index"`
		Block anthropicBlock `json:"content_block"`
	}
	if json.Unmarshal(data, &e) == nil && e.Type == "content_block_start" && e.Block.Type == "text" {
		r.last = e.Index
	}
}

func (r *anthropicRetext) event(data []byte) (now []byte, more [][]byte, err error) {
	var e struct {
		Type  string         `json:"type"`
		Index int            `json:"index"`
		Block anthropicBlock `json:"content_block"`
		Delta struct {
			Type string `json:"type"`
		} `json:"delta"`
	}
	if json.Unmarshal(data, &e) != nil {
		return data, nil, nil //nolint:nilerr // nothing that is known is said
	}
	switch e.Type {
	case "content_block_start", "content_block_delta", "content_block_stop":
	default:
		return data, nil, nil
	}
	if e.Type == "content_block_start" {
		return r.begin(data, e.Index, e.Block.Type == "text")
	}
	number, known := r.numbers[e.Index]
	switch {
	case !known:
		return nil, nil, fmt.Errorf("block %d was never started", e.Index)
	case number == omitted, e.Index == r.last && e.Type == "content_block_delta":
		return nil, nil, nil
	}
	now, err = spliceValues(data, map[string][]byte{"/index": []byte(strconv.Itoa(number))})
	return now, nil, err
}

// begin a block.
func (r *anthropicRetext) begin(data []byte, index int, text bool) (now []byte, more [][]byte, err error) {
	if text && index != r.last {
		r.numbers[index] = omitted
		r.out++
		return nil, nil, nil
	}
	number := index - r.out
	r.numbers[index] = number
	values := map[string][]byte{"/index": []byte(strconv.Itoa(number))}
	if text {
		values["/content_block/text"] = []byte(`""`)
		more = [][]byte{fmt.Appendf(nil, `{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%s}}`, number, quoted(r.text))}
	}
	now, err = spliceValues(data, values)
	return now, more, err
}

func (r *anthropicRetext) whole(body []byte) ([]byte, error) {
	var m struct {
		Content []json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	kinds := make([]anthropicBlock, len(m.Content))
	for i, raw := range m.Content {
		if err := json.Unmarshal(raw, &kinds[i]); err != nil {
			return nil, err
		}
		if kinds[i].Type == "text" {
			r.last = i
		}
	}
	var blocks [][]byte
	for i, raw := range m.Content {
		if kinds[i].Type == "text" && i != r.last {
			continue
		}
		if kinds[i].Type == "text" {
			now, err := spliceValues(raw, map[string][]byte{"/text": quoted(r.text), "/citations": []byte("null")})
			if err != nil {
				return nil, err
			}
			raw = now
		}
		blocks = append(blocks, raw)
	}
	content := append(append([]byte("["), bytes.Join(blocks, []byte(","))...), ']')
	return spliceValues(body, map[string][]byte{"/content": content})
}
