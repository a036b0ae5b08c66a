// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
)

// expireEvery is how often what is old is removed, in steps of this number of records.
const expireEvery, expireStep = 10 * time.Minute, 1000

// retention keeps the ledger small: of each Feature as its policies say.
type retention struct {
	pods *pods
	log  *slog.Logger
}

// keep removes what is older than is kept, until the context ends.
func (r retention) keep(ctx context.Context, l *ledger.Ledger) {
	ticker := time.NewTicker(expireEvery)
	defer ticker.Stop()
	for {
		if err := r.round(ctx, l); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "Cannot remove old records from the ledger", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// round goes through all Features of which anything is recorded, once.
func (r retention) round(ctx context.Context, l *ledger.Ledger) error {
	living, err := r.living(ctx)
	if err != nil {
		return err
	}
	for after := ""; ; {
		owners, err := l.Owners(ctx, after)
		if err != nil {
			return err
		}
		if len(owners) == 0 {
			return l.Sweep(ctx, expireStep)
		}
		for _, o := range owners {
			if err := r.refresh(ctx, l, o, living[types.UID(o.FeatureUID)]); err != nil {
				return err
			}
			for n := expireStep; n == expireStep; {
				if n, err = l.Expire(ctx, o.FeatureUID, expireStep); err != nil {
					return err
				}
			}
			after = o.FeatureUID
		}
	}
}

// living are the Features that there are now.
func (r retention) living(ctx context.Context) (map[types.UID]*v1alpha1.Feature, error) {
	list := &v1alpha1.FeatureList{}
	if err := r.pods.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Features: %w", err)
	}
	living := make(map[types.UID]*v1alpha1.Feature, len(list.Items))
	for i := range list.Items {
		living[list.Items[i].UID] = &list.Items[i]
	}
	return living, nil
}

// refresh how long the records of a Feature are kept. For one that is gone, or whose policies cannot be used, that stays as it was.
func (r retention) refresh(ctx context.Context, l *ledger.Ledger, o ledger.Owner, f *v1alpha1.Feature) error {
	if f == nil {
		return nil
	}
	effective, err := r.pods.policy(ctx, f)
	if err != nil || effective.LedgerRetention == o.Keep {
		return nil //nolint:nilerr // the Feature tells people what is wrong with the policies
	}
	return l.Keep(ctx, o.FeatureUID, effective.LedgerRetention)
}
