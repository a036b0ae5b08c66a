// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
)

// Areas compares the plan of a Feature with the plans of others on its repository that are at work, or known to begin. If this Feature
// would wait, it also compares waiting ones that come first.
func Areas(f *v1alpha1.Feature, others []v1alpha1.Feature, begun func(*v1alpha1.Feature) bool, wait bool) lifecycle.Areas {
	repository, plan := locks.Repository(f.Spec.Repository.URL), judge.Compare(features.Plan(f))
	type found struct {
		feature *v1alpha1.Feature
		overlap lifecycle.Overlap
	}
	var all []found
	for i := range others {
		g := &others[i]
		works := AtWork(g) || begun(g)
		if g.UID == f.UID || !works && !(wait && WaitsForArea(g) && Before(g, f)) || locks.Repository(g.Spec.Repository.URL) != repository {
			continue
		}
		if mine, theirs, ok := plan.Overlaps(features.Plan(g)); ok {
			who := locks.Holder{Namespace: g.Namespace, Name: g.Name}.For(f.Namespace)
			all = append(all, found{g, lifecycle.Overlap{Who: who, Before: !works, Mine: mine, Theirs: theirs}})
		}
	}
	areas := lifecycle.Areas{Wait: wait}
	if len(all) == 0 {
		return areas
	}
	first := slices.MinFunc(all, func(a, b found) int {
		if a.overlap.Before != b.overlap.Before {
			if b.overlap.Before {
				return -1
			}
			return 1
		}
		return cmp.Or(
			a.feature.CreationTimestamp.Compare(b.feature.CreationTimestamp.Time),
			cmp.Compare(a.feature.Namespace, b.feature.Namespace), cmp.Compare(a.feature.Name, b.feature.Name),
		)
	})
	first.overlap.More = len(all) > 1
	areas.Overlap = &first.overlap
	return areas
}

// AtWork reports whether a Feature works on its repository, will continue by itself, or is about to deliver work.
func AtWork(f *v1alpha1.Feature) bool {
	if f.Status.Job != nil && f.Status.Job.EndTime == nil {
		return true
	}
	switch f.Status.Phase {
	case v1alpha1.PhasePreparing, v1alpha1.PhaseRunning, v1alpha1.PhaseAwaitingInput:
		return true
	case v1alpha1.PhaseReadyToMerge:
		return !f.Spec.Suspend
	default:
		return false
	}
}

// WaitsForArea reports whether a Feature waits for others whose areas overlap with its own.
func WaitsForArea(f *v1alpha1.Feature) bool {
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionSucceeded)
	return c != nil && c.Reason == v1alpha1.ReasonWaitingForArea && f.DeletionTimestamp == nil && !f.Spec.Suspend
}
