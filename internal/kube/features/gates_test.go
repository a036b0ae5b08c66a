// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// TestDeliveryGates: a Feature adds to the gates of the policies. It can neither remove one nor change one by a gate of the same name, and hears of it.
func TestDeliveryGates(t *testing.T) {
	gate := func(name, program string) v1alpha1.Gate {
		return v1alpha1.Gate{Name: name, Command: []string{program}}
	}
	f := &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{
		Agent:    v1alpha1.Agent{Runtime: "command", Image: "agent:1"},
		Gates:    []v1alpha1.Gate{gate("unit", "mine"), gate("lint", "lint"), gate("licenses", "true")},
		Delivery: &v1alpha1.Delivery{Gates: []string{"lint", "licenses"}},
	}}
	f.Name = "login"
	e := policy.Effective{Gates: []policy.Gate{
		{Name: "licenses", Command: []string{"check"}, Image: "check:3", Timeout: time.Minute}, {Name: "unit", Command: []string{"make"}, Timeout: time.Minute},
	}}
	want := []policy.Gate{
		{Name: "licenses", Command: []string{"check"}, Image: "check:3", Timeout: time.Minute},
		{Name: "unit", Command: []string{"make"}, Image: "agent:1", Timeout: time.Minute},
		{Name: "lint", Command: []string{"lint"}, Image: "agent:1", Timeout: 10 * time.Minute},
	}
	if diff := cmp.Diff(want, DeliveryGates(f, e)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e.Gates[1].Image != "" {
		t.Error("the policy was changed")
	}
	if notice := ReplacedGates(f, e); !strings.Contains(notice, "licenses") || strings.Contains(notice, "unit") {
		t.Errorf("notice %q", notice)
	}
	if notice := ReplacedGates(f, policy.Effective{}); notice != "" {
		t.Errorf("notice %q without a policy", notice)
	}
	if diff := cmp.Diff([]string{"unit"}, Tasks(f)[0].Gates); diff != "" {
		t.Errorf("gates after the last task (-want +got):\n%s", diff)
	}
	f.Spec.Agent = v1alpha1.Agent{Runtime: "worker"}
	if got := DeliveryGates(f, policy.Effective{}); len(got) != 2 || got[0].Image != "" {
		t.Errorf("gates of an agent whose program is in the image of Tidewaiter: %+v", got)
	}
}
