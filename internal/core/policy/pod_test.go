// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func global(name string, defaults, overrides PodRules) Source {
	return Source{Name: "s/" + name, Scope: Global, Defaults: Rules{Pod: defaults}, Overrides: Rules{Pod: overrides}}
}

// TestPodsAreDecidedLikeOtherValues: a default gives way to the Feature, which gives way to an override; nothing is lost besides.
func TestPodsAreDecidedLikeOtherValues(t *testing.T) {
	pool := func(name string) map[string]string { return map[string]string{"pool": name} }
	tolerates := func(keys ...string) []Toleration {
		list := []Toleration{}
		for _, key := range keys {
			list = append(list, Toleration{Key: key, Operator: "Exists"})
		}
		return list
	}
	cpu := func(milli int64, text string) map[string]Quantity { return map[string]Quantity{"cpu": {milli, text}} }
	zone := func(skew int32) []Spread {
		return []Spread{{Key: "zone", Unsatisfiable: "ScheduleAnyway", MaxSkew: skew}}
	}
	tests := map[string]struct {
		policies []Source
		feature  PodRules
		want     Pod
		origins  map[string]string
		conflict string
	}{
		"nobody says anything": {},
		"a default": {
			policies: []Source{global("a", PodRules{NodeSelector: pool("agents"), Tolerations: tolerates("agents"), PriorityClass: new("low"), Spread: zone(1), Limits: cpu(2000, "2")}, PodRules{})},
			want:     Pod{NodeSelector: pool("agents"), Tolerations: tolerates("agents"), PriorityClass: "low", Spread: zone(1), Limits: cpu(2000, "2")},
			origins: map[string]string{
				"agents.scheduling.nodeSelector.pool": "defaults of s/a", "agents.scheduling.tolerations": "defaults of s/a", "agents.scheduling.priorityClassName": "defaults of s/a",
				"agents.scheduling.topologySpreadConstraints": "defaults of s/a", "agents.resources.limits.cpu": "defaults of s/a",
			},
		},
		"a Feature that differs from a default": {
			policies: []Source{global("a", PodRules{NodeSelector: pool("agents"), Tolerations: tolerates("agents"), PriorityClass: new("low"), Spread: zone(1)}, PodRules{})},
			feature:  PodRules{NodeSelector: map[string]string{"pool": "gpu", "disk": "ssd"}, Tolerations: tolerates("gpu"), PriorityClass: new("high"), Spread: []Spread{}},
			want:     Pod{NodeSelector: map[string]string{"pool": "gpu", "disk": "ssd"}, Tolerations: tolerates("gpu"), PriorityClass: "high"},
			origins: map[string]string{
				"agents.scheduling.nodeSelector.pool": "the Feature", "agents.scheduling.nodeSelector.disk": "the Feature", "agents.scheduling.tolerations": "the Feature",
				"agents.scheduling.priorityClassName": "the Feature", "agents.scheduling.topologySpreadConstraints": "the Feature",
			},
		},
		"a Feature that differs from an override": {
			policies: []Source{global("a", PodRules{}, PodRules{NodeSelector: pool("agents"), Tolerations: tolerates("agents"), PriorityClass: new("low"), Spread: zone(1), Limits: cpu(1000, "1")})},
			feature:  PodRules{NodeSelector: map[string]string{"pool": "gpu", "disk": "ssd"}, Tolerations: tolerates("gpu"), PriorityClass: new("high"), Spread: zone(9), Limits: cpu(9000, "9")},
			want:     Pod{NodeSelector: map[string]string{"pool": "agents", "disk": "ssd"}, Tolerations: tolerates("agents"), PriorityClass: "low", Spread: zone(1), Limits: cpu(1000, "1")},
			origins: map[string]string{
				"agents.scheduling.nodeSelector.pool": "overrides of s/a", "agents.scheduling.nodeSelector.disk": "the Feature", "agents.scheduling.tolerations": "overrides of s/a",
				"agents.scheduling.priorityClassName": "overrides of s/a", "agents.scheduling.topologySpreadConstraints": "overrides of s/a", "agents.resources.limits.cpu": "overrides of s/a",
			},
		},
		"an override that lets nobody choose": {
			policies: []Source{global("a", PodRules{}, PodRules{Tolerations: []Toleration{}, PriorityClass: new("")})},
			feature:  PodRules{Tolerations: tolerates("gpu"), PriorityClass: new("high")},
			origins:  map[string]string{"agents.scheduling.tolerations": "overrides of s/a", "agents.scheduling.priorityClassName": "overrides of s/a"},
		},
		"Secrets of all": {
			policies: []Source{global("a", PodRules{PullSecrets: []string{"mirror"}}, PodRules{}), global("b", PodRules{}, PodRules{PullSecrets: []string{"mirror", "base"}})},
			feature:  PodRules{PullSecrets: []string{"mine"}},
			want:     Pod{PullSecrets: []string{"base", "mine", "mirror"}},
			origins:  map[string]string{"agents.imagePullSecrets": "overrides of s/b, the Feature, defaults of s/a"},
		},
		"a request above the limit of another source": {
			policies: []Source{global("a", PodRules{Requests: map[string]Quantity{"cpu": {4000, "4"}, "memory": {1000, "1"}}}, PodRules{Limits: cpu(2000, "2")})},
			want:     Pod{Limits: cpu(2000, "2"), Requests: map[string]Quantity{"cpu": {2000, "2"}, "memory": {1000, "1"}}},
			origins: map[string]string{
				"agents.resources.limits.cpu": "overrides of s/a", "agents.resources.requests.cpu": "defaults of s/a", "agents.resources.requests.memory": "defaults of s/a",
			},
		},
		"two that disagree on tolerations": {
			policies: []Source{global("a", PodRules{Tolerations: tolerates("x", "y")}, PodRules{}), global("b", PodRules{Tolerations: tolerates("y", "z")}, PodRules{})},
			want:     Pod{Tolerations: tolerates("y")},
			origins:  map[string]string{"agents.scheduling.tolerations": "defaults of s/a, defaults of s/b"},
			conflict: "agents.scheduling.tolerations: defaults of s/a and defaults of s/b disagree at priority 0; the stricter value is taken, give one of them a higher priority",
		},
		"two that disagree on limits": {
			policies: []Source{global("a", PodRules{Limits: cpu(2000, "2")}, PodRules{}), global("b", PodRules{Limits: cpu(500, "500m")}, PodRules{})},
			want:     Pod{Limits: cpu(500, "500m")},
			origins:  map[string]string{"agents.resources.limits.cpu": "defaults of s/a, defaults of s/b"},
			conflict: "agents.resources.limits.cpu: defaults of s/a and defaults of s/b disagree at priority 0; the stricter value is taken, give one of them a higher priority",
		},
		"two that disagree on a spread": {
			policies: []Source{global("a", PodRules{Spread: zone(3)}, PodRules{}), global("b", PodRules{Spread: append(zone(2), Spread{Key: "host", Unsatisfiable: "DoNotSchedule", MaxSkew: 1})}, PodRules{})},
			want:     Pod{Spread: append([]Spread{{Key: "host", Unsatisfiable: "DoNotSchedule", MaxSkew: 1}}, zone(2)...)},
			origins:  map[string]string{"agents.scheduling.topologySpreadConstraints": "defaults of s/a, defaults of s/b"},
			conflict: "agents.scheduling.topologySpreadConstraints: defaults of s/a and defaults of s/b disagree at priority 0; the stricter value is taken, give one of them a higher priority",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := Merge(Sources{Policies: tc.policies, FeaturePod: tc.feature})
			if diff := cmp.Diff(tc.want, e.Pod, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			origins := maps.Clone(e.Origins)
			maps.DeleteFunc(origins, func(path, _ string) bool {
				return !strings.HasPrefix(path, "agents.") || strings.HasPrefix(path, "agents.question") || path == "agents.parkAfter"
			})
			if diff := cmp.Diff(tc.origins, origins, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("origins (-want +got):\n%s", diff)
			}
			if got := strings.Join(e.Conflicts, "\n"); got != tc.conflict {
				t.Errorf("conflicts %q, want %q", got, tc.conflict)
			}
			if plain := Merge(Sources{}); e.Hash != plain.Hash {
				t.Error("where a pod runs changes what its work is judged by")
			}
		})
	}
}
