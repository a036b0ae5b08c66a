// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
)

// connected says whether a Feature is written down as connected to a replica.
func connected(t *testing.T, f *v1alpha1.Feature, replica string, want bool) func() bool {
	t.Helper()
	return func() bool {
		status := run(t, f)
		return status.Connected != nil && *status.Connected == want && status.Replica == replica
	}
}

func (r *replica) hangUp(t *testing.T) {
	t.Helper()
	r.client.CloseIdleConnections()
	until(t, "no poll is open", func() bool { return r.open() == 0 })
}

// TestConnectionsAreWrittenWhenTheyChange: not with each poll, and by the replica that has them.
func TestConnectionsAreWrittenWhenTheyChange(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	a, b := newReplica(t, "a", clock), newReplica(t, "b", clock)
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	etag := a.get(t, login.Token, "").header.Get("ETag")
	until(t, "it is connected", connected(t, login.Feature, "a", true))
	first := read(t, login.Feature)

	for range 3 {
		clock.Step(4 * time.Second) // a gap between two polls
		poll := a.poll(t, login.Token, etag)
		until(t, "the poll has a limit", clock.HasWaiters)
		clock.Step(30 * time.Second)
		<-poll
	}
	if now := read(t, login.Feature); now.ResourceVersion != first.ResourceVersion {
		t.Errorf("polls are written down: %+v", now.Status.Run)
	}

	// The Service sends the next poll to the other replica.
	poll := b.poll(t, login.Token, etag)
	until(t, "it is connected to the other replica", connected(t, login.Feature, "b", true))
	if since := run(t, login.Feature).ConnectionTransitionTime; !since.Equal(first.Status.Run.ConnectionTransitionTime) {
		t.Errorf("it has been connected all the time, but since %s and not %s", since, first.Status.Run.ConnectionTransitionTime)
	}
	clock.Step(breakAfter) // the first replica takes the connection for broken, which is none of its business by now
	moved := read(t, login.Feature)
	until(t, "the first replica has forgotten it", func() bool {
		a.server.sessions.mu.Lock()
		defer a.server.sessions.mu.Unlock()
		return len(a.server.sessions.open) == 0
	})
	if now := read(t, login.Feature); now.ResourceVersion != moved.ResourceVersion {
		t.Errorf("a replica wrote about another one's connection: %+v", now.Status.Run)
	}

	clock.Step(30 * time.Second)
	<-poll
	b.hangUp(t)
	until(t, "the end of the poll is noticed", clock.HasWaiters)
	clock.Step(breakAfter - time.Second)
	if !connected(t, login.Feature, "b", true)() {
		t.Error("a short gap counts as a break")
	}
	clock.Step(time.Second)
	until(t, "it is written down as broken", connected(t, login.Feature, "b", false))
	if at := run(t, login.Feature).ConnectionTransitionTime; !at.Equal(ptr.To(metav1.NewTime(clock.Now().Truncate(time.Second)))) {
		t.Errorf("it broke at %s, and it is %s", at, clock.Now())
	}
	b.get(t, login.Token, "")
	until(t, "it is back", connected(t, login.Feature, "b", true))
}

// TestAConnectionThatComesBackStays: the Service sends a watchdog to another replica for one poll and back again. When
// that replica takes it for lost, the one that has it says otherwise.
func TestAConnectionThatComesBackStays(t *testing.T) {
	for name, hasSeen := range map[string]bool{"its cache shows the other replica": true, "its cache is late": false} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Now())
			a, b := newReplica(t, "a", clock), newReplica(t, "b", clock)
			login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
			etag := a.get(t, login.Token, "").header.Get("ETag")
			until(t, "it is connected", connected(t, login.Feature, "a", true))
			var poll <-chan answer
			if !hasSeen {
				poll = a.poll(t, login.Token, etag) // opened before the other one writes
			}
			b.get(t, login.Token, "")
			until(t, "it is connected to the other replica", connected(t, login.Feature, "b", true))
			if hasSeen {
				poll = a.poll(t, login.Token, etag)
				until(t, "it is connected to the first again", connected(t, login.Feature, "a", true))
			}
			until(t, "the poll has a limit", clock.HasWaiters)
			clock.Step(breakAfter)
			until(t, "the other replica has forgotten it", func() bool {
				b.server.sessions.mu.Lock()
				defer b.server.sessions.mu.Unlock()
				return len(b.server.sessions.open) == 0
			})
			until(t, "it is connected to the first", connected(t, login.Feature, "a", true))
			clock.Step(30 * time.Second)
			<-poll
		})
	}
}

// TestTheNextAttemptConnects although the one before it has just gone.
func TestTheNextAttemptConnects(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	r := newReplica(t, "a", clock)
	first := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	r.get(t, first.Token, "")
	until(t, "it is connected", connected(t, first.Feature, "a", true))
	second := attempt.Start(t, env, read(t, first.Feature))
	r.get(t, second.Token, "")
	until(t, "the second is", func() bool { return run(t, first.Feature).Epoch == 2 && connected(t, first.Feature, "a", true)() })
}

// TestAReplicaThatEndsLeavesConnectionsToTheOthers.
func TestAReplicaThatEndsLeavesConnectionsToTheOthers(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	a, b := newReplica(t, "a", clock), newReplica(t, "b", clock)
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	poll := a.poll(t, login.Token, a.get(t, login.Token, "").header.Get("ETag"))
	until(t, "it is connected", connected(t, login.Feature, "a", true))
	a.stop()
	<-poll
	if err := <-a.stopped; err != nil {
		t.Error(err)
	}
	a.stopped <- nil
	b.get(t, login.Token, "")
	until(t, "the other has it", connected(t, login.Feature, "b", true))
	clock.Step(breakAfter - time.Second)
	if !connected(t, login.Feature, "b", true)() {
		t.Error("the end of a replica is written down as the end of the connection")
	}
}

// TestAConnectionIsWrittenInTheEnd although the API server fails a few times.
func TestAConnectionIsWrittenInTheEnd(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	r.failing.Store(3)
	r.get(t, login.Token, "")
	until(t, "it is connected", connected(t, login.Feature, "a", true))
}

// TestASecondPollWritesNoConnection: the watchdog polls again before the cache shows the connection that the first poll began.
func TestASecondPollWritesNoConnection(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	key := client.ObjectKeyFromObject(login.Feature)
	s := newSessions("a", newReplica(t, "a", clock).server.sessions.store, clock) // its queue has no workers
	defer s.queue.ShutDown()
	poll := func(known v1alpha1.RunStatus) { s.enter(key, 1, known)() }
	queued := func(want int, when string) {
		t.Helper()
		if n := s.queue.Len(); n != want {
			t.Fatalf("%d writes are queued %s; want %d", n, when, want)
		}
	}
	late := v1alpha1.RunStatus{}
	poll(late)
	queued(1, "after the first poll")
	s.queue.Get()
	poll(late)
	if err := s.settle(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	s.queue.Done(key)
	queued(0, "after a poll during the first write")
	poll(late)
	queued(0, "after a poll that shows an earlier attempt")
	poll(v1alpha1.RunStatus{Epoch: 1, Connected: new(true), Replica: "b"})
	queued(1, "after a poll that shows another replica")
}

func TestLease(t *testing.T) {
	namespace, clock := env.Project(t), clocktesting.NewFakeClock(time.Now())
	left := func(name string, age time.Duration) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{LabelReplica: "manager"}}}
		l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(clock.Now().Add(-age)))
		if err := env.Client.Create(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	dead, resting := left("dead", 2*time.Hour), left("resting", time.Minute)
	exists := func(l *coordinationv1.Lease) bool {
		err := env.Client.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(l), l)
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	lease := &Lease{Live: env.Client, Namespace: namespace, Replica: "manager-x", Clock: clock, Logger: testr.New(t)}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- lease.Start(ctx) }()
	own := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manager-x"}}
	until(t, "the replica has a Lease", func() bool { return exists(own) })
	if *own.Spec.LeaseDurationSeconds != 30 || *own.Spec.HolderIdentity != "manager-x" || own.Labels[LabelReplica] == "" {
		t.Errorf("the Lease is %+v", own)
	}
	if exists(dead) || !exists(resting) {
		t.Errorf("the Lease of a dead replica is there: %v, that of a slow one: %v", exists(dead), exists(resting))
	}
	before := own.Spec.RenewTime.Time
	until(t, "it waits", clock.HasWaiters)
	clock.Step(leaseRenewal)
	until(t, "it is renewed", func() bool { return exists(own) && own.Spec.RenewTime.After(before) })
	until(t, "it waits", clock.HasWaiters)
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if exists(own) {
		t.Error("the Lease outlives an orderly end")
	}
}
