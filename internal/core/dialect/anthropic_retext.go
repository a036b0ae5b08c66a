// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// anthropicRetext puts the text in the place of the first text block. The others are left out, because no conversation may hold
// one that is empty, and the blocks after them get new numbers.
type anthropicRetext struct {
	text string
	// first is the number of the first text block, as it came; said says that there is one.
	first int
	said  bool
	// numbers of blocks now, by those that they came with; omitted ones are below zero. out counts those.
	numbers map[int]int
	out     int
}

const omitted = -1

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
		return nil, nil, fmt.Errorf("block %d has no beginning", e.Index)
	case number == omitted, r.said && e.Index == r.first && e.Type == "content_block_delta":
		return nil, nil, nil
	}
	now, err = spliceValues(data, map[string][]byte{"/index": []byte(strconv.Itoa(number))})
	return now, nil, err
}

// begin a block.
func (r *anthropicRetext) begin(data []byte, index int, text bool) (now []byte, more [][]byte, err error) {
	if text && r.said {
		r.numbers[index] = omitted
		r.out++
		return nil, nil, nil
	}
	number := index - r.out
	r.numbers[index] = number
	values := map[string][]byte{"/index": []byte(strconv.Itoa(number))}
	if text {
		r.first, r.said = index, true
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
	var blocks [][]byte
	for _, raw := range m.Content {
		var b anthropicBlock
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, err
		}
		if b.Type == "text" {
			if r.said {
				continue
			}
			r.said = true
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
