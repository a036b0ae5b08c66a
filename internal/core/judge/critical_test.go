// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestKindsOfChangesMayBeCritical: what breaks a rule that a permission of changes is about has severity Critical where the policy says so,
// also where the rule refuses it whatever the permission is.
func TestKindsOfChangesMayBeCritical(t *testing.T) {
	seen := 0
	for _, rule := range Rules() {
		if !strings.Contains(rule.Severity, "changes.") || strings.HasPrefix(rule.Severity, "always Error") {
			continue
		}
		seen++
		for _, sample := range rule.Reject {
			t.Run(rule.ID+"/"+sample.Name, func(t *testing.T) {
				in := sound(sample.Input)
				changes := reflect.ValueOf(&in.Policy.Changes).Elem()
				for _, field := range changes.Fields() {
					if field.Type() == reflect.TypeFor[policy.Permission]() {
						field.SetString("Critical")
					}
				}
				j, err := Judge(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range j.Violations {
					if v.Rule == rule.ID && v.Severity != policy.Critical {
						t.Errorf("%+v", v)
					}
				}
				if j.Severity != policy.Critical || j.Verdict != protocol.Invalid {
					t.Errorf("%s, %s: %+v", j.Severity, j.Verdict, j.Violations)
				}
			})
		}
	}
	if seen < 11 { // ten kinds of changes, and what is too hard to judge
		t.Errorf("only %d rules are about kinds of changes", seen)
	}
}
