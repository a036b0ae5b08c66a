// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"context"
	"slices"
)

// Place is the position of a secret in a text, and the rule that it matches.
type Place struct {
	Rule     string
	From, To int
}

// maxPlaces is how many places are found at once. A text with that number may have more.
const maxPlaces = maxRaw

// maxHeard bounds the keywords that are remembered of a text. A text with more is searched again from the start.
const maxHeard = 1024

// keyword that a text has, and the rules that want it.
type keyword struct {
	from, to int
	rules    []int
}

// Locate finds the places of secrets in a text, and in its decoded form, if there is one. That is a text of the same length, with blanks
// instead of escapes, two characters or more for each. No keyword contains an escape, so Locate does not search the second text for
// keywords. The places are not sorted; full says that there may be more. It takes work as Find does.
func (s *Scanner) Locate(ctx context.Context, budget int64, text, meant []byte) (places []Place, full bool, work int64, err error) {
	f := s.newSearch(ctx, budget, "", nil, text)
	f.heard = s.heard[:0]
	f.run()
	s.opened, s.heard = f.opened, f.heard
	if f.err == nil && meant != nil {
		first := f
		f = s.newSearch(ctx, f.budget, "", nil, meant)
		f.list = slices.Clip(first.list)
		f.most = len(f.list) + maxRaw
		if len(first.heard) < maxHeard {
			f.again(first)
		} else {
			f.run()
		}
		s.opened = f.opened
		full = len(first.list) >= maxRaw
	}
	if f.err != nil {
		return nil, false, budget - max(f.budget, 0), f.err
	}
	return f.list, full || len(f.list) >= f.most, budget - f.budget, nil
}

// blanks are the characters that a text, as it is meant, has instead of escapes.
const blanks = " \n\r\t\""

// again searches at the keywords of another search, where this text has them, too.
func (f *search) again(other *search) {
	for _, k := range other.heard {
		if f.goesOn() && bytes.Equal(f.text[k.from:k.to], other.text[k.from:k.to]) {
			f.keywords(k.from, k.to, k.rules)
		}
	}
	f.end()
}
