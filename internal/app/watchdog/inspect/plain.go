// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
)

// plainWriter passes text on that an agent chose, so that no terminal acts on it and no reader is deceived: characters
// that are not seen where they stand come out as JSON would escape them, and JSON stays JSON. Line ends and tabs stay.
type plainWriter struct {
	out *bufio.Writer
	// rest is the beginning of a character whose end has not come yet.
	rest []byte
}

func newPlainWriter(w io.Writer) *plainWriter { return &plainWriter{out: bufio.NewWriter(w)} }

// Write implements io.Writer.
func (p *plainWriter) Write(b []byte) (int, error) {
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

func (p *plainWriter) put(r rune, bytes []byte) error {
	broken := r == utf8.RuneError && len(bytes) == 1
	if !broken && (r == '\n' || r == '\t' || r == ' ' || judge.Visible(r)) {
		_, err := p.out.Write(bytes)
		return err
	}
	if broken {
		_, err := fmt.Fprintf(p.out, `\x%02x`, bytes[0])
		return err
	}
	for _, unit := range utf16.AppendRune(nil, r) {
		if _, err := fmt.Fprintf(p.out, `\u%04x`, unit); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes what is left.
func (p *plainWriter) Flush() error {
	for _, b := range p.rest {
		if err := p.put(utf8.RuneError, []byte{b}); err != nil {
			return err
		}
	}
	p.rest = nil
	return p.out.Flush()
}
