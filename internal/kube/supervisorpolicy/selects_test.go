// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// by is a selector with one requirement.
func by(key string, operator v1alpha1.LabelOperator, values ...v1alpha1.LabelValue) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelRequirement{{Key: key, Operator: operator, Values: values}}}
}

func TestSelects(t *testing.T) {
	const team, tier = v1alpha1.PolicyLabelPrefix + "team", v1alpha1.GlobalPolicyLabelPrefix + "tier"
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login", Labels: map[string]string{team: "web", tier: "gold", "team": "mobile"}}}
	at := Place{SystemNamespace: "tidewaiter-system", Labels: map[string]string{"example.com/regulated": "true"}}
	for name, tc := range map[string]struct {
		namespace         string
		projects, feature *v1alpha1.LabelSelector
		want              bool
		wantErr           string
	}{
		"a global policy":                  {namespace: "tidewaiter-system", want: true},
		"another project's":                {namespace: "bank"},
		"for such projects":                {namespace: "tidewaiter-system", projects: &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"example.com/regulated": "true"}}, want: true},
		"for other projects":               {namespace: "tidewaiter-system", projects: by("example.com/regulated", v1alpha1.LabelNotIn, "true")},
		"for projects without a label":     {namespace: "tidewaiter-system", projects: by("example.com/sandbox", v1alpha1.LabelDoesNotExist), want: true},
		"for all projects":                 {namespace: "tidewaiter-system", projects: &v1alpha1.LabelSelector{}, want: true},
		"for Features of the team":         {namespace: "shop", feature: by(team, v1alpha1.LabelIn, "web", "api"), want: true},
		"for Features of another team":     {namespace: "shop", feature: by(team, v1alpha1.LabelIn, "mobile")},
		"for Features of the tier":         {namespace: "shop", feature: by(tier, v1alpha1.LabelExists), want: true},
		"globally for the tier":            {namespace: "tidewaiter-system", feature: by(tier, v1alpha1.LabelExists), want: true},
		"by labels of editors":             {namespace: "shop", feature: by("team", v1alpha1.LabelIn, "mobile"), wantErr: `spec.selector: label "team" can be set by the editors of a project: use a label that begins with policy.tidewaiter.dev/`},
		"globally by labels of a project":  {namespace: "tidewaiter-system", feature: by(team, v1alpha1.LabelExists), wantErr: `spec.selector: label "policy.tidewaiter.dev/team" can be set by people of a project: use a label that begins with policy.tidewaiter.dev/global.`},
		"a project's for several projects": {namespace: "shop", projects: &v1alpha1.LabelSelector{}, wantErr: "spec.namespaceSelector: a policy of a project applies only to that project: remove the field, or create the policy in namespace tidewaiter-system"},
		"a broken one of another project":  {namespace: "bank", feature: by("team", "Near")},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.SupervisorPolicy{
				ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "p"},
				Spec:       v1alpha1.SupervisorPolicySpec{NamespaceSelector: tc.projects, Selector: tc.feature},
			}
			got, err := Selects(p, f, at)
			if got != tc.want || (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got %t and %v, want %t and %q", got, err, tc.want, tc.wantErr)
			}
			if _, err := Effective(f, []v1alpha1.SupervisorPolicy{*p}, at); tc.wantErr != "" && !errors.Is(err, ErrUnusable) {
				t.Errorf("a policy that cannot be used is passed over: %v", err)
			}
		})
	}
}
