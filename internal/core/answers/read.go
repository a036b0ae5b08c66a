// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"bytes"
	"encoding/json"
)

// Read checks JSON by a schema, and reads it into a value. The objection is empty if it has; otherwise it says to the model what is wrong. The value gets exactly
// what the schema has checked: if an object has a name twice, nothing of the first member, and a whole number however it is written.
func Read(schema string, text json.RawMessage, into any) (objection string) {
	shape := Rules{Checks: []Checks{{Schema: schema}}}
	if v := shape.Judge(string(text), false); v.Rejected {
		return Summary(v.Violations)
	}
	const other = "The answer is not what the schema asks for: write whole numbers without a fraction, and no very large ones."
	var checked any
	if err := json.Unmarshal(text, &checked); err != nil {
		return other
	}
	text, err := json.Marshal(checked)
	if err != nil {
		return other
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return other
	}
	return ""
}
