// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// writeCounter counts what a controller writes, and lets it die at one of its writes: instead of it, or right after it.
type writeCounter struct {
	client.Client
	writes, conflicts int
	// dieAt is the write (from 1) at which it dies; 0 is never.
	dieAt int
	// after lets the write happen first.
	after bool
}

var errDied = errors.New("the controller died")

func (c *writeCounter) write(do func() error) error {
	c.writes++
	dies := c.writes == c.dieAt
	if dies && !c.after {
		return errDied
	}
	err := do()
	if apierrors.IsConflict(err) {
		c.conflicts++
	}
	if dies {
		return errDied
	}
	return err
}

func (c *writeCounter) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.write(func() error { return c.Client.Apply(ctx, o, opts...) })
}

func (c *writeCounter) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return c.write(func() error { return c.Client.Patch(ctx, o, p, opts...) })
}

func (c *writeCounter) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.write(func() error { return c.Client.Create(ctx, o, opts...) })
}

func (c *writeCounter) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.write(func() error { return c.Client.Update(ctx, o, opts...) })
}

func (c *writeCounter) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.write(func() error { return c.Client.Delete(ctx, o, opts...) })
}

func (c *writeCounter) Status() client.SubResourceWriter {
	return statusCounter{c.Client.Status(), c}
}

type statusCounter struct {
	client.SubResourceWriter
	counter *writeCounter
}

func (c statusCounter) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return c.counter.write(func() error { return c.SubResourceWriter.Apply(ctx, o, opts...) })
}

func (c statusCounter) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return c.counter.write(func() error { return c.SubResourceWriter.Patch(ctx, o, p, opts...) })
}

// live is a whole life with locks, a lost pod, an agent that fails, and a request. settle stands for whatever
// the controller does.
func live(r *harness, settle func()) string {
	r.Helper()
	r.feature("login", wants("db", "openapi"))
	settle()
	r.reportRunning("login")
	settle()
	pod := r.pods()[0]
	r.losePod(&pod)
	settle()
	r.final("login", protocol.OutcomeAgentFailed, protocol.ReasonAgentFailed, "The agent exited with code 3.")
	settle()
	r.pass(10 * time.Second)
	settle()
	r.change("login", func(s *v1alpha1.FeatureSpec) {
		s.Requests = []v1alpha1.Request{{ID: "back", Rollback: &v1alpha1.RollbackRequest{Checkpoint: "login-1"}}}
	})
	settle()
	r.final("login", protocol.OutcomeDelivered, protocol.ReasonDelivered, "")
	settle()
	return r.result("login")
}

// result is all that a life leaves behind, without times and versions.
func (r *harness) result(name string) string {
	r.Helper()
	f := r.get(name)
	var b strings.Builder
	s := f.Status
	fmt.Fprintf(&b, "phase %s attempt %d failures %d lost %d head %s job %s/%s\n", s.Phase, s.Attempt, s.Failures, s.Lost, s.Head, s.Job.Name, s.Job.Run)
	for _, c := range s.Conditions {
		fmt.Fprintf(&b, "%s %s %s %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, q := range s.ObservedRequests {
		fmt.Fprintf(&b, "request %s %s %s\n", q.ID, q.State, q.Message)
	}
	fmt.Fprintf(&b, "locks %v, %d Leases\n", s.Locks, len(r.leases()))
	for _, list := range []client.ObjectList{&batchv1.JobList{}, &corev1.PersistentVolumeClaimList{}} {
		r.must(r.user.List(r.Context(), list, client.InNamespace(r.project)), "list %T", list)
		for line := range strings.Lines(r.world()) {
			words := strings.Fields(line)
			if !strings.Contains(words[0], "Pod") {
				fmt.Fprintln(&b, words[0], words[1])
			}
		}
	}
	return b.String()
}

// TestCrashPoints kills the controller before its first write and right after each one of a whole life (which, as a
// successor remembers nothing, is the same as instead of the next). A fresh one goes on from what it finds; the end is
// the same, and never were there two pods.
func TestCrashPoints(t *testing.T) {
	undisturbed := newHarness(t)
	counter := &writeCounter{Client: undisturbed.manager}
	undisturbed.writes = counter
	want := live(undisturbed, func() { undisturbed.settle("login") })
	if counter.writes < 20 || counter.conflicts > 0 {
		t.Fatalf("an undisturbed life has %d writes and %d conflicts", counter.writes, counter.conflicts)
	}
	for done := range counter.writes + 1 {
		t.Run(fmt.Sprintf("after-%d-writes", done), func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			dying := &writeCounter{Client: r.manager, dieAt: max(done, 1), after: done > 0}
			r.writes = dying
			got := live(r, func() { r.settle("login") })
			if got != want {
				t.Errorf("the end differs; undisturbed:\n%s\nafter the crash:\n%s", want, got)
			}
			if dying.conflicts > 0 {
				t.Errorf("%d conflicts with itself", dying.conflicts)
			}
		})
	}
}

// TestStaleCaches lets a controller that sees the Feature as it was at each moment of its life act on the world as it is
// now: a leader that was paused, or a cache that lags. It changes nothing.
func TestStaleCaches(t *testing.T) {
	r := newHarness(t)
	var past []*v1alpha1.Feature
	live(r, func() {
		past = append(past, r.get("login"))
		r.settle("login")
		past = append(past, r.get("login"))
	})
	r.feature("other", nil)
	r.settle("login", "other")
	want := r.world()
	for i, f := range past[:len(past)-1] {
		if _, err := r.reconciler().Reconcile(r.Context(), f.DeepCopy()); err != nil {
			t.Errorf("moment %d (attempt %d, %s): %v", i, f.Status.Attempt, f.Status.Phase, err)
		}
		if got := r.world(); got != want {
			t.Fatalf("moment %d (attempt %d, %s) changed the world:\n%s\ninto\n%s", i, f.Status.Attempt, f.Status.Phase, want, got)
		}
	}
}
