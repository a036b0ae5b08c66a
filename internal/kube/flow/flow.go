// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flow runs the steps of a reconcile, lets the status be written once, and sends events after that. A step that does not succeed
// returns its kind of ending (Ending), and flow turns it into a result for the work queue.
package flow

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// conflictPause is how long to wait for the event of the write that was in the way, before looking again without it.
const conflictPause = time.Second

// Step reads or writes other objects, or decides. It never writes the status, logs and returns, sleeps, or reads the clock.
type Step[S any] func(context.Context, S) error

// Run takes the steps one after the other and stops at the first that ends with an error.
func Run[S any](ctx context.Context, scope S, steps ...Step[S]) error {
	for _, step := range steps {
		if err := step(ctx, scope); err != nil {
			return err
		}
	}
	return nil
}

// Close is what happens after the steps, however they ended.
type Close struct {
	// Write writes the status; nil when it is as it should be, or cannot be known.
	Write func(context.Context) error
	// Tell sends events; Finish calls it only after the status is written, or if it need not be written.
	Tell func()
	// Recheck is when to reconcile again without an event; 0 is never.
	Recheck time.Duration
}

// Finish writes the status once, sends events, and turns err into a result.
func Finish(ctx context.Context, err error, end Close) (ctrl.Result, error) {
	if end.Write != nil {
		if writeErr := end.Write(ctx); writeErr != nil {
			if err != nil {
				// The next reconcile meets it again; what decides now is that the status is not written.
				log.FromContext(ctx).V(1).Info("A step did not succeed either", "cause", err.Error())
			}
			return result(ctx, fmt.Errorf("write status: %w", writeErr), end.Recheck)
		}
	}
	if end.Tell != nil {
		end.Tell()
	}
	return result(ctx, err, end.Recheck)
}

// result says when to look again. Conflict and not-found are what happens when others write too.
func result(ctx context.Context, err error, recheck time.Duration) (ctrl.Result, error) {
	switch {
	case err == nil:
		return ctrl.Result{RequeueAfter: recheck}, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		log.FromContext(ctx).V(1).Info("Looking again: an object changed meanwhile", "cause", err.Error())
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	e := Of(err)
	switch e.Kind {
	case Wait, Quiet, Stall:
		log.FromContext(ctx).V(1).Info("Waiting", "reason", e.Reason, "cause", err.Error())
		return ctrl.Result{RequeueAfter: sooner(e.After, recheck)}, nil
	default:
		return ctrl.Result{}, err
	}
}

// sooner of two times of which 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
