// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"fmt"

	json "github.com/go-json-experiment/json/v1"
)

// geminiRetext replaces the first part with text of the first candidate. The others are left out, unless they have a
// signature, which has to come back.
type geminiRetext struct {
	text string
	told bool
}

func (*geminiRetext) see([]byte) {}

func (r *geminiRetext) event(data []byte) (now []byte, more [][]byte, err error) {
	now, err = r.whole(data)
	return now, nil, err
}

func (r *geminiRetext) whole(body []byte) ([]byte, error) {
	var response struct {
		Candidates []struct {
			Index   int `json:"index"`
			Content struct {
				Parts json.RawMessage `json:"parts"`
			} `json:"content"`
		} `json:"candidates"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return nil, err
	}
	values := map[string][]byte{}
	for n, c := range response.Candidates {
		if c.Index != 0 {
			continue
		}
		parts, changed, err := r.parts(c.Content.Parts)
		if err != nil {
			return nil, err
		}
		if changed {
			at := fmt.Sprintf("/candidates/%d/", n)
			values[at+"content/parts"] = parts
			for _, of := range []string{"citationMetadata", "groundingMetadata", "logprobsResult"} { // which speak of the text
				values[at+of] = []byte("null")
			}
		}
	}
	return spliceValues(body, values)
}

// parts of a candidate.
func (r *geminiRetext) parts(list json.RawMessage) (now []byte, changed bool, err error) {
	var raw []json.RawMessage
	if len(list) == 0 || json.Unmarshal(list, &raw) != nil {
		return nil, false, nil //nolint:nilerr // nothing that is known is said
	}
	kept := make([][]byte, 0, len(raw))
	for _, data := range raw {
		var p geminiPart
		if json.Unmarshal(data, &p) != nil || p.said() == "" {
			kept = append(kept, data)
			continue
		}
		changed = true
		text := []byte(`""`)
		if !r.told {
			text, r.told = quoted(r.text), true
		} else if !p.signed() {
			continue
		}
		part, err := spliceValues(data, map[string][]byte{"/text": text})
		if err != nil {
			return nil, false, err
		}
		kept = append(kept, part)
	}
	if len(kept) == 0 { // clients take no content without parts
		kept = [][]byte{[]byte(`{"text":""}`)}
	}
	return append(append([]byte("["), bytes.Join(kept, []byte(","))...), ']'), changed, nil
}
