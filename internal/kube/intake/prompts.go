// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
)

const (
	// maxPrompts bounds the prompts remembered; a ConfigMap has up to 1 MiB.
	maxPrompts = 64
	// promptTTL is how long one is remembered: orders are made at each change of a Feature's status. A changed prompt
	// reaches the watchdog with its next poll.
	promptTTL = 10 * time.Second
)

// prompts reads prompts that are kept in ConfigMaps. ConfigMaps are not watched: a cluster is full of them, few are
// prompts, and the manager needs no right to list them.
type prompts struct {
	live   client.Reader
	clock  clock.PassiveClock
	memory *lru.Cache[promptKey, promptText]
}

type promptKey struct {
	object client.ObjectKey
	key    string
}

// promptText is a prompt. Version and hash are those of the text in a ConfigMap; a prompt of the spec has neither, because
// the Feature's generation identifies it.
type promptText struct {
	text    string
	version string
	hash    string
	until   time.Time
}

func newPrompts(live client.Reader, c clock.PassiveClock) (*prompts, error) {
	memory, err := lru.New[promptKey, promptText](maxPrompts)
	if err != nil {
		return nil, fmt.Errorf("prompt cache: %w", err)
	}
	return &prompts{live: live, clock: c, memory: memory}, nil
}

// of gives the prompt of a Feature; a fresh one from the API server, whatever is remembered.
func (p *prompts) of(ctx context.Context, f *v1alpha1.Feature, fresh bool) (promptText, error) {
	name, key, ok := features.PromptKey(f)
	if !ok {
		return promptText{text: f.Spec.Prompt}, nil
	}
	at := promptKey{object: client.ObjectKey{Namespace: f.Namespace, Name: name}, key: key}
	now := p.clock.Now()
	if known, ok := p.memory.Get(at); ok && !fresh && now.Before(known.until) {
		return known, nil
	}
	configMap := &corev1.ConfigMap{}
	if err := p.live.Get(ctx, at.object, configMap); err != nil {
		return promptText{}, fmt.Errorf("read the prompt from ConfigMap %s: %w", name, err)
	}
	text, ok := configMap.Data[key]
	if !ok {
		return promptText{}, fmt.Errorf("read the prompt: ConfigMap %s has no key %q", name, key)
	}
	sum := sha256.Sum256([]byte(text))
	prompt := promptText{text: text, version: configMap.ResourceVersion, hash: hex.EncodeToString(sum[:]), until: now.Add(promptTTL)}
	p.memory.Add(at, prompt)
	return prompt, nil
}
