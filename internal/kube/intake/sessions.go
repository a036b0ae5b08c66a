// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
)

const (
	// breakAfter is how long a watchdog may have no poll open before its connection counts as broken: between two polls
	// there is always a gap.
	breakAfter = 5 * time.Second
	// sessionWorkers write beginnings and ends of connections.
	sessionWorkers = 4
)

// sessions know which watchdogs are connected to this replica, and write it down when that begins or breaks, not when a
// poll does: the open poll is the heartbeat, and this replica's Lease vouches for it.
type sessions struct {
	replica string
	store   *store
	clock   clock.WithDelayedExecution
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu   sync.Mutex
	open map[types.NamespacedName]*session
}

// session is one watchdog's connection to this replica.
type session struct {
	epoch  int64
	polls  int
	broken bool
	timer  clock.Timer
	// pending says that a write of the connection is queued or under way.
	pending bool
	// settled says that the connection was written, or was there already. A run of an earlier attempt then comes from a cache that is late.
	settled bool
}

func newSessions(replica string, s *store, c clock.WithDelayedExecution) *sessions {
	return &sessions{
		replica: replica, store: s, clock: c, open: map[types.NamespacedName]*session{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
	}
}

// enter notes that a poll of an attempt is open; leave must be called when it ends. known is the Feature's run as it was
// seen last: where it does not name this replica, another one has served the watchdog meanwhile, and is about to note
// that it lost it. A watchdog polls again within milliseconds, before the cache shows the connection: to write that again
// would only meet a conflict.
func (s *sessions) enter(key types.NamespacedName, epoch int64, known v1alpha1.RunStatus) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.open[key]
	if current == nil || current.epoch != epoch || current.broken {
		if current != nil && current.timer != nil {
			current.timer.Stop()
		}
		current = &session{epoch: epoch, pending: true}
		s.open[key] = current
		s.queue.Add(key)
	} else if !current.pending && !s.written(epoch, known) && (!current.settled || known.Epoch == epoch) {
		current.pending = true
		s.queue.Add(key)
	}
	if current.timer != nil {
		current.timer.Stop()
		current.timer = nil
	}
	current.polls++
	return func() { s.leave(key, current) }
}

// written says whether a run names this replica as the one that an attempt's watchdog is connected to.
func (s *sessions) written(epoch int64, run v1alpha1.RunStatus) bool {
	return run.Epoch == epoch && run.Replica == s.replica && ptr.Deref(run.Connected, false)
}

// noticed writes the connection down again where a Feature is said to be disconnected while a poll is open: the replica
// that served the watchdog for a moment could not know of it. A run that names another replica as connected is left
// alone, so that two replicas with an open poll each do not write in turns.
func (s *sessions) noticed(f *v1alpha1.Feature) {
	key := types.NamespacedName{Namespace: f.Namespace, Name: f.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.open[key]
	if current == nil || current.polls == 0 || current.epoch != f.Status.Attempt {
		return
	}
	if run := runOf(f); run.Epoch == current.epoch && run.Connected != nil && !*run.Connected {
		s.queue.Add(key)
	}
}

func (s *sessions) leave(key types.NamespacedName, left *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left.polls--
	if left.polls > 0 || s.open[key] != left {
		return
	}
	left.timer = s.clock.AfterFunc(breakAfter, func() { s.breakOff(key, left) })
}

func (s *sessions) breakOff(key types.NamespacedName, silent *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if silent.polls == 0 && s.open[key] == silent {
		silent.broken = true
		s.queue.Add(key)
	}
}

// run writes until the context ends. Connections that are open then are left to the replica that takes them over.
func (s *sessions) run(ctx context.Context) {
	var workers sync.WaitGroup
	for range sessionWorkers {
		workers.Go(func() {
			for s.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	s.queue.ShutDown()
	workers.Wait()
}

func (s *sessions) next(ctx context.Context) bool {
	key, shutdown := s.queue.Get()
	if shutdown {
		return false
	}
	defer s.queue.Done(key)
	if err := s.settle(ctx, key); err != nil {
		if ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot record a connection; trying again", "feature", key)
			s.queue.AddRateLimited(key)
		}
		return true
	}
	s.queue.Forget(key)
	return true
}

// settle writes how a connection is by now.
func (s *sessions) settle(ctx context.Context, key types.NamespacedName) error {
	s.mu.Lock()
	current := s.open[key]
	if current == nil {
		s.mu.Unlock()
		return nil
	}
	epoch, broken := current.epoch, current.broken
	s.mu.Unlock()
	settled := false
	err := s.store.updateCached(ctx, key, func(f *v1alpha1.Feature) (v1alpha1.RunStatus, error) {
		run := runOf(f)
		settled = f.Status.Attempt == epoch
		switch {
		case !settled:
			return run, nil
		case broken:
			return runstatus.Disconnect(run, epoch, s.replica, s.clock.Now()), nil
		default:
			return runstatus.Connect(run, epoch, s.replica, s.clock.Now()), nil
		}
	}, func(f *v1alpha1.Feature) bool {
		run := runOf(f)
		if broken { // a run that has ended stays so
			return run.Final != nil && run.Final.Epoch == epoch
		}
		return s.written(epoch, run) // where the cache is too late for that, the next poll and noticed come back to it
	})
	if err != nil && !errors.Is(err, identity.ErrForbidden) {
		return fmt.Errorf("connection of Feature %s: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	current.pending, current.settled = false, settled
	if broken && s.open[key] == current {
		delete(s.open, key)
	}
	return nil
}
