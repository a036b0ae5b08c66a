// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity finds the Feature of a pod's token. Labels and owner references prove nothing, because anyone with permission
// to create pods can write them and mint tokens for our audience. The token must be bound to the one pod that the feature controller has
// pinned in the Feature's status.
package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

const (
	// positiveTTL is how long a stolen token of a deleted pod may still pass.
	positiveTTL = 30 * time.Second
	// negativeTTL keeps a caller that repeats a bad token away from the API server.
	negativeTTL = 5 * time.Second
	// cacheSize bounds the tokens remembered that were proved, two for each of 10,000 Features, and, in a memory of their
	// own, the bad ones: however many there are, they push no good one out.
	cacheSize = 20_000
	// maxToken bounds a token in bytes; projected ones have 1 to 2 KiB.
	maxToken = 16 << 10
	// reviewTimeout bounds the calls for one token; they outlive the request that asked first, as others may wait.
	reviewTimeout = 10 * time.Second
)

// Errors of Authenticate. Any other is about the API server: it is to be tried again.
var (
	// ErrUnauthenticated: the token is not one of a pod for our audience, or not valid any more.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrForbidden: the token is that of a pod which is not the pod of a Feature's current attempt.
	ErrForbidden = errors.New("not the pod of a Feature's current attempt")
	// ErrTooEarly: the controller has not pinned the pod yet.
	ErrTooEarly = errors.New("the pod is not known yet")
)

// Caller is a pod that was proved to run a Feature's current attempt.
type Caller struct {
	// Feature as it was when it named the pod.
	Feature *v1alpha1.Feature
	// Attempt that the pod runs.
	Attempt int64
	// Pod and its uid.
	Pod    types.NamespacedName
	PodUID types.UID
}

// Options of an Authenticator; all are required.
type Options struct {
	// Client reviews tokens, and reads Features from a cache.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
}

// Authenticator knows callers by their tokens. Make it with New.
type Authenticator struct {
	options Options
	// proved has tokens that proved something, also after it is time to ask again; refused has the bad ones.
	proved, refused *lru.Cache[[sha256.Size]byte, entry]
	flights         singleflight.Group
	gate            *gate
}

// entry is what is remembered of a token: what it proves, or why it proves nothing.
type entry struct {
	proof proof
	err   error
	until time.Time
}

// New makes an Authenticator.
func New(options Options) (*Authenticator, error) {
	proved, err := lru.New[[sha256.Size]byte, entry](cacheSize)
	if err != nil {
		return nil, fmt.Errorf("token cache: %w", err)
	}
	refused, err := lru.New[[sha256.Size]byte, entry](cacheSize)
	if err != nil {
		return nil, fmt.Errorf("token cache: %w", err)
	}
	return &Authenticator{options: options, proved: proved, refused: refused, gate: newGate()}, nil
}

// Authenticate returns the caller that holds a token. What the token proves is remembered for 30 seconds; that the
// Feature still names the pod is checked each time.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (Caller, error) {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Caller{}, fmt.Errorf("malformed token: %w", ErrUnauthenticated)
	}
	found, err := a.proof(ctx, token)
	if err != nil {
		return Caller{}, err
	}
	return a.match(ctx, found)
}

// proof says what a token proves, from memory or by asking once for all who wait for it.
func (a *Authenticator) proof(ctx context.Context, token string) (proof, error) {
	key := sha256.Sum256([]byte(token))
	now := a.options.Clock.Now()
	known, before := a.proved.Get(key)
	if before && now.Before(known.until) {
		return known.proof, nil
	}
	if bad, ok := a.refused.Get(key); ok && now.Before(bad.until) {
		return proof{}, bad.err
	}
	said, err := readClaims(token, now)
	if err != nil {
		return proof{}, err // cheaper to find out again than to remember
	}
	answer := a.flights.DoChan(string(key[:]), func() (any, error) {
		// The first to ask may hang up while others wait.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		leave, err := a.gate.enter(ctx, sourceOf(ctx), said, before)
		if err != nil {
			return proof{}, err
		}
		defer leave()
		asked := a.options.Clock.Now()
		found, err := a.prove(ctx, token)
		switch {
		case err == nil:
			a.gate.prove(said.Issuer)
			a.proved.Add(key, entry{proof: found, until: asked.Add(positiveTTL)})
		case errors.Is(err, ErrUnauthenticated), errors.Is(err, ErrForbidden):
			a.proved.Remove(key)
			a.refused.Add(key, entry{err: err, until: asked.Add(negativeTTL)})
		}
		return found, err
	})
	select {
	case result := <-answer:
		found, _ := result.Val.(proof)
		return found, result.Err
	case <-ctx.Done():
		return proof{}, context.Cause(ctx)
	}
}

// match says whether the Feature names the pod. A cache that does not say so may be late: the API server is asked then.
func (a *Authenticator) match(ctx context.Context, p proof) (Caller, error) {
	cached := &v1alpha1.Feature{}
	if err := a.options.Client.Get(ctx, p.feature, cached); err == nil && p.check(cached) == nil {
		return p.caller(cached), nil
	}
	answer := a.flights.DoChan("feature "+p.feature.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		live := &v1alpha1.Feature{}
		return live, a.options.Live.Get(ctx, p.feature, live)
	})
	select {
	case result := <-answer:
		if apierrors.IsNotFound(result.Err) {
			return Caller{}, fmt.Errorf("Feature %s does not exist: %w", p.feature, ErrForbidden)
		}
		if result.Err != nil {
			return Caller{}, fmt.Errorf("read Feature %s: %w", p.feature, result.Err)
		}
		live, _ := result.Val.(*v1alpha1.Feature)
		live = live.DeepCopy() // others wait for the same answer
		if err := p.check(live); err != nil {
			return Caller{}, err
		}
		return p.caller(live), nil
	case <-ctx.Done():
		return Caller{}, context.Cause(ctx)
	}
}
