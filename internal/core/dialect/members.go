// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Recast is a request without some members of its object, and with new ones, which are JSON such as "name":"value", before the rest. The
// rest stays the same byte by byte. ReadRequest must have read the body.
func Recast(body []byte, without []string, with string) []byte {
	if len(without) == 0 && with == "" {
		return body
	}
	out := append(make([]byte, 0, len(body)+len(with)+2), '{')
	out = append(out, with...)
	in := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	if _, err := in.ReadToken(); err != nil {
		return body
	}
	for in.PeekKind() == '"' {
		name, err := in.ReadValue()
		if err != nil {
			return body
		}
		from := int(in.InputOffset()) - len(name)
		left := slices.ContainsFunc(without, func(w string) bool { return isName(name, w) })
		if err := in.SkipValue(); err != nil {
			return body
		}
		if left {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, body[from:in.InputOffset()]...)
	}
	return append(out, '}')
}

// isName says whether a quoted text is a name, however it is escaped.
func isName(quoted jsontext.Value, name string) bool {
	text, err := jsontext.AppendUnquote(nil, quoted)
	return err == nil && string(text) == name
}
