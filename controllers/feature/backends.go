// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/translate"
)

// backendsAge is how old the configuration of backends may be: the manager does not watch it.
const backendsAge = 10 * time.Second

// backends knows which backends the gateway is configured with. The zero value is ready.
type backends struct {
	mu    sync.Mutex
	read  time.Time
	known *models.Config
	hash  string
}

// config in effect and its hash; nil and empty while only a broken one was seen. What is broken is the gateway's to tell, which goes on
// with the last good one, and so does this.
func (b *backends) config(ctx context.Context, live client.Reader, namespace string, now time.Time) (*models.Config, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.read.IsZero() && now.Sub(b.read) < backendsAge {
		return b.known, b.hash, nil
	}
	var source corev1.ConfigMap
	err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: protocol.BackendsConfigMap}, &source)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, "", fmt.Errorf("read ConfigMap %s: %w", protocol.BackendsConfigMap, err)
	}
	b.read = now
	text := source.Data[protocol.BackendsKey]
	if config, err := translate.Backends(text); err == nil {
		digest := sha256.Sum256([]byte(text))
		b.known, b.hash = &config, hex.EncodeToString(digest[:8]) // of no text at all, where nobody has made any
	}
	return b.known, b.hash, nil
}
