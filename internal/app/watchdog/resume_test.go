// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestAWatchdogThatCannotGoOnSaysWhy: what is wrong with the volume is the error that the process ends with.
func TestAWatchdogThatCannotGoOnSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "echo a > web/a.html")
	if err := w.prepare(1); err != nil {
		t.Fatal(err)
	}
	w.trusted("update-ref", "-d", protocol.RefDelivery)
	err := watchdog.Run(t.Context(), w.options(1, nil))
	if err == nil || !strings.Contains(err.Error(), "the trusted volume is damaged (restore it from a snapshot, or delete the Feature and create it again)") || !strings.Contains(err.Error(), protocol.RefDelivery) {
		t.Errorf("it ended with %v", err)
	}
}
