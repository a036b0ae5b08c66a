// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import "testing"

// TestRoom: patches go first, then names, and nothing of a checkpoint is stored while the volume is needed for calls.
func TestRoom(t *testing.T) {
	const volume, feature, project = "the volume of the ledger is nearly full", "the diffs of the Feature have used up their room in the ledger",
		"the diffs of the project have used up their room in the ledger"
	for name, tc := range map[string]struct {
		room         Room
		names, patch bool
		missing      string
	}{
		"an empty ledger":                     {Room{}, true, true, ""},
		"as much as there may be":             {Room{Feature: MaxPatches - 30, Project: MaxProject - 30}, true, true, ""},
		"a byte more of the Feature":          {Room{Feature: MaxPatches - 29}, true, false, feature},
		"a byte more of the project":          {Room{Project: MaxProject - 29}, true, false, project},
		"no patch, and names still":           {Room{Feature: MaxNames - 10}, true, false, feature},
		"no names of the Feature":             {Room{Feature: MaxNames - 9}, false, false, feature},
		"no names of the project":             {Room{Project: MaxProject - 9}, false, false, project},
		"a volume with a tenth free":          {Room{Free: 500, Size: 5000}, true, true, ""},
		"a volume with less":                  {Room{Free: 499, Size: 5000}, false, false, volume},
		"a full volume":                       {Room{Size: 5000}, false, false, volume},
		"a database of which nothing is said": {Room{Free: 0}, true, true, ""},
	} {
		names, patch, missing := tc.room.Takes(10, 20)
		if names != tc.names || patch != tc.patch || missing != tc.missing {
			t.Errorf("%s: %t, %t, %q", name, names, patch, missing)
		}
	}
}
