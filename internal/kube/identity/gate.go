// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

const (
	// maxReviews bounds how many tokens are looked into at a time that were never proved, so that floods of bad tokens
	// meet us before the API server; maxKnown bounds the others, which such a flood cannot hold up.
	maxReviews, maxKnown = 32, 32
	// maxFromSource bounds those of one address that are looked into or wait for it. All pods of a node may share one
	// where the network hides them.
	maxFromSource = 8
	// maxOfPod bounds those that claim to be of one pod: a pod has a token, and the next one.
	maxOfPod = 2
	// maxOfStrangeIssuers bounds those of issuers of whom no token was ever proved, once there is one of whom there was.
	maxOfStrangeIssuers = 4
	// maxIssuers bounds the issuers that are remembered: an API server has one, and for the time of a change two.
	maxIssuers = 8
)

// ErrBusy tells a caller to try again: too many tokens like its own are being checked.
var ErrBusy = errors.New("too many tokens are being reviewed")

// gate lets tokens to the API server. Tokens that were proved before have slots of their own. Of the others, no address,
// no pod and no unknown issuer can have more than a few: who sends thousands is told to come again and takes no place
// from anyone else.
type gate struct {
	strangers, known chan struct{}

	mu      sync.Mutex
	inside  map[string]int
	issuers map[string]bool
}

func newGate() *gate {
	return &gate{
		strangers: make(chan struct{}, maxReviews), known: make(chan struct{}, maxKnown),
		inside: map[string]int{}, issuers: map[string]bool{},
	}
}

// enter waits for a slot. leave must be called in the end.
func (g *gate) enter(ctx context.Context, source string, c claims, proved bool) (leave func(), err error) {
	if proved {
		return take(ctx, g.known, func() {})
	}
	back, ok := g.count(source, c)
	if !ok {
		return nil, ErrBusy
	}
	return take(ctx, g.strangers, back)
}

func take(ctx context.Context, slots chan struct{}, back func()) (leave func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() {
			<-slots
			back()
		}, nil
	case <-ctx.Done():
		back()
		return nil, fmt.Errorf("%w: %w", ErrBusy, context.Cause(ctx))
	}
}

// count counts one more token, or says that there are too many like it.
func (g *gate) count(source string, c claims) (back func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	limits := map[string]int{"source " + source: maxFromSource, "pod " + c.Kubernetes.Pod.UID: maxOfPod}
	if len(g.issuers) > 0 && !g.issuers[c.Issuer] {
		limits["unknown issuers"] = maxOfStrangeIssuers
	}
	for key, limit := range limits {
		if g.inside[key] >= limit {
			return nil, false
		}
	}
	for key := range limits {
		g.inside[key]++
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for key := range limits {
			if g.inside[key]--; g.inside[key] == 0 {
				delete(g.inside, key)
			}
		}
	}, true
}

// prove remembers the issuer of a token that was proved.
func (g *gate) prove(issuer string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.issuers) < maxIssuers {
		g.issuers[issuer] = true
	}
}

// source is the key of an address in a context.
type source struct{}

// From notes the address that a token came from, with or without a port: what one address sends is bounded.
func From(ctx context.Context, address string) context.Context {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return context.WithValue(ctx, source{}, address)
}

func sourceOf(ctx context.Context) string {
	address, _ := ctx.Value(source{}).(string)
	return address
}
