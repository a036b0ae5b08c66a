// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShed(t *testing.T) {
	for name, tc := range map[string]struct {
		contents []Content
		want     []int64
	}{
		"within the budget":       {[]Content{{1, 40, false}, {2, 60, false}}, nil},
		"the oldest, down to 50":  {[]Content{{1, 40, false}, {2, 30, false}, {3, 40, false}}, []int64{1, 2}},
		"what is kept stays":      {[]Content{{1, 60, true}, {2, 30, false}, {3, 40, false}}, []int64{2, 3}},
		"only what is kept":       {[]Content{{1, 90, true}, {2, 90, true}}, nil},
		"no more than is needed":  {[]Content{{1, 90, false}, {2, 30, false}, {3, 20, false}}, []int64{1}},
		"those that free nothing": {[]Content{{1, 0, false}, {2, 110, false}, {3, 10, false}}, []int64{1, 2}},
	} {
		if diff := cmp.Diff(tc.want, Shed(tc.contents, 100)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLeft(t *testing.T) {
	var got []int64
	for _, r := range Left([]Checkpoint{invalid(1), plain(2), promoted(3), plain(4), invalid(5), plain(6)}, 3) {
		got = append(got, r.Sequence)
	}
	if diff := cmp.Diff([]int64{3, 5, 6}, got); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}
