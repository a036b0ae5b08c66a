// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

// TestHeeds: the directives of the Feature that started last are the newest ones, in whatever sequence the cache lists Features. Those that the agent of a Feature
// that is over has left open count as not addressed. Directives that no agent has read do not count. Only reviewers that run have a figure.
func TestHeeds(t *testing.T) {
	gave := func(name string, age time.Duration, source string, states ...string) v1alpha1.Feature {
		f := feature(name, types.UID(name))
		at := metav1.NewTime(noon.Add(-age))
		f.Status.StartTime, f.Status.Run = &at, &v1alpha1.RunStatus{}
		for _, state := range states {
			for range 10 {
				f.Status.Run.Directives = append(f.Status.Run.Directives, v1alpha1.DirectiveStatus{Source: source, State: state})
			}
		}
		return *f
	}
	const style, design = protocol.SourceCodeStyle, protocol.SourceDesign
	done, dropped := protocol.DirectiveAddressed, protocol.DirectiveDropped
	waiting := gave("waiting", 0, style, dropped, dropped)
	waiting.Status.StartTime = nil
	project := []v1alpha1.Feature{
		gave("old", 2*time.Hour, style, done, done), gave("new", time.Hour, style, done, dropped), gave("newest", 0, style, dropped, protocol.DirectivePending),
		gave("design", 0, design, done, done), waiting,
	}
	ignored := gave("ignored", 0, style, protocol.DirectiveActive, protocol.DirectiveActive)
	atWork := ignored.DeepCopy()
	unread := gave("unread", 0, style, dropped, dropped)
	for i := range unread.Status.Run.Directives {
		unread.Status.Run.Directives[i].Unread = true
	}
	ended := metav1.NewTime(noon)
	ignored.Status.CompletionTime = &ended
	yes := true
	styleOnly := policy.Effective{Reviewers: policy.Reviewers{UrgencyThreshold: 100, CodeStyle: policy.Reviewer{Enabled: &yes}}}
	both := policy.Effective{Reviewers: policy.Reviewers{UrgencyThreshold: 100, CodeStyle: policy.Reviewer{Enabled: &yes}, Design: policy.Reviewer{Enabled: &yes}}}
	for name, c := range map[string]struct {
		project []v1alpha1.Feature
		policy  policy.Effective
		want    []review.Heed
	}{
		"none in the project": {nil, both, []review.Heed{}},
		"too few":             {project[2:3], both, []review.Heed{}},
		"one runs":            {project, styleOnly, []review.Heed{{Reviewer: style, Addressed: 0, Of: 20}}},
		"both run":            {project, both, []review.Heed{{Reviewer: style, Addressed: 0, Of: 20}, {Reviewer: design, Addressed: 20, Of: 20}}},
		"older ones":          {project[:2], styleOnly, []review.Heed{{Reviewer: style, Addressed: 10, Of: 20}}},
		"left open":           {append([]v1alpha1.Feature{ignored}, project[0]), styleOnly, []review.Heed{{Reviewer: style, Addressed: 0, Of: 20}}},
		"can be addressed":    {append([]v1alpha1.Feature{*atWork}, project[0]), styleOnly, []review.Heed{{Reviewer: style, Addressed: 20, Of: 20}}},
		"dropped unread":      {append([]v1alpha1.Feature{unread}, project[0]), styleOnly, []review.Heed{{Reviewer: style, Addressed: 20, Of: 20}}},
		"none runs":           {project, policy.Effective{}, []review.Heed{}},
	} {
		if diff := cmp.Diff(c.want, Heeds(c.project, c.policy)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
