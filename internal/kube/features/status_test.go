// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/testkit/filled"
)

// TestStatusKeepsToItsBounds: what is unbounded where it comes from, or set by others, does not keep a status from
// being written.
func TestStatusKeepsToItsBounds(t *testing.T) {
	m := lifecycle.Memory{
		Policy: lifecycle.PolicyRef{Hash: "h"},
		Job:    &lifecycle.JobMemory{Name: "login-1", Run: "sailing", Mode: "Reckless"},
	}
	for i := range 300 {
		m.Locks = append(m.Locks, fmt.Sprintf("contract-%d", i))
		m.Policy.Sources = append(m.Policy.Sources, fmt.Sprintf("shop/policy-%d", i))
	}
	s := Status(m, v1alpha1.FeatureStatus{}, now)
	if len(s.Locks) != 256 || len(s.Policy.Sources) != 64 {
		t.Errorf("want 256 locks and 64 sources, as the CRD takes, got %d and %d", len(s.Locks), len(s.Policy.Sources))
	}
	if s.Job.Run != v1alpha1.RunKindAgent || s.Job.Mode != "" {
		t.Errorf("want a run and a mode that the CRD takes, got %q and %q", s.Job.Run, s.Job.Mode)
	}
}

func TestStatusConfigCarriesEverything(t *testing.T) {
	var want v1alpha1.FeatureStatus
	filled.Value(t, &want)
	config, err := StatusConfig(want)
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(*config)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != (name == "Run") {
			t.Errorf("field %s: only run, which belongs to intake, is left out", name)
		}
	}
}
