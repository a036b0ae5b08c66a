// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

func TestPausesGrow(t *testing.T) {
	for name, tc := range map[string]struct {
		minInterval time.Duration
		want        []time.Duration
	}{
		"built-in":     {5 * time.Second, []time.Duration{5 * time.Second, 20 * time.Second, time.Minute, time.Minute}},
		"no interval":  {0, []time.Duration{time.Second, 4 * time.Second, 16 * time.Second, time.Minute}},
		"a long one":   {time.Hour, []time.Duration{time.Hour, time.Hour, time.Hour, time.Hour}},
		"the shortest": {time.Nanosecond, []time.Duration{time.Second, 4 * time.Second, 16 * time.Second, time.Minute}},
	} {
		var got []time.Duration
		for failures := 1; failures <= 4; failures++ {
			got = append(got, supervise.PauseAfter(failures, tc.minInterval))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := supervise.PauseAfter(1<<40, time.Second); got != time.Minute {
		t.Errorf("after very many failures: %s", got)
	}
}
