// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// TestIntakeAwayForAMinute is not parallel: it takes the manager away from everybody. Supervision goes on meanwhile,
// and every checkpoint is an object afterwards.
func TestIntakeAwayForAMinute(t *testing.T) {
	p := newPlace(t, 5*time.Minute)
	p.feature("alone", `i=0; until [ -e "$HOME/end" ]; do echo $((++i)) > "web/$i"; sleep 1; done`, func(s *v1alpha1.FeatureSpec) {
		s.Execution.Checkpoint.Interval = &metav1.Duration{Duration: 5 * time.Second}
	})
	p.until("alone", "a valid checkpoint", func(f *v1alpha1.Feature) bool { return f.Status.Checkpoints.Valid > 0 })
	before := len(p.checkpoints("alone"))
	p.scaleManager(0)
	away := time.NewTimer(time.Minute)
	select {
	case <-away.C:
	case <-p.ctx.Done():
	}
	p.scaleManager(2)
	p.signal("alone", "end")
	f := p.phase("alone", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if f.Status.Attempt != 1 {
		t.Errorf("the attempt was lost with the manager: attempt %d", f.Status.Attempt)
	}
	if f.Status.Checkpoints.Total < int64(before)+8 {
		t.Errorf("%d checkpoints in all, %d before the manager went: it was not supervised meanwhile, or reports were lost", f.Status.Checkpoints.Total, before)
	}
	p.wantPrivateChain("alone")
}

func (p *place) scaleManager(replicas int32) {
	p.Helper()
	key := client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "tidewaiter-manager"}
	var d appsv1.Deployment
	p.must(k8s.Get(p.ctx, key, &d), "read the manager's Deployment")
	before := d.DeepCopy()
	d.Spec.Replicas = ptr.To(replicas)
	p.must(k8s.Patch(p.ctx, &d, client.MergeFrom(before)), "scale the manager")
	p.must(cluster.Until(p.ctx, fmt.Sprintf("%d managers", replicas), func(ctx context.Context) (bool, error) {
		err := k8s.Get(ctx, key, &d)
		return err == nil && d.Status.Replicas == replicas && d.Status.ReadyReplicas == replicas, err
	}), "wait")
}
