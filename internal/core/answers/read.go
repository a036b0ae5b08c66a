// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"bytes"
	"encoding/json"
)

// Read checks JSON by a schema, and reads it into a value. The objection is empty if that works; otherwise it says to the model what is wrong. The value gets exactly
// what the schema has checked: of two members with one name the last, and a whole number however it is written. Members that are null count as left out.
func Read(schema string, text json.RawMessage, into any) (objection string) {
	var said any
	if err := json.Unmarshal(text, &said); err == nil {
		var plain bytes.Buffer
		out := json.NewEncoder(&plain)
		out.SetEscapeHTML(false)
		leaveOut(said)
		if err := out.Encode(said); err == nil { // as it does for what comes from JSON
			text = plain.Bytes()
		}
	}
	shape := Rules{Checks: []Checks{{Schema: schema}}}
	if v := shape.Judge(string(text), false); v.Rejected {
		return Summary(v.Violations)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return "The answer is not what the schema asks for: write whole numbers without a fraction, and no very large ones."
	}
	return ""
}

// leaveOut removes the members that are null.
func leaveOut(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil {
				delete(v, name)
			}
			leaveOut(member)
		}
	case []any:
		for _, member := range v {
			leaveOut(member)
		}
	}
}
