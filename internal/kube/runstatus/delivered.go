// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// deliveredPaths are as many paths of a delivery as a status has room for. One that is no plain text, or is too long, is left out: a path that
// was cut is another path.
func deliveredPaths(paths []string) []string {
	room := protocol.MaxDeliveredBytes
	fit := slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		if path == "" || len(path) > room || plain.CutRunes(path, protocol.MaxDeliveredPath) != path || Clean(path, protocol.MaxDeliveredPath) != path {
			return true
		}
		room -= len(path)
		return false
	})
	if len(fit) == 0 {
		return nil
	}
	return plain.CutList(fit, protocol.MaxDeliveredPaths)
}
