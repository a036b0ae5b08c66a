// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import "context"

// Place is where a secret stands in a text, and the rule that it matches.
type Place struct {
	Rule     string
	From, To int
}

// MaxPlaces is how many places are found at once. A text with so many may have more.
const MaxPlaces = maxRaw

// Locate finds where the secrets of a text are, in no order. It takes work as Find does.
func (s *Scanner) Locate(ctx context.Context, budget int64, text []byte) (places []Place, work int64, err error) {
	f := s.newSearch(ctx, budget, "", nil, text)
	f.run()
	s.opened = f.opened
	if f.err != nil {
		return nil, budget - max(f.budget, 0), f.err
	}
	return f.list, budget - f.budget, nil
}
