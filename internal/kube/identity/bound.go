// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Bound returns the pod, with its uid, to which a token for our audience is bound. The caller has to check the permissions of that pod.
// Bound caches nothing.
func (a *Authenticator) Bound(ctx context.Context, token string) (types.NamespacedName, types.UID, error) {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return types.NamespacedName{}, "", fmt.Errorf("malformed token: %w", ErrUnauthenticated)
	}
	said, err := readClaims(token, a.options.Clock.Now())
	if err != nil {
		return types.NamespacedName{}, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	leave, err := a.gate.enter(ctx, sourceOf(ctx), said, false)
	if err != nil {
		return types.NamespacedName{}, "", err
	}
	defer leave()
	p, err := a.review(ctx, token)
	return p.pod, p.podUID, err
}
