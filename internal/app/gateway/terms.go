// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/internal/core/answers"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/callers"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
)

// terms are what applies to the calls of one task. What changes later counts from the next task on. They are kept in the
// ledger as JSON.
type terms struct {
	Models  []policy.ModelRef `json:"models,omitempty"`
	Silence time.Duration     `json:"silence"`
	// ProviderTools that providers may run for it.
	ProviderTools []string `json:"providerTools,omitempty"`
	// Unrecorded lets calls through that the ledger cannot record.
	Unrecorded bool `json:"unrecorded,omitempty"`
	// ToolResults says what is recorded of the results of tools.
	ToolResults policy.ToolResults `json:"toolResults,omitempty"`
	// Templates is the hash of the prefix.
	Templates string `json:"templates,omitempty"`
	// Answers that end a turn keep to these rules.
	Answers answers.Rules `json:"answers,omitzero"`
	// prefix of all that is sent to models, and before as requests have it.
	prefix string
	before dialect.Quoted
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

// pinTime bounds a question to the ledger: an agent waits for it.
const pinTime = 5 * time.Second

// pins keep the terms of tasks from their first call on.
type pins struct {
	ledger interface {
		Pin(ctx context.Context, key ledger.PinKey, terms []byte, templates string) ([]byte, string, error)
	}
	known *lru.Cache[pinned, terms]
}

func newPins(l *recorder) (*pins, error) {
	known, err := lru.New[pinned, terms](mostPins)
	if err != nil {
		return nil, fmt.Errorf("make a cache: %w", err)
	}
	return &pins{ledger: l, known: known}, nil
}

// terms of a task; found returns the terms of a task that calls for the first time. Calls of no task have those of the moment.
func (p *pins) terms(ctx context.Context, of pinned, found func() (terms, error)) (terms, error) {
	if of.task == "" {
		return found()
	}
	if t, ok := p.known.Get(of); ok {
		return t, nil
	}
	t, err := found()
	if err != nil {
		return terms{}, err
	}
	// Two calls at once get the same: the ledger and the cache both keep the first.
	if t, err = p.keep(ctx, of, t); err != nil {
		return terms{}, err
	}
	if first, ok, _ := p.known.PeekOrAdd(of, t); ok {
		return first, nil
	}
	return t, nil
}

// keep terms in the ledger, or take existing ones: another replica, or this one before a restart, has seen
// a call of the task.
func (p *pins) keep(ctx context.Context, of pinned, t terms) (terms, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return terms{}, fmt.Errorf("encode terms: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, pinTime)
	defer cancel()
	kept, prefix, err := p.ledger.Pin(ctx, ledger.PinKey{FeatureUID: string(of.feature), Attempt: of.attempt, Task: of.task}, text, t.prefix)
	switch {
	case err != nil && t.Unrecorded:
		return t, nil
	case err != nil:
		return terms{}, fmt.Errorf("%w: %w", modelserver.ErrUnrecorded, err)
	}
	var first terms
	if err := json.Unmarshal(kept, &first); err != nil {
		return terms{}, fmt.Errorf("%w: terms in the ledger: %w", callers.ErrUnavailable, err)
	}
	first.prefix, first.before = prefix, dialect.Quote(prefix)
	return first, nil
}

// supervisorTerms apply to calls of the watchdog itself. Templates are for agents, and so are the tools that a provider runs.
func supervisorTerms(e policy.Effective) terms {
	return terms{Models: e.Models, Silence: e.Supervision.TimeoutProfile.Silence(), Unrecorded: e.LedgerFailure == policy.LedgerIgnore, ToolResults: policy.ToolResultsOff}
}

// terms of the moment.
func (a toModels) terms(ctx context.Context, p pod, task string) (terms, error) {
	effective, err := a.policy(ctx, p.feature)
	if err != nil {
		return terms{}, err
	}
	t := supervisorTerms(effective)
	t.ProviderTools, t.ToolResults = effective.ProviderTools, effective.ToolResults
	if !effective.Supervision.Enabled {
		a.log.InfoContext(ctx, "Supervision is off: the gateway adds no template to what the agent sends, and checks no answer", "feature", p.name(), "task", task)
		return t, nil
	}
	layers, outputs, err := identity.Templates(ctx, a.objects, p.feature.Namespace, a.systemNamespace)
	if err != nil {
		return terms{}, fmt.Errorf("%w: %w", callers.ErrUnavailable, err)
	}
	t.Answers = answerRules(effective, outputs)
	if err := errors.Join(layers.Validate(), t.Answers.Validate()); err != nil {
		return terms{}, &coremodels.Refusal{Message: err.Error()}
	}
	t.prefix, t.Templates = layers.Prefix(), layers.Hash()
	t.before = dialect.Quote(t.prefix)
	a.log.InfoContext(ctx, "Pinned the templates of a task", "feature", p.name(), "attempt", p.attempt, "task", task,
		"global", len(layers.Global), "project", len(layers.Project), "hash", t.Templates, "checks", len(t.Answers.Checks), "formats", len(t.Answers.Formats))
	return t, nil
}

// answerRules are what the policy leaves of what Output templates ask for.
func answerRules(e policy.Effective, outputs identity.Outputs) answers.Rules {
	p := e.Supervision.Answers
	var r answers.Rules
	if p.RequireFormatValidation {
		r.Checks = outputs.Checks
	}
	switch {
	case p.AllowRawOutput:
	case p.AllowOutputReplacement && len(outputs.Project) > 0:
		r.Formats = outputs.Project
	default: // the last one is the outermost
		r.Formats = slices.Concat(outputs.Project, outputs.Global)
	}
	if r.Any() {
		r.Retries, r.Fail, r.Audit = p.MaxRetries, p.FailOnViolation, e.Enforcement == policy.Audit
	}
	return r
}
