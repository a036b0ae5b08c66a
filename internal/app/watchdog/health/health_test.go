// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
)

func TestProblemsAreListed(t *testing.T) {
	var h health.Health
	h.Tell(health.Watcher, "no more watches")
	h.Tell(health.Capture, strings.Repeat("x", 1000))
	h.Tell(health.Judge, "slow")
	h.Tell(health.Judge, "")
	list := h.List()
	if len(list) != 2 || len(list[0]) != 256 || !strings.HasPrefix(list[0], "capture: xxx") || list[1] != "watcher: no more watches" {
		t.Errorf("problems %q", list)
	}
}

// A volume that cannot be measured is a problem, which is gone once it can be; it is not measured all the time.
func TestMeasure(t *testing.T) {
	var h health.Health
	now := time.Unix(0, 0)
	h.Measure("/no/such/volume", now)
	if list := h.List(); len(list) != 1 || !strings.HasPrefix(list[0], "disk: ") {
		t.Errorf("problems %q, want one about the disk", list)
	}
	before := h.List()
	h.Measure(t.TempDir(), now.Add(9*time.Second))
	if diff := cmp.Diff(before, h.List()); diff != "" {
		t.Errorf("measured again at once (-before +after):\n%s", diff)
	}
	h.Measure("/proc", now.Add(10*time.Second))
	if list := h.List(); len(list) != 0 {
		t.Errorf("problems %q, want none", list)
	}
}
