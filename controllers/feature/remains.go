// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
)

// endRemains ends the Jobs and pods of a Feature that is gone. The finalizer holds a Feature until its pods have ended, and the
// garbage collector takes what it owns; but an editor may take the finalizer off, and let Jobs go that the Feature owns.
func (r *Reconciler) endRemains(ctx context.Context, gone types.NamespacedName) error {
	var leftJobs, leftPods []lifecycle.Object
	inProject, ofFeature := client.InNamespace(gone.Namespace), client.MatchingLabels{v1alpha1.LabelFeature: gone.Name}
	var jobs batchv1.JobList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&jobs, &pods} {
		if err := r.Client.List(ctx, list, inProject, ofFeature); err != nil {
			return fmt.Errorf("list %T of a Feature that is gone: %w", list, err)
		}
	}
	for i := range jobs.Items {
		if j := &jobs.Items[i]; j.DeletionTimestamp == nil {
			leftJobs = append(leftJobs, lifecycle.Object{Name: j.Name, UID: string(j.UID)})
		}
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil {
			leftPods = append(leftPods, lifecycle.Object{Name: p.Name, UID: string(p.UID)})
		}
	}
	if len(leftJobs)+len(leftPods) == 0 {
		return nil
	}
	// What is listed was there before this look: it belongs to no Feature of the same name that is made later.
	err := r.Live.Get(ctx, gone, &v1alpha1.Feature{})
	if err == nil {
		return nil // The cache is behind: it will tell.
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read Feature: %w", err)
	}
	return r.removeAll(ctx, gone.Namespace, leftJobs, leftPods)
}
