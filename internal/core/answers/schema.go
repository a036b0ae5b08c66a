// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// mostMessage of a schema's objection, in bytes: paths in a schema may be long.
const mostMessage = 400

// mostSchema is the size of a schema, in bytes: as a template's text.
const mostSchema = 64 << 10

// schema is what an answer that is JSON must look like.
func schema(c Checks, text string) []Violation {
	if c.Schema == "" {
		return nil
	}
	compiled, err := compile(c.Schema)
	if err != nil { // of another version: templates are checked before they are in force
		return []Violation{{SkippedValidation, Major, fmt.Sprintf("The gateway cannot use the JSON schema of the answer: %v.", err)}}
	}
	var value any
	in := json.NewDecoder(strings.NewReader(text))
	if err := in.Decode(&value); err != nil {
		return []Violation{{IncorrectFormat, Major, "The answer is not JSON: give nothing but one JSON value, without words or a fence around it."}}
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return []Violation{{IncorrectFormat, Major, "Something follows the JSON of the answer: give nothing but one JSON value."}}
	}
	if err := compiled.Validate(value); err != nil {
		return []Violation{{IncorrectFormat, Major, "The JSON of the answer does not match its schema: " + shortened(placed(err.Error())) + "."}}
	}
	return nil
}

// additional is what the library says of a member that no schema is for; their names follow, which the model chose.
const additional = "unexpected additional properties"

// keywords of schemas, as the library begins an objection with them. What follows quotes the answer, except where told is true: there it is
// names and numbers of the schema.
var keywords = []struct {
	name string
	told bool
}{
	{"type", false}, {"enum", false}, {"const", false}, {"multipleOf", false}, {"minimum", false}, {"maximum", false}, {"exclusiveMinimum", false},
	{"exclusiveMaximum", false}, {"minLength", false}, {"maxLength", false}, {"pattern", false}, {"anyOf", false}, {"oneOf", false}, {"not", false},
	{"contains", false}, {"minContains", true}, {"maxContains", true}, {"minItems", true}, {"maxItems", true}, {"minProperties", true},
	{"maxProperties", true}, {"required", true},
}

// placed is the part of a schema's objection that names the place in the schema and the keyword. The rest quotes the answer, which may have
// a secret: messages of violations go to logs, to the journal and to the status of a Feature. What the library says before the keyword is
// the path in the schema, so that nothing of the answer comes before the first keyword.
func placed(message string) string {
	at, end, told := len(message), -1, false
	for _, k := range keywords {
		text := k.name + ": "
		if i := strings.Index(": "+message, ": "+text); i >= 0 && i < at {
			at, end, told = i, i+len(k.name), k.told
		}
	}
	switch i := strings.Index(message, additional); {
	case i >= 0 && i < at:
		return message[:i+len(additional)]
	case end < 0: // of another version of the library
		return "the schema's keywords say what it must have"
	case told:
		return message
	}
	if _, want, is := cutLast(message[end:], ", want "); is && message[at:end] == "type" {
		return message[:end] + ": want " + want
	}
	return message[:end]
}

// cutLast cuts a text at the last place of a separator.
func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}

// shortened for a user.
func shortened(message string) string {
	if len(message) > mostMessage {
		message = strings.ToValidUTF8(message[:mostMessage], "") + "…"
	}
	return message
}

// compile a schema whose cost is bounded.
func compile(text string) (*jsonschema.Resolved, error) {
	s, _, err := weighed(text)
	if err != nil {
		return nil, err
	}
	return s.Resolve(nil) // which loads nothing
}

// costOf a schema is how many values it has when every reference is written out: each of them looks at each value of an answer
// once at the most. A schema that leads back to itself has no such number, and one that leads elsewhere is not whole.
func costOf(text string) (int, error) {
	_, n, err := weighed(text)
	return n, err
}

// weighed reads a schema, and says what it costs. It weighs what the library has read and not the text: JSON is read into Go's
// structs whatever the case of a name, and a name may come twice.
func weighed(text string) (*jsonschema.Schema, int, error) {
	if len(text) > mostSchema {
		return nil, 0, fmt.Errorf("it has %d bytes, and the limit is %d: shorten it", len(text), mostSchema)
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, 0, errors.New("it is not an object: write one such as {\"type\": \"object\"}")
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, 0, err
	}
	switch s.Schema {
	case "", "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#":
	default:
		return nil, 0, fmt.Errorf("$schema is %q: use draft 2020-12 or draft-07", s.Schema)
	}
	read, err := json.Marshal(&s)
	if err != nil {
		return nil, 0, err
	}
	var root any
	if err := json.Unmarshal(read, &root); err != nil {
		return nil, 0, err
	}
	w := weigher{root: root, known: map[string]int{}, open: map[string]bool{}}
	n, err := w.value(root)
	if err == nil && n > mostCost {
		err = fmt.Errorf("it has %d values with every reference written out, and the limit is %d: simplify it", n, mostCost)
	}
	if err != nil {
		return nil, 0, err
	}
	// What was weighed is what is used.
	var same jsonschema.Schema
	return &same, n, json.Unmarshal(read, &same)
}

// weigher adds up the cost of a schema.
type weigher struct {
	root any
	// known are costs of what references lead to; open are the ones in progress.
	known map[string]int
	open  map[string]bool
}

// elsewhere are keywords that lead out of the schema, or to where it cannot be seen.
var elsewhere = []string{"$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"}

// perText is how many bytes of a text in a schema cost as much as a value.
const perText = 64

// value with everything in it.
func (w weigher) value(v any) (int, error) {
	inside, total := []any(nil), 1
	switch v := v.(type) {
	case string:
		total += len(v) / perText
	case []any:
		inside = v
	case map[string]any:
		n, err := w.keywords(v)
		if err != nil {
			return 0, err
		}
		inside, total = slices.Collect(maps.Values(v)), total+n
	}
	for _, e := range inside {
		n, err := w.value(e)
		if err != nil {
			return 0, err
		}
		total = min(total+n, math.MaxInt32)
	}
	return total, nil
}

// keywords that cost more than the value that they have, and unusable keywords.
func (w weigher) keywords(object map[string]any) (int, error) {
	for _, k := range elsewhere {
		if _, is := object[k].(string); is {
			return 0, fmt.Errorf("it has the keyword %s: use $ref with $defs", k)
		}
	}
	if _, is := object["uniqueItems"].(bool); is {
		return 0, errors.New("it has the keyword uniqueItems, which takes too long for long lists: leave it out")
	}
	total := 0
	if ref, is := object["$ref"].(string); is {
		n, err := w.reference(ref)
		if err != nil {
			return 0, err
		}
		total += n
	}
	by, _ := object["patternProperties"].(map[string]any)
	expressions := slices.Collect(maps.Keys(by))
	if p, is := object["pattern"].(string); is {
		expressions = append(expressions, p)
	}
	for _, p := range expressions {
		n, err := instructions(p)
		if err != nil {
			return 0, fmt.Errorf("pattern %q: %w", p, err)
		}
		total = min(total+n, math.MaxInt32)
	}
	return total, nil
}

// reference inside the schema, such as #/$defs/item.
func (w weigher) reference(ref string) (int, error) {
	path, local := strings.CutPrefix(ref, "#/")
	if !local || strings.Contains(ref, "%") { // an escape stands for another name
		return 0, fmt.Errorf("$ref %q leads out of it: use one such as #/$defs/item", ref)
	}
	if n, known := w.known[ref]; known {
		return n, nil
	}
	if w.open[ref] {
		return 0, fmt.Errorf("$ref %q leads back to itself: write down as many levels as answers have", ref)
	}
	at := w.root
	for step := range strings.SplitSeq(path, "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch in := at.(type) {
		case map[string]any:
			var there bool
			if at, there = in[step]; !there {
				return 0, fmt.Errorf("$ref %q leads nowhere", ref)
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return 0, fmt.Errorf("$ref %q leads nowhere", ref)
			}
			at = in[i]
		default:
			return 0, fmt.Errorf("$ref %q leads nowhere", ref)
		}
	}
	w.open[ref] = true
	n, err := w.value(at)
	w.open[ref] = false
	w.known[ref] = n
	return n, err
}

// Compact is the stored form of a schema: equal schemas have the same text.
func Compact(schema []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, schema) != nil {
		return string(schema)
	}
	return b.String()
}
