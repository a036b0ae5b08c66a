// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// pieces are a text that a stream of events gives in pieces: the strings that stand at the same place of one event after
// the other, as JSON has them. Models answer so, some letters at a time.
type pieces struct {
	text  []byte
	parts []piece
}

// piece of a text: where it begins there, and where it stands in the stream.
type piece struct{ begin, from, to int }

// piecesOf are all texts that a stream gives in more than one piece, in the order in which they begin. Events are lines with
// an object of JSON after "data:"; what is none of these is passed over.
func piecesOf(stream []byte) []*pieces {
	var all []*pieces
	byPlace := map[string]*pieces{}
	offset, decoder := 0, new(jsontext.Decoder)
	for line := range bytes.Lines(stream) {
		from := offset
		offset += len(line)
		data, is := bytes.CutPrefix(line, []byte("data:"))
		if !is {
			continue
		}
		parts, index := stringsOf(decoder, data)
		for _, s := range parts {
			place := s.pointer + index
			p := byPlace[place]
			if p == nil {
				p = &pieces{}
				byPlace[place], all = p, append(all, p)
			}
			begin := from + len(line) - len(data) + s.from
			p.parts = append(p.parts, piece{len(p.text), begin, begin + len(s.text)})
			p.text = append(p.text, s.text...)
		}
	}
	more := all[:0]
	for _, p := range all {
		if len(p.parts) > 1 {
			more = append(more, p)
		}
	}
	return more
}

// stringOf is a string in an event: its place, where it begins there, and what stands between the quotes.
type stringOf struct {
	pointer string
	from    int
	text    []byte
}

// stringsOf are the strings of an object, without the names of members. The index is that of all numbers that say which of
// several texts is meant. Of what is not JSON nothing is found. The decoder is used again for each object: a stream has thousands.
func stringsOf(d *jsontext.Decoder, data []byte) (list []stringOf, index string) {
	d.Reset(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		kind := d.PeekKind()
		parent, n := d.StackIndex(d.StackDepth())
		isName := parent == jsontext.KindBeginObject && n%2 == 0
		switch kind {
		case jsontext.KindString, jsontext.KindNumber:
			value, err := d.ReadValue()
			if err != nil {
				return list, index
			}
			if isName {
				continue
			}
			pointer := string(d.StackPointer())
			if kind == jsontext.KindString {
				end := int(d.InputOffset())
				from := end - len(value) + 1
				list = append(list, stringOf{pointer, from, data[from : end-1]})
			} else if strings.HasSuffix(pointer, "index") {
				index += " " + string(value)
			}
		default:
			if _, err := d.ReadToken(); err != nil {
				return list, index
			}
		}
	}
}

// locate gives the places in the stream of a secret of the text: the first has its name, and the others are left out.
func (p *pieces) locate(l Place) (places []Place) {
	first, _ := slices.BinarySearchFunc(p.parts, l.From, func(part piece, at int) int { return part.begin + part.to - part.from - at - 1 })
	rule := l.Rule
	for _, part := range p.parts[first:] {
		from, to := max(l.From-part.begin, 0), min(l.To-part.begin, part.to-part.from)
		if part.begin >= l.To {
			break
		}
		if from < to {
			places = append(places, Place{Rule: rule, From: part.from + from, To: part.from + to})
			rule = ""
		}
	}
	return places
}
