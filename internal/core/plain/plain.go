// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plain makes texts that an agent, a model or a repository chose fit for users and for objects. It cuts them to the stored size,
// and escapes them so that they cannot control a terminal.
package plain

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Writer passes on text that an agent chose, so that it cannot control a terminal or deceive a reader. It escapes invisible characters as
// JSON does, and JSON stays JSON. Line ends and tabs stay.
type Writer struct {
	out *bufio.Writer
	// rest is the beginning of a character whose end has not come yet.
	rest []byte
}

// NewWriter makes a Writer.
func NewWriter(w io.Writer) *Writer { return &Writer{out: bufio.NewWriter(w)} }

// Write implements io.Writer.
func (p *Writer) Write(b []byte) (int, error) {
	text := slices.Concat(p.rest, b)
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		if err := p.put(r, text[:size]); err != nil {
			return 0, err
		}
		text = text[size:]
	}
	p.rest = append([]byte(nil), text...)
	return len(b), nil
}

func (p *Writer) put(r rune, bytes []byte) error {
	_, err := p.out.Write(appendRune(nil, r, bytes))
	return err
}

// Append a whole text to another one, as a Writer writes it.
func Append(to, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		to = appendRune(to, r, text[:size])
		text = text[size:]
	}
	return to
}

func appendRune(to []byte, r rune, bytes []byte) []byte {
	broken := r == utf8.RuneError && len(bytes) == 1
	switch {
	case broken:
		return fmt.Appendf(to, `\x%02x`, bytes[0])
	case r == '\n' || r == '\t' || r == ' ' || Visible(r):
		return append(to, bytes...)
	}
	for _, unit := range utf16.AppendRune(nil, r) {
		to = fmt.Appendf(to, `\u%04x`, unit)
	}
	return to
}

// Flush writes the rest.
func (p *Writer) Flush() error {
	for _, b := range p.rest {
		if err := p.put(utf8.RuneError, []byte{b}); err != nil {
			return err
		}
	}
	p.rest = nil
	return p.out.Flush()
}
