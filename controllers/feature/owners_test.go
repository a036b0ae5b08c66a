// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStatusHasOneOwnerForEachField: phase, conditions and roll-ups are the controller's, status.run is intake's, and
// nothing has two writers.
func TestStatusHasOneOwnerForEachField(t *testing.T) {
	r := newHarness(t)
	r.feature("login", nil)
	r.settle("login")
	r.reportRunning("login")
	r.settle("login")
	owned := map[string][]string{}
	for _, entry := range r.get("login").ManagedFields {
		if entry.Subresource != "status" {
			continue
		}
		var fields struct {
			Status map[string]any `json:"f:status"`
		}
		r.must(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields), "read what %s owns", entry.Manager)
		for name := range maps.Keys(fields.Status) {
			owned[name] = append(owned[name], entry.Manager)
		}
	}
	for name, owners := range owned {
		want := []string{string(fieldOwner)}
		if name == "f:run" {
			want = []string{"tidewaiter-intake"}
		}
		if diff := cmp.Diff(want, owners); diff != "" {
			t.Errorf("writers of status %s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"f:phase", "f:conditions", "f:head", "f:attempt", "f:run"} {
		if !slices.Contains(slices.Collect(maps.Keys(owned)), name) {
			t.Errorf("%s has no owner", name)
		}
	}
}
