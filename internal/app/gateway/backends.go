// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	hostbackends "github.com/tidewaiter/tidewaiter/internal/gateway/backends"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/kube/modelbackends"
)

// maxKey bounds a key in bytes; keys of providers have some hundred.
const maxKey = 16 << 10

// watched bounds what the gateway watches of ConfigMaps and Secrets to the two objects that it may read.
func watched(namespace string) map[client.Object]cache.ByObject {
	only := func(name string) cache.ByObject {
		return cache.ByObject{
			Namespaces: map[string]cache.Config{namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", name)}},
			Transform:  dataOnly,
		}
	}
	return map[client.Object]cache.ByObject{&corev1.ConfigMap{}: only(protocol.BackendsConfigMap), &corev1.Secret{}: only(protocol.KeysSecret)}
}

// dataOnly keeps of an object what the gateway uses. The annotation of kubectl apply has all keys once more.
func dataOnly(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
		object.SetAnnotations(nil)
		object.SetLabels(nil)
	}
	return o, nil
}

// backends follows the configuration of backends and their keys. It reports an unusable configuration, and the last good one stays in force.
type backends struct {
	// objects reads from the cache.
	objects   client.Reader
	namespace string
	log       *slog.Logger
	// told of the configuration that is in use now; nil where the one that was read is broken.
	told func(*modelserver.Table)

	// says what is in force, to managers.
	says func(coremodels.InForce)

	changed chan struct{}
	table   atomic.Pointer[modelserver.Table]
	seen    [sha256.Size]byte
	// inForce is what is said, but for a problem.
	inForce coremodels.InForce
}

func newBackends(objects client.Reader, namespace string, log *slog.Logger, told func(*modelserver.Table), says func(coremodels.InForce)) *backends {
	return &backends{objects: objects, namespace: namespace, log: log, told: told, says: says, changed: make(chan struct{}, 1)}
}

// watch the two objects.
func (b *backends) watch(ctx context.Context, informers cache.Informers) error {
	for _, kind := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc: func(any) { b.change() }, UpdateFunc: func(any, any) { b.change() }, DeleteFunc: func(any) { b.change() },
			})
		}
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return nil
}

func (b *backends) change() {
	select {
	case b.changed <- struct{}{}:
	default: // one is on its way: it sees this change too
	}
}

// NeedLeaderElection is false: every replica serves.
func (*backends) NeedLeaderElection() bool { return false }

// Start takes over what there is, and then each change.
func (b *backends) Start(ctx context.Context) error {
	for {
		b.load(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-b.changed:
		}
	}
}

// load takes the objects over where they have changed.
func (b *backends) load(ctx context.Context) {
	text, keys, err := b.read(ctx)
	if err != nil {
		b.log.ErrorContext(ctx, "Cannot read the backends; the last good configuration stays", "error", err.Error())
		b.seen = [sha256.Size]byte{} // what was seen before may come back
		b.refuse(err)
		return
	}
	seen := digest(text, keys)
	if seen == b.seen {
		return
	}
	b.seen = seen // a broken configuration is reported once
	var table *modelserver.Table
	config, err := modelbackends.Read(text)
	if err == nil {
		table, err = modelserver.NewTable(config, keys, hostbackends.Options{})
	}
	if err != nil {
		b.refuse(err)
		b.log.ErrorContext(ctx, "Cannot use the configuration of backends; the last good one stays", "configMap", protocol.BackendsConfigMap, "error", err.Error())
		return
	}
	if old := b.table.Swap(table); old != nil {
		old.Close()
	}
	b.told(table)
	b.inForce = coremodels.InForce{Digest: hex.EncodeToString(textDigest(text)), Backends: config.Outline().Backends, Missing: table.Missing()}
	b.says(b.inForce)
	b.log.InfoContext(ctx, "Backends", "ready", table.Ready())
	if list := config.Windowless(); len(list) > 0 {
		b.log.InfoContext(ctx, "Models have no contextWindow and are not well known: the watchdog cannot report the condition ContextPressure for them", "models", list)
	}
	if list := config.Unpriced(); len(list) > 0 {
		b.log.InfoContext(ctx, "Models have no prices: their calls count as free, and a Feature whose budget limits the cost cannot ask them", "models", list)
	}
}

// refuse a configuration: what is in force stays, and what is wrong is said.
func (b *backends) refuse(err error) {
	b.told(nil)
	said := b.inForce
	said.Problem = strings.ReplaceAll(err.Error(), "\n", "; ")
	b.says(said)
}

// read the objects. Without a configuration there are no backends, and that is none that is broken.
func (b *backends) read(ctx context.Context) (text string, keys map[string]string, err error) {
	var config corev1.ConfigMap
	if err := b.objects.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: protocol.BackendsConfigMap}, &config); client.IgnoreNotFound(err) != nil {
		return "", nil, fmt.Errorf("read ConfigMap %s: %w", protocol.BackendsConfigMap, err)
	}
	var secret corev1.Secret
	if err := b.objects.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: protocol.KeysSecret}, &secret); client.IgnoreNotFound(err) != nil {
		return "", nil, fmt.Errorf("read Secret %s: %w", protocol.KeysSecret, err)
	}
	keys = make(map[string]string, len(secret.Data))
	for _, name := range slices.Sorted(maps.Keys(secret.Data)) {
		key := bytes.TrimSpace(secret.Data[name])
		if len(key) > maxKey {
			return "", nil, fmt.Errorf("the entry %s of Secret %s has %d bytes, and the limit is %d", name, protocol.KeysSecret, len(key), maxKey)
		}
		keys[name] = string(key)
	}
	return config.Data[protocol.BackendsKey], keys, nil
}

// digest tells configurations apart; never zero, so that a first look counts as a change.
func digest(text string, keys map[string]string) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q", text, keys)) // %q of a map is in the order of its keys
}

// textDigest tells texts apart; the keys are not in it.
func textDigest(text string) []byte {
	digest := sha256.Sum256([]byte(text))
	return digest[:8]
}
