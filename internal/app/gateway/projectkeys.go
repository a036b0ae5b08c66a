// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

const (
	// keyAge is how long a project's key is remembered: a new one counts after that time, and so does a right that was taken away.
	keyAge = 30 * time.Second
	// failureAge is how long it is remembered that a key cannot be had: an agent that tries again and again costs the API server nothing,
	// and a user who has fixed it does not wait long.
	failureAge = 3 * time.Second
	// mostKeys bounds the keys that are remembered, and the failures.
	mostKeys = 1024
)

// projectKeys reads the keys that projects bring. Nothing grants the gateway the right to do so but a project's own Role.
type projectKeys struct {
	live    client.Reader
	account types.NamespacedName // of the gateway
	known   *expirable.LRU[projectKey, string]
	failed  *expirable.LRU[projectKey, error]
}

// projectKey is an entry of a Secret.
type projectKey struct {
	namespace string
	policy.SecretKey
}

func newProjectKeys(live client.Reader, account types.NamespacedName) *projectKeys {
	return &projectKeys{
		live: live, account: account,
		known:  expirable.NewLRU[projectKey, string](mostKeys, nil, keyAge),
		failed: expirable.NewLRU[projectKey, error](mostKeys, nil, failureAge),
	}
}

// read a key. Errors are for the agent and for people: they say what an administrator of the project does.
func (k *projectKeys) read(ctx context.Context, of projectKey) (string, error) {
	if key, ok := k.known.Get(of); ok {
		return key, nil
	}
	if err, ok := k.failed.Get(of); ok {
		return "", err
	}
	key, err := k.get(ctx, of)
	switch {
	case err == nil:
		k.known.Add(of, key)
	case ctx.Err() == nil: // a call that is given up says nothing of the key
		k.failed.Add(of, err)
	}
	return key, err
}

func (k *projectKeys) get(ctx context.Context, of projectKey) (string, error) {
	var s corev1.Secret
	at := types.NamespacedName{Namespace: of.namespace, Name: of.Secret}
	switch err := k.live.Get(ctx, at, &s); {
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("the gateway may not read the Secret %s: bind a Role that allows to get it to the service account %s", at, k.account)
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("the Secret %s of the policy's models does not exist: create it", at)
	case err != nil:
		return "", fmt.Errorf("the gateway cannot read the Secret %s at the moment; try again: %w", at, err)
	}
	key := bytes.TrimSpace(s.Data[of.Key])
	switch {
	case len(key) == 0:
		return "", fmt.Errorf("the Secret %s has no key %q: add it", at, of.Key)
	case len(key) > maxKey:
		return "", fmt.Errorf("the key %q of Secret %s has %d bytes, and the limit is %d", of.Key, at, len(key), maxKey)
	}
	return string(key), nil
}
