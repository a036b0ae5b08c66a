// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/retention"
)

// record is what retention needs of a Checkpoint. An unsettled one counts as no verdict, as everywhere: what was judged
// may never have been there.
func record(c *v1alpha1.Checkpoint, named names) retention.Checkpoint {
	settled := c.Spec.Capture.Settled
	return retention.Checkpoint{
		Name: c.Name, Sequence: c.Spec.Sequence,
		Valid:    settled && c.Spec.Verdict == v1alpha1.VerdictValid,
		Invalid:  settled && c.Spec.Verdict == v1alpha1.VerdictInvalid,
		Promoted: c.Spec.Action == v1alpha1.ActionPromoted || c.Spec.Action == v1alpha1.ActionPartlyPromoted,
		Named:    slices.Contains(named.objects, c.Name) || c.Spec.DeliveryCommit != "" && slices.Contains(named.commits, c.Spec.DeliveryCommit),
	}
}

// names are what a Feature names Checkpoints by.
type names struct {
	// objects by their names; commits of the delivery branch.
	objects, commits []string
}

// namedCheckpoints are those that a Feature's status points at, that an open request asks for, and that was delivered or
// may be: people look them up.
func namedCheckpoints(f *v1alpha1.Feature) names {
	n := names{objects: []string{f.Status.LastCheckpoint, f.Status.LastValidCheckpoint}, commits: []string{f.Status.Head}}
	results := f.Status.ObservedRequests
	if run := f.Status.Run; run != nil {
		n.objects = append(n.objects, run.LastValidCheckpoint)
		if run.LastCheckpoint != nil {
			n.objects = append(n.objects, run.LastCheckpoint.Name)
		}
		if run.Final != nil {
			n.commits = append(n.commits, run.Final.Head)
		}
	}
	if d := f.Spec.Delivery; d != nil {
		n.commits = append(n.commits, d.ApprovedCommit)
	}
	for _, r := range f.Spec.Requests {
		done := slices.ContainsFunc(results, func(o v1alpha1.ObservedRequest) bool { return o.ID == r.ID })
		if r.Rollback != nil && !done {
			n.objects = append(n.objects, r.Rollback.Checkpoint)
		}
	}
	return n
}
