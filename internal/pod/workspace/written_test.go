// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// TestWrittenSaysThatItIsBusy: it does not wait for the engine, which may take long, and who asks can look again. Otherwise it would seem that nothing was written.
func TestWrittenSaysThatItIsBusy(t *testing.T) {
	b := watched(t, map[string]string{"a": "a"})
	put(t, b.root, "b", "bb")
	b.awaitChanged(t, 1)
	b.engine.Busy(func() {
		if _, _, err := b.engine.Written(t.Context(), 10); !errors.Is(err, workspace.ErrBusy) {
			t.Errorf("of an engine at work: %v", err)
		}
	})
	changes, whole, err := b.engine.Written(t.Context(), 10)
	if err != nil || !whole || len(changes) != 1 || changes[0].Path != "b" {
		t.Errorf("changes %+v, whole %v, %v", changes, whole, err)
	}
}
