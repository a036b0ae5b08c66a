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
		"a volume with a tenth free":          {Room{Free: 500 << 20, Size: 5000 << 20}, true, true, ""},
		"a volume with less":                  {Room{Free: 499 << 20, Size: 5000 << 20}, false, false, volume},
		"a full volume":                       {Room{Size: 5000}, false, false, volume},
		"a small volume that calls need":      {Room{Free: 30 << 20, Size: 200 << 20}, false, false, volume},
		"a database of which nothing is said": {Room{Free: 0}, true, true, ""},
	} {
		names, patch, missing := tc.room.Takes(10, 20)
		if names != tc.names || patch != tc.patch || missing != tc.missing {
			t.Errorf("%s: %t, %t, %q", name, names, patch, missing)
		}
	}
}

// TestLacking: room for calls is kept free; of two rooms the one counts that has less.
func TestLacking(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for name, tc := range map[string]struct {
		room Room
		want int64
	}{
		"nothing is known":         {Room{}, 0},
		"an empty volume":          {Room{Free: 100 * gib, Size: 100 * gib}, 0},
		"a twentieth is free":      {Room{Free: 5 * gib, Size: 100 * gib}, 0},
		"a MiB less":               {Room{Free: 5*gib - mib, Size: 100 * gib}, mib},
		"a small volume":           {Room{Free: 30 * mib, Size: 400 * mib}, 2 * mib},
		"a very small volume":      {Room{Free: 2 * mib, Size: 16 * mib}, 2 * mib},
		"a full volume":            {Room{Size: 400 * mib}, 32 * mib},
		"a volume, and no size":    {Room{Free: 30 * mib, Size: 400 * mib}.Tighter(Room{}), 2 * mib},
		"a size, and no volume":    {Room{}.Tighter(Room{Free: 30 * mib, Size: 400 * mib}), 2 * mib},
		"a volume with less":       {Room{Free: 30 * mib, Size: 400 * mib}.Tighter(Room{Free: 31 * mib, Size: 400 * mib}), 2 * mib},
		"a size with less of more": {Room{Free: 40 * mib, Size: 400 * mib}.Tighter(Room{Free: 50 * mib, Size: 2000 * mib}), 50 * mib},
	} {
		if got := tc.room.Lacking(); got != tc.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
