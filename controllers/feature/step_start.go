// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/kube/desired"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
	"github.com/tidewaiter/tidewaiter/internal/kube/nodes"
	"github.com/tidewaiter/tidewaiter/internal/kube/observe"
)

const (
	// rejectedPause is how long to wait before asking again for an object that quota or admission refused.
	rejectedPause = 15 * time.Second
	// terminatingPause is how long to wait for a volume of that name to go.
	terminatingPause = 2 * time.Second
)

// maker makes what an attempt depends on, and the Job itself.
type maker struct {
	client client.Client
	// live reads from the API server.
	live            client.Reader
	bundle          CABundle
	systemNamespace string
	// image of Tidewaiter's own containers.
	image          string
	userNamespaces nodes.Setting
}

func (r *Reconciler) maker() maker {
	return maker{
		client: r.Client, live: r.Live, bundle: r.CABundle, systemNamespace: r.SystemNamespace,
		image: r.Image, userNamespaces: r.UserNamespaces,
	}
}

// makeAttempt makes the Job of a new attempt, and before it all that it rests on. The attempt is noted because its Job is
// seen, not because this got to its end: the next reconcile sees the same.
func (r maker) makeAttempt(ctx context.Context, s *scope) error {
	f, start := s.feature, *s.decision.Start
	if err := r.applyCABundle(ctx, f.Namespace); err != nil {
		return err
	}
	// The network policy is there before anything that it guards.
	if err := r.applyNetworkPolicy(ctx, s); err != nil {
		return err
	}
	for _, claim := range desired.Claims(f) {
		// A claim is made once: what it asks for is fixed with the Feature.
		if _, _, err := own[corev1.PersistentVolumeClaim](ctx, r, s, claim); err != nil {
			return err
		}
	}
	class := ""
	if start.Run != lifecycle.RunSeal {
		class = f.Spec.Agent.RuntimeClassName
	}
	mapped, err := nodes.UserNamespaces(ctx, r.client, r.userNamespaces, s.effective.Pod, class)
	if err != nil {
		return fmt.Errorf("find out whether nodes have user namespaces: %w", err)
	}
	log.FromContext(ctx).Info("Starting attempt", "attempt", start.Attempt, "run", start.Run, "userNamespace", mapped)
	want := desired.Job(f, start, desired.Options{
		SystemNamespace: r.systemNamespace, Image: r.image, UserNamespaces: mapped, Pod: s.effective.Pod, Intake: s.intake, Gateway: s.gateway,
		Dialect: s.dialect, ContextWindow: s.window,
	})
	job, _, err := own[batchv1.Job](ctx, r, s, want)
	if err != nil {
		return err
	}
	s.observed.Jobs, s.observed.JobMade = append(s.observed.Jobs, observe.Jobs(f, []batchv1.Job{*job})...), true
	return nil
}

// config is an apply configuration of an object that a Feature owns.
type config interface {
	runtime.ApplyConfiguration
	GetName() *string
	GetKind() *string
}

// own creates an object that the Feature owns, and tells what is there and whether it was made just now. It never writes to
// an object that it has not made: where the name is taken, a live look says whose it is. One of this very Feature will
// do, since another pass made it; one that belongs to something else, or to nothing, is left alone and named.
func own[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r maker, s *scope, want config) (is P, made bool, err error) {
	kind, name := *want.GetKind(), *want.GetName()
	object, err := as[T](want)
	if err != nil {
		return nil, false, fmt.Errorf("render %s %s: %w", kind, name, err)
	}
	is = P(&object)
	err = r.client.Create(ctx, is, fieldOwner)
	if err == nil {
		return is, true, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, false, refusal(kind, name, err)
	}
	is = P(new(T))
	err = r.live.Get(ctx, client.ObjectKey{Namespace: s.feature.Namespace, Name: name}, is)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, flow.Waitf(v1alpha1.ReasonPreparing, terminatingPause, "Kubernetes has just deleted %s %s of an earlier Feature of this name", kind, name)
	case err != nil:
		return nil, false, fmt.Errorf("read %s %s: %w", kind, name, err)
	case !metav1.IsControlledBy(is, s.feature) && is.GetDeletionTimestamp() == nil && !ownedByFormer(is, s.feature):
		return nil, false, flow.Stallf(v1alpha1.ReasonNameCollision,
			"%s %s exists and does not belong to this Feature: remove it, or create the Feature under another name", kind, name)
	case !metav1.IsControlledBy(is, s.feature) || is.GetDeletionTimestamp() != nil:
		return nil, false, flow.Waitf(v1alpha1.ReasonPreparing, terminatingPause, "Kubernetes is deleting %s %s of an earlier Feature of this name", kind, name)
	}
	return is, false, nil
}

// ownedByFormer reports whether an object belonged to a Feature of the same name that is gone: garbage collection
// will take it.
func ownedByFormer(o client.Object, f *v1alpha1.Feature) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.Kind == "Feature" && owner.Name == f.Name && owner.UID != f.UID
}

// refusal tells what a person can fix (quota, admission) from what is to be tried again.
func refusal(kind, name string, err error) error {
	status := apierrors.APIStatus(nil)
	if (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && errors.As(err, &status) {
		return flow.Waitf(v1alpha1.ReasonObjectRejected, rejectedPause, "The API server refused %s %s: %s", kind, name, status.Status().Message)
	}
	return fmt.Errorf("write %s %s: %w", kind, name, err)
}

// as reads an apply configuration as the type that the API server would make of it.
func as[T any](config any) (T, error) {
	var out T
	raw, err := json.Marshal(config)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}
