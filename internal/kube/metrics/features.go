// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// countWithin bounds the counting of Features: they are in a cache.
const countWithin = 5 * time.Second

// Features counts Features at each scrape. It is a prometheus.Collector.
type Features struct {
	// Reader of a cache: callers must not change its results, which are not copies.
	Reader client.Reader
}

var _ prometheus.Collector = Features{}

// Describe implements prometheus.Collector.
func (f Features) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- features.desc()
	descriptions <- degraded.desc()
	descriptions <- inTrouble.desc()
	descriptions <- gatesFailing.desc()
	descriptions <- questionsOpen.desc()
	descriptions <- reviewDirectives.desc()
	descriptions <- supervisorCostly.desc()
}

// Collect implements prometheus.Collector.
func (f Features) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countWithin)
	defer cancel()
	list := &v1alpha1.FeatureList{}
	if err := f.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		metrics <- prometheus.NewInvalidMetric(features.desc(), err)
		return
	}
	type key struct{ namespace, value string }
	phases, troubles, anomalies, failing, questions := map[key]int{}, map[key]int{}, map[key]int{}, map[key]int{}, map[key]int{}
	directives, costly := map[[3]string]int{}, map[string]int{}
	for i := range list.Items {
		item := &list.Items[i]
		phase := string(item.Status.Phase)
		if phase == "" {
			phase = string(v1alpha1.PhasePending)
		}
		phases[key{item.Namespace, phase}]++
		c := meta.FindStatusCondition(item.Status.Conditions, v1alpha1.ConditionSupervised)
		if c != nil && (c.Reason == v1alpha1.ReasonSupervisionDegraded || c.Reason == v1alpha1.ReasonHeartbeatMissing) {
			troubles[key{item.Namespace, c.Reason}]++
		}
		if g := meta.FindStatusCondition(item.Status.Conditions, v1alpha1.ConditionGatesPassed); g != nil && g.Status == metav1.ConditionFalse {
			failing[key{item.Namespace, known(g.Reason, v1alpha1.ReasonGateFailed, v1alpha1.ReasonGateNotStarted)}]++
		}
		if q := question(item); q != nil {
			questions[key{item.Namespace, strconv.FormatBool(!q.Guess)}]++
		}
		countDirectives(directives, item)
		over := item.Status.Phase == v1alpha1.PhaseDelivered || item.Status.Phase == v1alpha1.PhaseFailed || item.Status.Phase == v1alpha1.PhaseReadyToMerge
		if !over && meta.IsStatusConditionFalse(item.Status.Conditions, v1alpha1.ConditionSupervisorCostInBounds) {
			costly[item.Namespace]++
		}
		for _, name := range v1alpha1.AnomalyConditions() {
			if meta.IsStatusConditionTrue(item.Status.Conditions, name) {
				anomalies[key{item.Namespace, name}]++
			}
		}
	}
	for k, n := range phases {
		metrics <- prometheus.MustNewConstMetric(features.desc(), prometheus.GaugeValue, float64(n), k.namespace, k.value)
	}
	for k, n := range anomalies {
		metrics <- prometheus.MustNewConstMetric(inTrouble.desc(), prometheus.GaugeValue, float64(n), k.namespace, k.value)
	}
	for k, n := range failing {
		metrics <- prometheus.MustNewConstMetric(gatesFailing.desc(), prometheus.GaugeValue, float64(n), k.namespace, k.value)
	}
	for k, n := range questions {
		metrics <- prometheus.MustNewConstMetric(questionsOpen.desc(), prometheus.GaugeValue, float64(n), k.namespace, k.value)
	}
	for namespace, n := range costly {
		metrics <- prometheus.MustNewConstMetric(supervisorCostly.desc(), prometheus.GaugeValue, float64(n), namespace)
	}
	for k, n := range directives {
		metrics <- prometheus.MustNewConstMetric(reviewDirectives.desc(), prometheus.GaugeValue, float64(n), k[0], k[1], k[2])
	}
	for k, n := range troubles {
		metrics <- prometheus.MustNewConstMetric(degraded.desc(), prometheus.GaugeValue, float64(n), k.namespace, k.value)
	}
}

// question of a Feature that nobody has answered; nil for none.
func question(f *v1alpha1.Feature) *v1alpha1.Question {
	if f.Status.Run == nil || f.Status.Run.Question == nil {
		return nil
	}
	q := f.Status.Run.Question
	if slices.ContainsFunc(f.Spec.Answers, func(a v1alpha1.Answer) bool { return a.Question == q.ID }) {
		return nil
	}
	return q
}

// countDirectives of reviewers in the status of a Feature, by namespace, reviewer and state.
func countDirectives(to map[[3]string]int, f *v1alpha1.Feature) {
	if f.Status.Run == nil {
		return
	}
	for _, d := range f.Status.Run.Directives {
		if reviewer, is := Reviewer(d.Source); is { // the API server knows the states
			to[[3]string{f.Namespace, reviewer, d.State}]++
		}
	}
}
