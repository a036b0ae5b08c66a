// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import "testing"

// TestUsesWithoutADetail: what a provider did for a call is recorded whether anything else is said of the call or not.
func TestUsesWithoutADetail(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		l := w.open()
		i := call("used")
		i.Detail, i.Tokens.Fetches = "", 2
		w.must(l.Settle(t.Context(), "", i))
		turns, err := l.Turns(t.Context(), i.FeatureUID, 0, 10)
		w.must(err)
		if len(turns) != 1 || turns[0].Tokens.Fetches != 2 {
			t.Errorf("%+v, want 2 fetches", turns)
		}
	})
}
