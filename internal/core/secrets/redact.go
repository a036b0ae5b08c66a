// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
)

// maxRounds bounds how often a text is searched for what a search before had no room for.
const maxRounds = 64

// Redactor takes secrets out of texts. It is not safe for concurrent use, and is expensive to make.
type Redactor struct{ scanner *Scanner }

// NewRedactor makes a Redactor.
func NewRedactor() *Redactor { return &Redactor{scanner: New()} }

// Redact returns a text in which "[redacted: RULE]" stands for each secret; the text itself if it has none. Redact also finds secrets in
// strings of JSON, with its escapes, and in the events of a stream that has a string in pieces. It takes work as Find does, at most the
// budget. The error is ErrTooHard for a text that needs more, or that has too many secrets to distinguish.
func (r *Redactor) Redact(ctx context.Context, budget int64, text []byte) ([]byte, error) {
	for range maxRounds {
		found, full, err := r.Places(ctx, &budget, text)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return text, nil
		}
		if text = replace(text, found); !full {
			return text, nil
		}
	}
	return nil, ErrTooHard
}

// Places are the positions of secrets that Redact finds in a text, unsorted. Rests of secrets have no rule. The result full says that there
// may be more. Places subtracts its work from the budget.
func (r *Redactor) Places(ctx context.Context, budget *int64, text []byte) (found []Place, full bool, err error) {
	found, full, err = r.inJSON(ctx, budget, text)
	if err != nil {
		return nil, false, err
	}
	for _, p := range piecesOf(text) {
		inPieces, more, err := r.inJSON(ctx, budget, p.text)
		if err != nil {
			return nil, false, err
		}
		full = full || more
		for _, l := range inPieces {
			found = append(found, p.locate(l)...)
		}
	}
	return found, full, nil
}

// inJSON are where the secrets of a text are, as it is and in strings of JSON; full, where there may be more.
func (r *Redactor) inJSON(ctx context.Context, budget *int64, text []byte) (found []Place, full bool, err error) {
	found, full, work, err := r.scanner.Locate(ctx, *budget, text, withoutEscapes(text))
	*budget -= work
	u := unescape(text)
	if err != nil || u == nil {
		return found, full, err
	}
	meant, more, work, err := r.scanner.Locate(ctx, *budget, u.text, withoutEscapes(u.text))
	*budget -= work
	for _, p := range meant {
		found = append(found, u.locate(p))
	}
	return found, full || more, err
}

// withoutEscapes is a text of the same length in which what JSON writes with a backslash stands for itself, after a space, and
// so does what JSON in a string of JSON writes with several; nil for a text without a backslash.
func withoutEscapes(text []byte) []byte {
	next := bytes.IndexByte(text, '\\')
	if next < 0 {
		return nil
	}
	plain := bytes.Clone(text)
	for i := 0; next >= 0; next = bytes.IndexByte(plain[i:], '\\') {
		begin := i + next
		for i = begin; i < len(plain) && plain[i] == '\\'; {
			i++
		}
		if i == len(plain) {
			break
		}
		if at := strings.IndexByte(`nrt"bf`, plain[i]); at >= 0 {
			plain[i] = "\n\r\t\"  "[at]
			for j := begin; j < i; j++ {
				plain[j] = ' '
			}
		}
	}
	return plain
}

// Sort sorts places by their beginning; of several with the same beginning, the one that gives its name to all comes first.
func Sort(places []Place) {
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To), cmp.Compare(b.Rule, a.Rule))
	})
}

// Mark stands for a secret of a rule.
func Mark(rule string) string { return "[redacted: " + rule + "]" }

// replace replaces secrets with marks, and removes the rest of one. Of secrets that overlap the first and
// longest gives its name.
func replace(text []byte, found []Place) []byte {
	Sort(found)
	var clean []byte
	end := 0
	for _, l := range found {
		if l.From >= end {
			clean = append(clean, text[end:l.From]...)
			if l.Rule != "" {
				clean = append(clean, Mark(l.Rule)...)
			}
		}
		end = max(end, l.To)
	}
	return append(clean, text[end:]...)
}
