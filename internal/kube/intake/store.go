// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
)

// FieldOwner owns status.run by server-side apply; the feature controller owns the rest of a Feature's status.
const FieldOwner = client.FieldOwner("tidewaiter-intake")

// conflictRetries bounds how often somebody else may write a Feature's status first.
const conflictRetries = 8

// store writes what intake owns.
type store struct {
	client client.Client
	live   client.Reader
	locks  locks
}

// runChange makes a Feature's next run.
type runChange func(*v1alpha1.Feature) (v1alpha1.RunStatus, error)

// update reads a Feature from the API server, lets change make its next run of it, and applies that with the resource
// version that was read: of two replicas that fold the same reports one meets a conflict, and starts again from what
// the other has written. A run that change leaves as it is costs no write. On this replica one update of a Feature
// follows the other, so that it meets no conflict with itself.
func (s *store) update(ctx context.Context, key types.NamespacedName, change runChange) error {
	unlock, err := s.locks.lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	return s.updateLive(ctx, key, change)
}

// updateCached is update for a change that has no other effect. It tries the Feature as the cache shows it first, which costs the API server no
// read: a cache that is late leads to a conflict. Only a run that was written that way counts. Whatever else the cache shows (that there is
// nothing to write, that the attempt is over) is looked at again as update does, but for a Feature that is settled: then there is nothing to write, however
// late the cache is, or somebody writes it later. A nil settled knows of none.
func (s *store) updateCached(ctx context.Context, key types.NamespacedName, change runChange, settled func(*v1alpha1.Feature) bool) error {
	unlock, err := s.locks.lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	f := &v1alpha1.Feature{}
	if err := s.client.Get(ctx, key, f); err == nil {
		written, err := s.try(ctx, f, change)
		if written && !apierrors.IsConflict(err) || !written && err == nil && settled != nil && settled(f) {
			return err
		}
	}
	return s.updateLive(ctx, key, change)
}

func (s *store) updateLive(ctx context.Context, key types.NamespacedName, change runChange) error {
	for range conflictRetries {
		f := &v1alpha1.Feature{}
		if err := s.live.Get(ctx, key, f); err != nil {
			return featureError(key, err)
		}
		if _, err := s.try(ctx, f, change); !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("write status.run of Feature %s: others wrote first %d times in a row", key, conflictRetries)
}

// try to write a Feature's next run, where it differs; written says that it was asked for.
func (s *store) try(ctx context.Context, f *v1alpha1.Feature, change runChange) (written bool, err error) {
	next, err := change(f)
	next = runstatus.Bound(next)
	if err != nil || equality.Semantic.DeepEqual(next, runOf(f)) {
		return false, err
	}
	return true, s.apply(ctx, f, next)
}

func (s *store) apply(ctx context.Context, f *v1alpha1.Feature, run v1alpha1.RunStatus) error {
	// The API's JSON is what both types have in common: nothing that is added to a run can be forgotten here.
	encoded, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("encode status.run: %w", err)
	}
	config := applyv1alpha1.RunStatus()
	if err := json.Unmarshal(encoded, config); err != nil {
		return fmt.Errorf("decode status.run: %w", err)
	}
	feature := applyv1alpha1.Feature(f.Name, f.Namespace).WithUID(f.UID).WithResourceVersion(f.ResourceVersion).
		WithStatus(applyv1alpha1.FeatureStatus().WithRun(config))
	if err := s.client.Status().Apply(ctx, feature, FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write status.run of Feature %s/%s: %w", f.Namespace, f.Name, err)
	}
	return nil
}

// featureError tells a Feature that is gone from one that cannot be read.
func featureError(key types.NamespacedName, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("Feature %s does not exist any more: %w", key, identity.ErrForbidden)
	}
	return fmt.Errorf("read Feature %s: %w", key, err)
}

func runOf(f *v1alpha1.Feature) v1alpha1.RunStatus {
	if f.Status.Run == nil {
		return v1alpha1.RunStatus{}
	}
	return *f.Status.Run
}

// locks is one lock for each Feature that is being written.
type locks struct {
	mu   sync.Mutex
	held map[types.NamespacedName]*queue
}

type queue struct {
	// token is in the channel while nobody holds the lock.
	token chan struct{}
	users int
}

// lock waits for its turn, unless the context ends first.
func (l *locks) lock(ctx context.Context, key types.NamespacedName) (unlock func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[types.NamespacedName]*queue{}
	}
	t := l.held[key]
	if t == nil {
		t = &queue{token: make(chan struct{}, 1)}
		t.token <- struct{}{}
		l.held[key] = t
	}
	t.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(l.held, key)
		}
	}
	select {
	case <-t.token:
		return func() {
			t.token <- struct{}{}
			leave()
		}, nil
	case <-ctx.Done():
		leave()
		return nil, fmt.Errorf("wait to write Feature %s: %w", key, context.Cause(ctx))
	}
}
