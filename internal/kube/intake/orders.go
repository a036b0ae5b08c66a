// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/revision"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
)

// errBehind says that this replica cannot see what the caller has been told by another one.
var errBehind = errors.New("this replica is behind the one that gave the last orders; ask again")

// question is what a watchdog asks when it asks for orders.
type question struct {
	feature types.NamespacedName
	attempt int64
	// known is the ETag of the orders that it has; empty for none. seen is how new they were.
	known string
	seen  revision.Revision
	// wait for others at most.
	wait time.Duration
	// hears says that it can be told of inquiries, asked is the last that it was told of, and uid that of the Feature.
	hears bool
	asked string
	uid   types.UID
}

func ask(r *http.Request, caller identity.Caller) (question, error) {
	q := question{
		feature: client.ObjectKeyFromObject(caller.Feature), attempt: caller.Attempt,
		known: r.Header.Get("If-None-Match"),
		hears: r.URL.Query().Has(protocol.AskedQuery), asked: r.URL.Query().Get(protocol.AskedQuery), uid: caller.Feature.UID,
	}
	var err error
	if q.seen, err = revision.Parse(r.Header.Get(protocol.RevisionHeader)); err != nil {
		return q, &runstatus.Refusal{Reason: protocol.RevisionHeader + ": " + err.Error()}
	}
	if version := r.URL.Query().Get(protocol.VersionQuery); version != strconv.Itoa(protocol.OrdersVersion) {
		return q, &runstatus.Refusal{Reason: fmt.Sprintf("the watchdog reads version %q of orders, and this manager gives version %d; a new attempt has a watchdog of its version",
			plain.CutBytes(version, 20), protocol.OrdersVersion)}
	}
	q.wait, err = waitSeconds(r)
	return q, err
}

func waitSeconds(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get(protocol.WaitQuery)
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 0 {
		return 0, &runstatus.Refusal{Reason: protocol.WaitQuery + " is not a number of seconds"}
	}
	return time.Duration(min(seconds, protocol.MaxWaitSeconds)) * time.Second, nil
}

// getOrders answers with the orders as they are now, or waits until they differ from those that the caller has.
func (s *Server) getOrders(w http.ResponseWriter, r *http.Request, caller identity.Caller) {
	q, err := ask(r, caller)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	release, ok := s.polls.take(q.feature)
	if !ok {
		s.fail(w, r, errTooMany)
		return
	}
	defer release()
	defer s.sessions.enter(q.feature, q.attempt, runOf(caller.Feature))()
	// Listening before looking: no change falls in between.
	changed, leave := s.hub.wait(q.feature)
	defer leave()

	now, err := s.first(r.Context(), q, caller.Feature)
	if err == nil && now.tag == q.known && q.wait > 0 && s.inquiries.untold(r.Context(), q) == "" {
		now, err = s.waitForOrders(r.Context(), q, now, changed)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.tell(w, r, q, now)
}

// tell sends orders, or says that they are the known ones.
func (s *Server) tell(w http.ResponseWriter, r *http.Request, q question, now sight) {
	header := w.Header()
	if inquiry := s.inquiries.untold(r.Context(), q); inquiry != "" {
		header.Set(protocol.InquiryHeader, inquiry)
	}
	header.Set("ETag", now.tag)
	header.Set(protocol.RevisionHeader, now.revision.Max(q.seen).String())
	header.Set(protocol.NextCheckpointHeader, strconv.FormatInt(features.NextCheckpoint(now.feature), 10))
	if now.tag == q.known {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body, err := s.bodies.of(r.Context(), now)
	if err != nil {
		header.Del("ETag")
		s.fail(w, r, err)
		return
	}
	header.Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a watchdog that hung up asks again
}

// first looks at the orders when a poll begins. What a watchdog is told first comes from the API server, not from
// caches that may be late; but the policies come from the cache where it shows the one that the controller has noted in the Feature.
func (s *Server) first(ctx context.Context, q question, f *v1alpha1.Feature) (sight, error) {
	if q.known != "" {
		return s.see(ctx, q, f)
	}
	f, err := s.adopt(ctx, f)
	if err != nil {
		return sight{}, err
	}
	if noted := f.Status.Policy; noted != nil {
		agreed := source{policies: s.options.Client, locks: s.options.Live, asOf: s.policiesAsOf(), fresh: true}
		now, err := s.look(ctx, q, f, agreed)
		if err == nil && now.orders.Policy.Hash == noted.Hash && !now.revision.Behind(q.seen) {
			return now, nil
		}
	}
	return s.look(ctx, q, f, s.live())
}

// see looks at the orders from caches, and from the API server before anything is told that the caches may be too late
// for: orders never go back.
func (s *Server) see(ctx context.Context, q question, f *v1alpha1.Feature) (sight, error) {
	now, err := s.look(ctx, q, f, s.cached())
	if err != nil || now.tag == q.known {
		return now, err
	}
	if !now.revision.Behind(q.seen) && len(f.Status.Locks) == 0 {
		return now, nil
	}
	live := &v1alpha1.Feature{}
	if err := s.options.Live.Get(ctx, q.feature, live); err != nil {
		return sight{}, featureError(q.feature, err)
	}
	now, err = s.look(ctx, q, live, s.live())
	if err == nil && now.tag != q.known && now.revision.Behind(q.seen) {
		err = errBehind
	}
	return now, err
}

// waitForOrders gives the orders once they differ from the known ones, or the known ones when they did not in time, or
// something is asked of the caller.
func (s *Server) waitForOrders(ctx context.Context, q question, now sight, changed <-chan struct{}) (sight, error) {
	timer := s.options.Clock.NewTimer(q.wait)
	defer timer.Stop()
	for {
		select {
		case <-changed:
		case <-timer.C():
			return now, nil
		case <-s.draining:
			return sight{}, errDraining
		case <-ctx.Done():
			return sight{}, context.Cause(ctx)
		}
		if s.inquiries.untold(ctx, q) != "" {
			return now, nil
		}
		f := &v1alpha1.Feature{}
		if err := s.options.Client.Get(ctx, q.feature, f); err != nil {
			return sight{}, featureError(q.feature, err)
		}
		if f.Status.Attempt < q.attempt {
			continue // the cache is older than what the caller was recognised by
		}
		next, err := s.see(ctx, q, f)
		switch {
		case errors.Is(err, identity.ErrForbidden):
			return sight{}, err
		case errors.Is(err, errBehind):
			// The cache learns of it in a moment, and wakes this poll.
		case err != nil:
			// Such as a prompt whose ConfigMap was deleted: the watchdog goes on with the orders that it has.
			logr.FromContextOrDiscard(ctx).Info("Cannot make orders; the last ones stay in effect", "cause", err.Error())
		case next.tag != q.known:
			return next, nil
		default:
			now = next
		}
	}
}

// attemptOver says that a caller's attempt is not the current one.
func attemptOver(f *v1alpha1.Feature, attempt int64) error {
	return fmt.Errorf("attempt %d of Feature %s/%s is over: %w", attempt, f.Namespace, f.Name, identity.ErrForbidden)
}
