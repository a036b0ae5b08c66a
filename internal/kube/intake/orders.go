// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/contract"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
	contractlocks "github.com/tidewaiter/tidewaiter/internal/kube/locks"
	"github.com/tidewaiter/tidewaiter/internal/kube/tally"
	"github.com/tidewaiter/tidewaiter/internal/kube/translate"
)

// getOrders answers with the orders as they are now, or waits until they differ from those that the caller has.
func (s *Server) getOrders(w http.ResponseWriter, r *http.Request, caller identity.Caller) {
	wait, err := waitSeconds(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	key := client.ObjectKeyFromObject(caller.Feature)
	release, ok := s.polls.take(key)
	if !ok {
		s.fail(w, r, errTooMany)
		return
	}
	defer release()
	defer s.sessions.enter(key, caller.Attempt, runOf(caller.Feature))()
	// Listening before looking: no change falls in between.
	changed, leave := s.hub.wait(key)
	defer leave()

	known := r.Header.Get("If-None-Match")
	feature := caller.Feature
	if known == "" {
		// A watchdog that starts: what it is told first comes from the API server, not from a cache that may be late.
		if feature, err = s.adopt(r.Context(), feature); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	body, tag, err := s.orders(r.Context(), feature, caller.Attempt)
	if err == nil && tag == known && wait > 0 {
		body, tag, err = s.waitForOrders(r.Context(), caller, known, wait, changed)
	}
	switch {
	case err != nil:
		s.fail(w, r, err)
	case tag == known:
		w.Header().Set("ETag", tag)
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("ETag", tag)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // whoever hung up asks again
	}
}

func waitSeconds(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get(contract.WaitQuery)
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 0 {
		return 0, &tally.Refusal{Reason: contract.WaitQuery + " is not a number of seconds"}
	}
	return time.Duration(min(seconds, contract.MaxWaitSeconds)) * time.Second, nil
}

// waitForOrders gives the orders once they differ from the known ones, or the known tag when they did not in time.
func (s *Server) waitForOrders(ctx context.Context, caller identity.Caller, known string, wait time.Duration, changed <-chan struct{}) ([]byte, string, error) {
	timer := s.options.Clock.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-changed:
		case <-timer.C():
			return nil, known, nil
		case <-s.draining:
			return nil, "", errDraining
		case <-ctx.Done():
			return nil, "", context.Cause(ctx)
		}
		f := &v1alpha1.Feature{}
		if err := s.options.Client.Get(ctx, client.ObjectKeyFromObject(caller.Feature), f); err != nil {
			return nil, "", featureError(client.ObjectKeyFromObject(caller.Feature), err)
		}
		if f.Status.Attempt < caller.Attempt {
			continue // the cache is older than what the caller was recognised by
		}
		body, tag, err := s.orders(ctx, f, caller.Attempt)
		switch {
		case errors.Is(err, identity.ErrForbidden):
			return nil, "", err
		case err != nil:
			// Such as a prompt whose ConfigMap was deleted: the watchdog goes on with the orders that it has.
			logr.FromContextOrDiscard(ctx).Info("Cannot tell the orders; those that were given last stay", "cause", err.Error())
		case tag != known:
			return body, tag, nil
		}
	}
}

// orders of a Feature's attempt and their tag.
func (s *Server) orders(ctx context.Context, f *v1alpha1.Feature, attempt int64) ([]byte, string, error) {
	if f.Status.Attempt != attempt {
		return nil, "", fmt.Errorf("attempt %d of Feature %s/%s is over: %w", attempt, f.Namespace, f.Name, identity.ErrForbidden)
	}
	effective, err := identity.Effective(ctx, s.options.Client, f, s.options.SystemNamespace)
	if err != nil {
		return nil, "", err
	}
	prompt, err := s.prompts.of(ctx, f)
	if err != nil {
		return nil, "", err
	}
	held, err := contractlocks.Held(ctx, s.options.Client, s.options.Live, s.options.SystemNamespace, f, s.options.Clock.Now())
	if err != nil {
		return nil, "", err
	}
	body, err := json.Marshal(translate.Orders(f, effective, prompt, held))
	if err != nil {
		return nil, "", fmt.Errorf("encode orders: %w", err)
	}
	sum := sha256.Sum256(body)
	return body, `"` + hex.EncodeToString(sum[:16]) + `"`, nil
}
