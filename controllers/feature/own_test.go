// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// intruder makes a claim with the name of a Feature's just before the controller does.
type intruder struct {
	client.Client
	claim *corev1.PersistentVolumeClaim
	as    client.Client
	done  bool
}

func (c *intruder) intrude(ctx context.Context, kind string) error {
	if c.done || kind != "PersistentVolumeClaim" {
		return nil
	}
	c.done = true
	return c.as.Create(ctx, c.claim)
}

func (c *intruder) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if named, ok := o.(config); ok {
		if err := c.intrude(ctx, *named.GetKind()); err != nil {
			return err
		}
	}
	return c.Client.Apply(ctx, o, opts...)
}

func (c *intruder) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if _, ok := o.(*corev1.PersistentVolumeClaim); ok {
		if err := c.intrude(ctx, "PersistentVolumeClaim"); err != nil {
			return err
		}
	}
	return c.Client.Create(ctx, o, opts...)
}

// TestClaimMadeMeanwhileIsNotTaken: a claim that somebody makes between the controller's look and its own write holds what
// they put into it. It does not become the Feature's volume.
func TestClaimMadeMeanwhileIsNotTaken(t *testing.T) {
	r := newHarness(t)
	foreign := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "twf-login-trusted", Namespace: r.project},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}},
		},
	}
	r.writes = &intruder{Client: r.writes, claim: foreign, as: r.user}
	r.feature("login", nil)
	r.settle("login")
	r.want("login", v1alpha1.PhaseBlocked, v1alpha1.ReasonNameCollision)
	r.wantJobs()
	var is corev1.PersistentVolumeClaim
	r.must(r.user.Get(r.Context(), client.ObjectKeyFromObject(foreign), &is), "read somebody's claim")
	if len(is.OwnerReferences) > 0 || is.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("somebody's claim was taken: %+v", is.OwnerReferences)
	}
}
