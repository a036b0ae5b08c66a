// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// What the lists of several dialects have in common.

// streamed is the member that asks for a stream, which some servers read out of "true" and 1, too.
var streamed = map[string]shape{"stream": {never: "write it as true or false", when: isNoBool}}

// isText, isSet, isNoBool and isFilled tell values apart: isSet is any but false, and isFilled any but an empty list or object.
func isText(value []byte) bool { return value[0] == '"' }
func isSet(value []byte) bool  { return value[0] != 'f' }
func isNoBool(value []byte) bool {
	return value[0] != 't' && value[0] != 'f'
}
func isFilled(value []byte) bool {
	return value[0] != '[' && value[0] != '{' || space(value, 1) < len(value)-1
}

// fetched says whether a provider would read an address to have the value: anything but a text that holds its data, as
// https://www.rfc-editor.org/rfc/rfc2397 defines it. A list does so where one of its texts does.
func fetched(value []byte) bool {
	switch value[0] {
	case '[':
		for at := 1; at < len(value); { // in one pass, however deep the lists in it are nested
			switch value[at] {
			case '"':
				end := skipText(value, at)
				if fetched(value[at:end]) {
					return true
				}
				at = end
			case '{':
				at = skip(value, at)
			default:
				at++
			}
		}
		return false
	case '"':
		if len(value) == len(`""`) {
			return false
		}
		head := value[:min(len(value), 64)]
		if bytes.IndexByte(head, '\\') < 0 {
			return len(head) < 6 || !strings.EqualFold(string(head[1:6]), "data:")
		}
		plain, _ := text(value)
		return len(plain) < 5 || !strings.EqualFold(plain[:5], "data:")
	}
	return false
}

// fetchedText says so of a value that is a text, or a list of texts: no known reader accepts anything else.
func fetchedText(value []byte) bool {
	return value[0] == '{' || value[0] == '[' && bytes.IndexByte(value, '{') >= 0 || fetched(value)
}

// fetchedData says so of a value that some providers take as the data itself, and others as an address.
func fetchedData(value []byte) bool {
	if value[0] != '"' {
		return fetchedText(value)
	}
	data := value[1 : len(value)-1]
	if bytes.IndexByte(data, '\\') >= 0 { // an address has its colon and its dots in escapes
		data, _ = jsontext.AppendUnquote(nil, value)
	}
	for _, c := range data {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '+', c == '/', c == '=', c == '-', c == '_', c == '\n', c == '\r':
		default:
			return fetched(value)
		}
	}
	return false
}

// lacks says that an object has none of some members, or only null values for them.
func lacks(names ...string) func(object []byte) bool {
	return func(object []byte) bool {
		for _, name := range names {
			if value, has := valueOf(object, 0, name); has && value[0] != 'n' && (value[0] != '"' || len(value) > len(`""`)) {
				return false
			}
		}
		return true
	}
}

// mentions says that a value has the word in one of its texts.
func mentions(word string) func(value []byte) bool {
	return func(value []byte) bool {
		return bytes.Contains(value, []byte(word)) || bytes.IndexByte(value, '\\') >= 0
	}
}

// trimDigits takes a date off the end of a name, which has the given number of digits.
func trimDigits(name string, digits int) string {
	head := len(name) - digits
	if head < 1 || strings.Trim(name[head:], "0123456789") != "" {
		return name
	}
	return name[:head]
}
