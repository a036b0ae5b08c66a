// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	applyv1alpha1 "github.com/tidewaiter/tidewaiter/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
	"github.com/tidewaiter/tidewaiter/internal/kube/leases"
)

// scope is what one reconcile learns, in the order in which it is learnt.
type scope struct {
	// feature as it was read; replaced by a live one in readLive.
	feature *v1alpha1.Feature
	// now is the one time of this reconcile.
	now time.Time
	// effective policy; set by resolver.policy, zero where no policy can be had.
	effective policy.Effective
	// refusal is why the Feature cannot be accepted; set by resolver.policy, resolveAgent, resolver.prompt, resolveOrders. The first counts.
	refusal *lifecycle.Refusal
	// prompt of all tasks; set by resolver.prompt, and empty for one in a ConfigMap that is not needed now.
	prompt string
	// obstacle is why nothing can be started; set by resolver.model and resolver.system.
	obstacle *lifecycle.Refusal
	// intake and gateway as the pod will reach them; set by resolver.system.
	intake, gateway netip.Addr
	// dialect of the model of an agent that speaks every dialect, and window of the model of each, in tokens, 0 where nobody knows it; set by
	// resolver.model.
	dialect string
	window  int64
	// backends is the hash of what the gateways have in force; empty where it is not known. Set by resolver.model.
	backends string
	// outage says that the backend that the Feature asks is out for all Features. Set by resolver.model.
	outage bool
	// admitted says that others count this Feature among those that start; set by admit.
	admitted bool
	// locks as they were seen last, and whether they were taken in this reconcile; set by observe, readLive and takeLocks.
	locks      leases.Survey
	locksTaken bool
	// areas of others, compared; set by admit.
	areas *lifecycle.Areas
	// observed is what the decision rests on; set by observe and by the gatherers of settle.
	observed lifecycle.Observed
	// decision is nil until decide.
	decision *lifecycle.Decision
	// unmet is why a need of the decision could not be met; set by settle.
	unmet error
	// gone is true when the Feature may not be there any more; set by releaseFinalizer.
	gone bool
}

func newScope(f *v1alpha1.Feature, now time.Time) *scope {
	return &scope{feature: f, now: now}
}

// refuse notes why the Feature cannot be accepted; what was found first is nearest to the cause.
func (s *scope) refuse(reason string, byUser bool, format string, args ...any) {
	if s.refusal == nil {
		s.refusal = &lifecycle.Refusal{Reason: reason, Message: fmt.Sprintf(format, args...), ByUser: byUser}
	}
}

// active reports whether the status tells of an attempt that has not ended.
func (s *scope) active() bool {
	job := s.feature.Status.Job
	return job != nil && job.EndTime == nil
}

// next lets core/lifecycle decide on what is observed.
func (s *scope) next() {
	d := lifecycle.Next(s.observed, s.now)
	s.decision = &d
}

// close says how the reconcile ends: with the status that was decided, if it is not there already.
func (r *Reconciler) close(s *scope) flow.Close {
	if s.decision == nil || s.decision.Needs.Outdates() || s.gone {
		return flow.Close{}
	}
	end := flow.Close{Recheck: s.decision.Recheck, Tell: func() { r.tell(s) }}
	status := features.Status(s.decision.Memory, s.feature.Status, s.now)
	was := s.feature.Status
	was.Run = nil
	if !equality.Semantic.DeepEqual(features.Settled(was, status), status) {
		end.Write = func(ctx context.Context) error { return r.writeStatus(ctx, s, status) }
	}
	return end
}

// writeStatus applies the controller's part of the status. The version that it was derived from goes with it: a status
// derived from an older state of the Feature is refused by the API server, however late it comes.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope, status v1alpha1.FeatureStatus) error {
	config, err := features.StatusConfig(status)
	if err != nil {
		return err
	}
	f := s.feature
	feature := applyv1alpha1.Feature(f.Name, f.Namespace).WithUID(f.UID).WithResourceVersion(f.ResourceVersion).WithStatus(config)
	if err := r.Client.Status().Apply(ctx, feature, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply status of Feature %s: %w", f.Name, err)
	}
	r.process.fresh.Wrote(f.UID, ptr.Deref(feature.ResourceVersion, ""))
	return nil
}

// tell sends the events of the decision.
func (r *Reconciler) tell(s *scope) {
	for _, e := range s.decision.Events {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(s.feature, nil, kind, e.Reason, "Reconcile", "%s", e.Message)
	}
}
