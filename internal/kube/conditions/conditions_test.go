// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	first  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	second = first.Add(time.Hour)
)

func TestSetMovesTheTimeOnlyWithTheStatus(t *testing.T) {
	var list []metav1.Condition
	Writer{List: &list, Generation: 1, Now: first}.Set("Valid", metav1.ConditionTrue, "Valid", "well")
	Writer{List: &list, Generation: 2, Now: second}.Set("Valid", metav1.ConditionTrue, "Valid", "very well")
	if got := list[0]; !got.LastTransitionTime.Time.Equal(first) || got.ObservedGeneration != 2 || got.Message != "very well" {
		t.Errorf("the same status moved the time or kept the message: %+v", got)
	}
	Writer{List: &list, Generation: 2, Now: second}.Set("Valid", metav1.ConditionFalse, "Invalid", "ill")
	if !list[0].LastTransitionTime.Time.Equal(second) {
		t.Errorf("another status did not move the time: %+v", list[0])
	}
}

func TestSummarize(t *testing.T) {
	type part struct {
		status          metav1.ConditionStatus
		reason, message string
	}
	tests := map[string]struct {
		parts map[string]part
		want  part
	}{
		"all true":              {parts: map[string]part{"A": {"True", "Ra", "a"}, "B": {"True", "Rb", "b"}}, want: part{"True", "Rb", "b"}},
		"the first not true":    {parts: map[string]part{"A": {"False", "Ra", "a"}, "B": {"False", "Rb", "b"}}, want: part{"False", "Ra", "a"}},
		"a later not true":      {parts: map[string]part{"A": {"True", "Ra", "a"}, "B": {"Unknown", "Rb", "b"}}, want: part{"Unknown", "Rb", "b"}},
		"a part that is not in": {parts: map[string]part{"A": {"True", "Ra", "a"}}, want: part{"Unknown", "NotYetReported", "Condition B is not known yet."}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var list []metav1.Condition
			w := Writer{List: &list, Generation: 7, Now: first}
			for name, p := range tc.parts {
				w.Set(name, p.status, p.reason, p.message)
			}
			w.Summarize("Ready", "A", "B")
			for _, c := range list {
				if c.Type == "Ready" {
					if diff := cmp.Diff(tc.want, part{c.Status, c.Reason, c.Message}, cmp.AllowUnexported(part{})); diff != "" {
						t.Errorf("root (-want +got):\n%s", diff)
					}
					return
				}
			}
			t.Error("no root condition")
		})
	}
}
