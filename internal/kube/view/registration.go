// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// registrationEvery is after how long a CA bundle that somebody changed is put back.
	registrationEvery = time.Minute
	// registrationRetry is the pause after a failure, and while there is no bundle.
	registrationRetry = 2 * time.Second
)

// Registration keeps the CA bundle of the APIService, by which kube-apiserver trusts us. It makes no APIService: that is
// installed, and removed first when Tidewaiter is. Only the leader keeps it.
type Registration struct {
	// Live reads and writes without a cache.
	Live client.Client
	// Bundle is the PEM of every CA that may vouch for us; nil until it is known.
	Bundle func() []byte
	// Changed receives after the bundle has changed.
	Changed <-chan struct{}
	Clock   clock.Clock
	Logger  logr.Logger
}

// Start keeps the bundle until the context ends.
func (r *Registration) Start(ctx context.Context) error {
	for {
		pause := registrationEvery
		if done, err := r.keep(ctx); err != nil && ctx.Err() == nil {
			r.Logger.Error(err, "Cannot register the aggregated API; trying again")
			pause = registrationRetry
		} else if !done {
			pause = registrationRetry
		}
		timer := r.Clock.NewTimer(pause)
		select {
		case <-r.Changed:
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// keep writes the bundle where it is another one. It is not done while there is no bundle, or no APIService.
func (r *Registration) keep(ctx context.Context) (bool, error) {
	bundle := r.Bundle()
	if len(bundle) == 0 {
		return false, nil
	}
	service := &unstructured.Unstructured{}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	err := r.Live.Get(ctx, client.ObjectKey{Name: APIService}, service)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read APIService %s: %w", APIService, err)
	}
	before := service.DeepCopy()
	text := base64.StdEncoding.EncodeToString(bundle)
	if have, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle"); have == text {
		return true, nil
	}
	if err := unstructured.SetNestedField(service.Object, text, "spec", "caBundle"); err != nil {
		return false, fmt.Errorf("APIService %s: %w", APIService, err)
	}
	if err := r.Live.Patch(ctx, service, client.MergeFrom(before)); err != nil {
		return false, fmt.Errorf("write the CA bundle of APIService %s: %w", APIService, err)
	}
	r.Logger.Info("Registered the aggregated API", "apiService", APIService)
	return true, nil
}
