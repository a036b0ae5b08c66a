// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/apimachinery/pkg/types"

	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/host/callers"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
)

// terms are what applies to the calls of one task. What changes later counts from the next task on.
type terms struct {
	models  []policy.ModelRef
	silence time.Duration
	// prefix of all that is sent to models, and its hash.
	prefix, templates string
}

// pinned is the task of an attempt.
type pinned struct {
	feature types.UID
	attempt int64
	task    string
}

// mostPins bounds the tasks whose terms are remembered. Far fewer are at work at a time; one that is forgotten gets the
// terms of then.
const mostPins = 4096

// pins keep the terms of tasks from their first call on.
type pins struct {
	mu    sync.Mutex
	known *lru.Cache[pinned, terms]
}

func newPins() (*pins, error) {
	known, err := lru.New[pinned, terms](mostPins)
	if err != nil {
		return nil, fmt.Errorf("make a cache: %w", err)
	}
	return &pins{known: known}, nil
}

// terms of a task; found gives those of a task that calls for the first time. Calls of no task have those of the moment.
func (p *pins) terms(of pinned, found func() (terms, error)) (terms, error) {
	if of.task == "" {
		return found()
	}
	// One at a time, so that two calls of a task cannot find different ones.
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.known.Get(of); ok {
		return t, nil
	}
	t, err := found()
	if err == nil {
		p.known.Add(of, t)
	}
	return t, err
}

// terms of the moment.
func (a toModels) terms(ctx context.Context, p pod, task string) (terms, error) {
	effective, err := a.policy(ctx, p.feature)
	if err != nil {
		return terms{}, err
	}
	t := terms{models: effective.Models, silence: effective.Supervision.TimeoutProfile.Silence()}
	if !effective.Supervision.Enabled {
		a.log.InfoContext(ctx, "Supervision is off: nothing is put before what the agent sends", "feature", p.name(), "task", task)
		return t, nil
	}
	layers, err := identity.Templates(ctx, a.objects, p.feature.Namespace, a.systemNamespace)
	if err != nil {
		return terms{}, fmt.Errorf("%w: %w", callers.ErrUnavailable, err)
	}
	if err := layers.Validate(); err != nil {
		return terms{}, &coremodels.Refusal{Message: err.Error()}
	}
	t.prefix, t.templates = layers.Prefix(), layers.Hash()
	a.log.InfoContext(ctx, "Pinned the templates of a task", "feature", p.name(), "attempt", p.attempt, "task", task,
		"global", len(layers.Global), "project", len(layers.Project), "hash", t.templates)
	return t, nil
}
