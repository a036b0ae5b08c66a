// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkpoint keeps the status of Checkpoints true, and their number bounded.
package checkpoint

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/retention"
	"github.com/tidewaiter/tidewaiter/internal/kube/desired"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
)

// +kubebuilder:rbac:groups=tidewaiter.dev,resources=checkpoints,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=checkpoints/status,verbs=patch
// +kubebuilder:rbac:groups=tidewaiter.dev,resources=features;supervisorpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch

const fieldOwner = client.FieldOwner("tidewaiter-checkpoint")

// Reconciler reconciles Checkpoints. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Clock tells the time.
	Clock clock.PassiveClock
	// SystemNamespace that global policies are in.
	SystemNamespace string
}

// scope is what one reconcile learns, in the order in which it is learnt.
type scope struct {
	checkpoint *v1alpha1.Checkpoint
	now        time.Time
	// feature is nil when it is gone; set by readFeature.
	feature *v1alpha1.Feature
	// conditions as they shall be; set by judgeVolume.
	conditions []metav1.Condition
}

// Reconcile is the whole story of a Checkpoint, one line per step.
func (r *Reconciler) Reconcile(ctx context.Context, c *v1alpha1.Checkpoint) (ctrl.Result, error) {
	if c.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	s := &scope{checkpoint: c, now: r.Clock.Now()}
	err := flow.Run(ctx, s,
		r.readFeature,   // read
		r.judgeVolume,   // read: can it still be restored?
		r.removeSurplus, // write: core/retention
	)
	return flow.Finish(ctx, err, r.close(s))
}

// readFeature finds the Feature that the Checkpoint is about. Another one of the same name is not it.
func (r *Reconciler) readFeature(ctx context.Context, s *scope) error {
	var f v1alpha1.Feature
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.checkpoint.Namespace, Name: s.checkpoint.Spec.FeatureName}, &f)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Feature %s: %w", s.checkpoint.Spec.FeatureName, err)
	}
	if err == nil && string(f.UID) == s.checkpoint.Spec.FeatureUID {
		s.feature = &f
	}
	return nil
}

// judgeVolume says whether the commit is stored, and whether what holds it is still there.
func (r *Reconciler) judgeVolume(ctx context.Context, s *scope) error {
	v := volume{ephemeral: s.feature != nil && features.Ephemeral(s.feature), feature: s.feature, checkpoint: s.checkpoint}
	if s.feature != nil && !v.ephemeral {
		var claim corev1.PersistentVolumeClaim
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.checkpoint.Namespace, Name: desired.TrustedClaim(s.feature.Name)}, &claim)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("read claim of the trusted volume: %w", err)
		default:
			v.claim = &claim
		}
	}
	s.conditions = v.conditions(s.now)
	return nil
}

// removeSurplus deletes what retention does not keep. Without a policy that can be read nothing is deleted.
func (r *Reconciler) removeSurplus(ctx context.Context, s *scope) error {
	if s.feature == nil || s.feature.DeletionTimestamp != nil {
		return nil
	}
	effective, err := identity.Effective(ctx, r.Client, s.feature, r.SystemNamespace)
	if err != nil {
		return nil //nolint:nilerr // The Feature's condition Accepted tells; a policy that is fixed wakes nobody here, the next Checkpoint does.
	}
	var list v1alpha1.CheckpointList
	err = r.Client.List(ctx, &list, client.InNamespace(s.checkpoint.Namespace), client.MatchingLabels{v1alpha1.LabelFeature: s.feature.Name})
	if err != nil {
		return fmt.Errorf("list Checkpoints: %w", err)
	}
	byName, named := map[string]*v1alpha1.Checkpoint{}, namedCheckpoints(s.feature)
	var records []retention.Checkpoint
	for i := range list.Items {
		c := &list.Items[i]
		if c.Spec.FeatureUID == string(s.feature.UID) && c.DeletionTimestamp == nil {
			byName[c.Name] = c
			records = append(records, record(c, named))
		}
	}
	for _, name := range retention.Surplus(records, effective.KeepCheckpoints) {
		c := byName[name]
		if err := r.Client.Delete(ctx, c, client.Preconditions{UID: &c.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Checkpoint %s: %w", name, err)
		}
	}
	return nil
}

func (r *Reconciler) close(s *scope) flow.Close {
	if s.conditions == nil || equality.Semantic.DeepEqual(s.conditions, s.checkpoint.Status.Conditions) {
		return flow.Close{}
	}
	return flow.Close{Write: func(ctx context.Context) error { return r.writeStatus(ctx, s) }}
}
