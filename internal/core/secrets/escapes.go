// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// unescaped is a text in which characters stand for themselves that JSON may write by their numbers, and some writers do: Google's and
// Java's write `\u003d` for "=". Other escapes stay as they are.
type unescaped struct {
	text []byte
	// escapes, in the order of the text.
	escapes []escape
}

// escape of a character: where that stands in the text, and where what stands behind it is in the text as it is written.
type escape struct{ at, behind int }

// unescape what is written of ASCII by numbers, also in JSON in a string of JSON, where several backslashes stand before it; nil where there is nothing.
func unescape(text []byte) *unescaped {
	const digits = len("003d")
	var u *unescaped
	done := 0
	for from := 0; ; {
		next := bytes.Index(text[from:], []byte(`\u00`))
		if next < 0 {
			break
		}
		begin, number := from+next, from+next+len(`\u`)
		from = number
		if number+digits > len(text) {
			break
		}
		c, err := strconv.ParseUint(string(text[number:number+digits]), 16, 8)
		if err != nil || c >= 0x7f || c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			continue
		}
		for begin > done && text[begin-1] == '\\' {
			begin--
		}
		if u == nil {
			u = &unescaped{text: make([]byte, 0, len(text))}
		}
		u.text = append(u.text, text[done:begin]...)
		from = number + digits
		u.escapes = append(u.escapes, escape{len(u.text), from})
		u.text = append(u.text, byte(c))
		done = from
	}
	if u != nil {
		u.text = append(u.text, text[done:]...)
	}
	return u
}

// locate gives the place of a secret in the text as it is written.
func (u *unescaped) locate(p Place) Place {
	p.From, p.To = u.written(p.From), u.written(p.To)
	return p
}

// written is where a character, or its escape, begins in the text as it is written.
func (u *unescaped) written(at int) int {
	i, _ := slices.BinarySearchFunc(u.escapes, at, func(e escape, at int) int { return cmp.Compare(e.at, at) })
	if i == 0 {
		return at
	}
	last := u.escapes[i-1]
	return last.behind + at - last.at - 1
}
