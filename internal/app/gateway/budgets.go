// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/supervisorpolicy"
)

const (
	// budgetTime is how long a changed budget may not be noticed. To merge the policies for each call would take longer than
	// most of what is done for one.
	budgetTime = 2 * time.Second
	// mostBudgets bounds the Features whose budgets are remembered.
	mostBudgets = 4096
)

// allowance is what applies to the calls of a Feature now, and to its records. Unlike terms it is not pinned for a task: a user raises a budget
// for an agent that waits.
type allowance struct {
	budgets       []ledger.Budget
	warnAtPercent int
	// costAlertPercent is the share of Tidewaiter's own calls from which on users are warned.
	costAlertPercent int
	rate             coremodels.Rate
	// keep is how long the ledger keeps what it has of the Feature.
	keep time.Duration
	// suspendedBy are the policies that let no agent of the Feature work.
	suspendedBy []string
	// at is when it was looked for; err is why nothing was found.
	at  time.Time
	err error
}

// budgets of Features, remembered for a moment.
type budgets struct {
	known *lru.Cache[types.UID, allowance]
	now   func() time.Time
	log   *slog.Logger
}

func newBudgets(log *slog.Logger) (*budgets, error) {
	known, err := lru.New[types.UID, allowance](mostBudgets)
	if err != nil {
		return nil, fmt.Errorf("make a cache: %w", err)
	}
	return &budgets{known: known, now: time.Now, log: log}, nil
}

// of a pod's Feature. While its policies cannot be used, the budgets of before hold: an agent at work need not fail because
// somebody has made a mistake in a policy. Which policies suspend the Feature is known all the same.
func (b *budgets) of(ctx context.Context, p pod, effective func(context.Context) (policy.Effective, error)) (allowance, error) {
	was, known := b.known.Get(p.feature.UID)
	if known && b.now().Sub(was.at) < budgetTime {
		return was, was.err
	}
	e, err := effective(ctx)
	a := allowance{budgets: coremodels.Budgets(e, string(p.feature.UID), p.feature.Namespace), warnAtPercent: e.Budgets.WarnAtPercent, costAlertPercent: e.Reviewers.CostAlertPercent, rate: coremodels.RateOf(e), keep: e.LedgerRetention, suspendedBy: e.SuspendedBy, at: b.now(), err: err}
	switch {
	case err != nil && known && was.err == nil:
		b.log.WarnContext(ctx, "The previous budgets stay in effect, because the gateway cannot use the policies of a Feature", "feature", p.name(), "error", err.Error())
		a.budgets, a.warnAtPercent, a.costAlertPercent, a.rate, a.keep, a.err = was.budgets, was.warnAtPercent, was.costAlertPercent, was.rate, was.keep, nil
		if !errors.Is(err, supervisorpolicy.ErrUnusable) { // they cannot be read at the moment, and their content is unknown
			a.suspendedBy = was.suspendedBy
		}
	case errors.Is(err, supervisorpolicy.ErrUnusable):
		a.err = &coremodels.Refusal{Message: fmt.Sprintf("the gateway cannot use the policies of the Feature, and does not know their budgets: %v", err)}
	}
	b.known.Add(p.feature.UID, a)
	return a, a.err
}
