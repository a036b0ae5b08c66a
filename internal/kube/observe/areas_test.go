// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
)

func TestAreas(t *testing.T) {
	area := func(name string, phase v1alpha1.Phase, age time.Duration, areas ...string) v1alpha1.Feature {
		f := feature(name, types.UID(name))
		f.Namespace, f.CreationTimestamp = "shop", metav1.NewTime(noon.Add(-age))
		f.Spec.Repository.URL = "https://git.example.com/shop.git"
		f.Spec.Plan = &v1alpha1.Plan{AllowedAreas: areas}
		f.Status.Phase = phase
		return *f
	}
	waits := func(f v1alpha1.Feature, priority int32) v1alpha1.Feature {
		f.Spec.Priority = priority
		f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Reason: v1alpha1.ReasonWaitingForArea}}
		return f
	}
	elsewhere := area("elsewhere", v1alpha1.PhaseRunning, 0, "web/**")
	elsewhere.Spec.Repository.URL = "https://git.example.com/web.git"
	foreign := area("foreign", v1alpha1.PhaseRunning, 0, "web/**")
	foreign.Namespace, foreign.Spec.Repository.URL = "warehouse", "https://Git.example.com/shop"
	parked := area("parked", v1alpha1.PhaseReadyToMerge, 0, "web/**")
	parked.Spec.Suspend = true
	ending := area("ending", v1alpha1.PhaseBlocked, 0, "web/x")
	ending.Status.Job = &v1alpha1.JobStatus{}
	me := area("me", v1alpha1.PhasePending, time.Hour, "web/**")
	tests := map[string]struct {
		others []v1alpha1.Feature
		begun  string
		wait   bool
		want   *lifecycle.Overlap
	}{
		"nobody":                       {others: []v1alpha1.Feature{me, elsewhere, parked, area("done", v1alpha1.PhaseDelivered, 0, "web/**"), area("api", v1alpha1.PhaseRunning, 0, "api/**")}},
		"one who works":                {others: []v1alpha1.Feature{area("a", v1alpha1.PhaseRunning, 0, "web/x/**")}, want: &lifecycle.Overlap{Who: "Feature a", Mine: "web/**", Theirs: "web/x/**"}},
		"one whose pod has yet to end": {others: []v1alpha1.Feature{ending}, want: &lifecycle.Overlap{Who: "Feature ending", Mine: "web/**", Theirs: "web/x"}},
		"of another project":           {others: []v1alpha1.Feature{foreign}, want: &lifecycle.Overlap{Who: "a Feature of another project", Mine: "web/**", Theirs: "web/**"}},
		"one that has just begun":      {others: []v1alpha1.Feature{area("a", v1alpha1.PhasePending, 0)}, begun: "a", want: &lifecycle.Overlap{Who: "Feature a", Mine: "web/**"}},
		"the oldest of several": {
			others: []v1alpha1.Feature{area("a", v1alpha1.PhaseRunning, 0), area("b", v1alpha1.PhaseReadyToMerge, time.Minute)},
			want:   &lifecycle.Overlap{Who: "Feature b", Mine: "web/**", More: true},
		},
		"who waits does not matter to who does not": {others: []v1alpha1.Feature{waits(area("a", v1alpha1.PhasePending, 2*time.Hour), 0)}},
		"who waits and comes first": {
			wait: true, others: []v1alpha1.Feature{waits(area("a", v1alpha1.PhasePending, 0), 1), waits(area("b", v1alpha1.PhasePending, 0), 0)},
			want: &lifecycle.Overlap{Who: "Feature a", Mine: "web/**", Before: true},
		},
		"who works before who waits": {
			wait: true, others: []v1alpha1.Feature{waits(area("a", v1alpha1.PhasePending, 2*time.Hour), 1), area("b", v1alpha1.PhaseRunning, 0)},
			want: &lifecycle.Overlap{Who: "Feature b", Mine: "web/**", More: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Areas(&me, tc.others, func(f *v1alpha1.Feature) bool { return f.Name == tc.begun }, tc.wait)
			if diff := cmp.Diff(lifecycle.Areas{Wait: tc.wait, Overlap: tc.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
