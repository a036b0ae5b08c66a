// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// spliceValues replaces values of a JSON text and leaves every other byte as it is. Each value stands under the JSON pointer of
// where it goes, such as /choices/0/message; what is not there stays away.
func spliceValues(text []byte, values map[string][]byte) ([]byte, error) {
	s := splicer{
		in:   jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)),
		text: text, values: values, on: map[string]bool{},
	}
	for pointer := range values {
		for i := range pointer {
			if pointer[i] == '/' {
				s.on[pointer[:i]] = true
			}
		}
	}
	if err := s.value(""); err != nil {
		return nil, fmt.Errorf("the answer is not JSON: %w", err)
	}
	return append(s.out, text[s.done:]...), nil
}

type splicer struct {
	in     *jsontext.Decoder
	text   []byte
	values map[string][]byte
	// on has the pointers on the way to a value; nothing else is looked into.
	on map[string]bool
	// out has what was written of the text up to done.
	out  []byte
	done int
}

func (s *splicer) value(pointer string) error {
	if value, changes := s.values[pointer]; changes {
		old, err := s.in.ReadValue()
		if err != nil {
			return err
		}
		to := int(s.in.InputOffset())
		s.out = append(append(s.out, s.text[s.done:to-len(old)]...), value...)
		s.done = to
		return nil
	}
	kind := s.in.PeekKind()
	if kind != '{' && kind != '[' || !s.on[pointer] {
		return s.in.SkipValue()
	}
	if _, err := s.in.ReadToken(); err != nil {
		return err
	}
	for i := 0; s.in.PeekKind() != '}' && s.in.PeekKind() != ']'; i++ {
		name := strconv.Itoa(i)
		if kind == '{' {
			token, err := s.in.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
		}
		if err := s.value(pointer + "/" + name); err != nil {
			return err
		}
	}
	_, err := s.in.ReadToken()
	return err
}

// quoted is a text as a JSON string.
func quoted(text string) []byte { return []byte(`"` + inside(text) + `"`) }
