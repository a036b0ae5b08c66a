// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// TestToolResults: nothing is kept unless a policy says so, a project can take back what a global policy sets by default and nothing else, and of
// policies that disagree the one that keeps more counts.
func TestToolResults(t *testing.T) {
	const system = "tidewaiter-system"
	of := func(namespace, name, defaults, overrides string) v1alpha1.SupervisorPolicy {
		return v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.SupervisorPolicySpec{
			Defaults:  &v1alpha1.Rules{Ledger: &v1alpha1.LedgerRules{ToolResults: defaults}},
			Overrides: &v1alpha1.Rules{Ledger: &v1alpha1.LedgerRules{ToolResults: overrides}},
		}}
	}
	for name, tc := range map[string]struct {
		policies []v1alpha1.SupervisorPolicy
		want     policy.ToolResults
	}{
		"no policy":                    {nil, policy.ToolResultsOff},
		"a policy that says nothing":   {[]v1alpha1.SupervisorPolicy{of("shop", "a", "", "")}, policy.ToolResultsOff},
		"a global default":             {[]v1alpha1.SupervisorPolicy{of(system, "a", "Digest", "")}, policy.ToolResultsDigest},
		"a project takes it back":      {[]v1alpha1.SupervisorPolicy{of(system, "a", "Redacted", ""), of("shop", "a", "Off", "")}, policy.ToolResultsOff},
		"a project must not":           {[]v1alpha1.SupervisorPolicy{of(system, "a", "", "Redacted"), of("shop", "a", "Off", "")}, policy.ToolResultsRedacted},
		"two policies that disagree":   {[]v1alpha1.SupervisorPolicy{of("shop", "a", "Off", ""), of("shop", "b", "Digest", "")}, policy.ToolResultsDigest},
		"three policies that disagree": {[]v1alpha1.SupervisorPolicy{of("shop", "a", "Digest", ""), of("shop", "b", "Redacted", ""), of("shop", "c", "Off", "")}, policy.ToolResultsRedacted},
	} {
		e, err := Effective(login(), tc.policies, Place{SystemNamespace: system})
		if err != nil || e.ToolResults != tc.want {
			t.Errorf("%s: %q, %v; want %q", name, e.ToolResults, err, tc.want)
		}
	}
	if _, err := Effective(login(), []v1alpha1.SupervisorPolicy{of("shop", "a", "Everything", "")}, Place{SystemNamespace: system}); err == nil {
		t.Error("a word that is not known is passed over")
	}
}
