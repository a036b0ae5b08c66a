// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/modelbackends"
)

const (
	// maxInForce bounds what one gateway says, in bytes: all annotations of an object have at most 256 KiB. A model takes some 60.
	maxInForce = 48 << 10
	// maxProblem bounds what is said of a configuration that is refused, in bytes.
	maxProblem = 1 << 10
	// sayAgain is when what could not be said is said again, and sayTime bounds one try.
	sayAgain, sayTime = time.Second, 5 * time.Second
)

// announcer says on the gateways' Lease what this gateway has in force. The Lease is made at the installation: gateways may read and
// patch the one of that name, and make none.
type announcer struct {
	live               client.Client
	namespace, replica string
	log                *slog.Logger
	// reached says how the gateway fares with backends.
	reached func([]models.Backend) []models.Reach

	changed chan struct{}
	said    atomic.Pointer[models.InForce]
}

func newAnnouncer(live client.Client, namespace, replica string, log *slog.Logger) *announcer {
	return &announcer{reached: func([]models.Backend) []models.Reach { return nil }, live: live, namespace: namespace, replica: replica, log: log, changed: make(chan struct{}, 1)}
}

// say something from now on.
func (a *announcer) say(in models.InForce) {
	if len(in.Problem) > maxProblem {
		in.Problem = strings.ToValidUTF8(in.Problem[:maxProblem], "") + "…"
	}
	a.said.Store(&in)
	a.again()
}

// again says what is in force once more, because how backends fare has changed. It does not wait.
func (a *announcer) again() {
	select {
	case a.changed <- struct{}{}:
	default: // one is on its way: it says this too
	}
}

// NeedLeaderElection is false: every replica serves.
func (*announcer) NeedLeaderElection() bool { return false }

// Start says what is in force when it changes and then again and again, until the context ends. Then nothing is in force here.
func (a *announcer) Start(ctx context.Context) error {
	for {
		next := models.InForceEvery
		if in := a.said.Load(); in != nil {
			if err := a.write(ctx, *in); err != nil && ctx.Err() == nil {
				a.log.ErrorContext(ctx, "Cannot say which backends are in force: no Feature starts that needs models", "lease", protocol.GatewayLease, "error", err.Error())
				next = sayAgain
			}
		}
		timer := time.NewTimer(next)
		select {
		case <-a.changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if err := a.patch(context.WithoutCancel(ctx), &coordinationv1.Lease{}, map[string]any{a.name(): nil}); err != nil {
				a.log.WarnContext(ctx, "Cannot take back which backends are in force", "lease", protocol.GatewayLease, "error", err.Error())
			}
			return nil
		}
		timer.Stop()
	}
}

func (a *announcer) name() string { return protocol.InForcePrefix + a.replica }

// write what is in force, and remove what gateways left that are long gone.
func (a *announcer) write(ctx context.Context, in models.InForce) error {
	in.Renewed, in.Reached = time.Now().UTC().Truncate(time.Millisecond), a.reached(in.Backends)
	text, err := json.Marshal(in)
	if err == nil && len(text) > maxInForce { // what is in force counts more than how backends fare
		in.Reached = nil
		text, err = json.Marshal(in)
	}
	if err == nil && len(text) > maxInForce {
		in.Problem = fmt.Sprintf("names of backends and models have %d bytes, and the gateway can tell managers at most %d: list fewer models", len(text), maxInForce)
		in.Backends, in.Missing = nil, nil
		text, err = json.Marshal(in)
	}
	if err != nil {
		return fmt.Errorf("say what is in force: %w", err)
	}
	var lease coordinationv1.Lease
	if err := a.patch(ctx, &lease, map[string]any{a.name(): string(text)}); err != nil {
		return err
	}
	gone := map[string]any{}
	for name, other := range modelbackends.InForce(&lease) {
		if in.Renewed.Sub(other.Renewed) > models.InForceForgotten {
			gone[protocol.InForcePrefix+name] = nil
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return a.patch(ctx, &lease, gone)
}

func (a *announcer) patch(ctx context.Context, lease *coordinationv1.Lease, annotations map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("say what is in force: %w", err)
	}
	lease.ObjectMeta = metav1.ObjectMeta{Namespace: a.namespace, Name: protocol.GatewayLease}
	if err := a.live.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("patch the Lease %s, which the installation makes: %w", protocol.GatewayLease, err)
	}
	return nil
}
