// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/conditions"
)

// volume is what holds a Checkpoint's commit.
type volume struct {
	checkpoint *v1alpha1.Checkpoint
	// feature is nil when it is gone.
	feature *v1alpha1.Feature
	// ephemeral volumes live and die with their pod.
	ephemeral bool
	// claim is nil when there is none.
	claim *corev1.PersistentVolumeClaim
}

// conditions of the Checkpoint: whether the commit was stored, and whether it can still be restored.
func (v volume) conditions(now time.Time) []metav1.Condition {
	list := slices.Clone(v.checkpoint.Status.Conditions)
	w := conditions.Writer{List: &list, Generation: v.checkpoint.Generation, Now: now}
	if v.checkpoint.Spec.Commit == "" {
		w.Set(v1alpha1.ConditionStored, metav1.ConditionFalse, v1alpha1.ReasonCheckpointFailed, "The capture has no commit.")
	} else {
		// The watchdog reports a checkpoint only after its commit is durable.
		w.Set(v1alpha1.ConditionStored, metav1.ConditionTrue, v1alpha1.ReasonStored, "The commit is in the trusted repository.")
	}
	status, reason, message := v.restorable()
	w.Set(v1alpha1.ConditionRestorable, status, reason, message)
	w.Summarize(v1alpha1.ConditionReady, v1alpha1.ConditionStored, v1alpha1.ConditionRestorable)
	return list
}

func (v volume) restorable() (status metav1.ConditionStatus, reason, message string) {
	switch {
	case v.checkpoint.Spec.Commit == "":
		return metav1.ConditionFalse, v1alpha1.ReasonCheckpointFailed, "There is no commit to restore."
	case v.feature == nil:
		return metav1.ConditionFalse, v1alpha1.ReasonVolumeGone, "The Feature is gone, and its volumes with it."
	case v.ephemeral && !v.podLives():
		return metav1.ConditionFalse, v1alpha1.ReasonVolumeGone, "The volume was ephemeral and went with its pod."
	case !v.ephemeral && (v.claim == nil || v.claim.DeletionTimestamp != nil || v.claim.Status.Phase == corev1.ClaimLost):
		return metav1.ConditionFalse, v1alpha1.ReasonVolumeGone, "The claim of the trusted volume is gone."
	default:
		return metav1.ConditionTrue, v1alpha1.ReasonStored, "The volume that holds the commit exists."
	}
}

// podLives reports whether the attempt that took the checkpoint goes on, and its pod's volumes with it.
func (v volume) podLives() bool {
	s := v.feature.Status
	return s.Attempt == v.checkpoint.Spec.Attempt && s.Job != nil && s.Job.EndTime == nil
}

func (r *Reconciler) writeStatus(ctx context.Context, s *scope) error {
	c := s.checkpoint
	config := applyv1alpha1.Checkpoint(c.Name, c.Namespace).WithUID(c.UID).WithResourceVersion(c.ResourceVersion).
		WithStatus(applyv1alpha1.CheckpointStatus().WithConditions(conditions.Configs(s.conditions)...))
	if err := r.Client.Status().Apply(ctx, config, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply status of Checkpoint %s: %w", c.Name, err)
	}
	return nil
}
