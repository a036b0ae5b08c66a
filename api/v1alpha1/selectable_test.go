// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestObjectsAreSelectedByFields: `kubectl get features --field-selector status.phase=Running`, and the checkpoints of
// one Feature by spec.featureName.
func TestObjectsAreSelectedByFields(t *testing.T) {
	project := env.Project(t)
	made := map[string]*unstructured.Unstructured{}
	for name, o := range map[string]struct{ base, patch string }{
		"one":   {feature, "metadata: {name: one}"},
		"two":   {feature, `{metadata: {name: two}, spec: {repository: {url: "https://git.example.com/other.git"}}}`},
		"one-1": {checkpoint, "{metadata: {name: one-1}, spec: {featureName: one}}"},
		"one-2": {checkpoint, "{metadata: {name: one-2}, spec: {featureName: one, verdict: Invalid, action: Held}}"},
		"two-1": {checkpoint, "{metadata: {name: two-1}, spec: {featureName: two}}"},
		"audit": {policy, "{metadata: {name: audit}, spec: {enforcement: Audit}}"},
		"rules": {policy, "{metadata: {name: rules}}"},
		"tone":  {template, "{metadata: {name: tone}}"},
		"form":  {template, "{metadata: {name: form}, spec: {direction: Output}}"},
	} {
		u := object(t, o.base, o.patch)
		u.SetNamespace(project)
		if err := env.Client.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		made[name] = u
	}
	running := client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Running"}}`))
	if err := env.Client.Status().Patch(t.Context(), made["one"], running); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind   string
		fields client.MatchingFields
		want   []string
	}{
		{"FeatureList", client.MatchingFields{"status.phase": "Running"}, []string{"one"}},
		{"FeatureList", client.MatchingFields{"spec.agent.runtime": "command"}, []string{"one", "two"}},
		{"FeatureList", client.MatchingFields{"spec.repository.url": "https://git.example.com/other.git"}, []string{"two"}},
		{"CheckpointList", client.MatchingFields{"spec.featureName": "one"}, []string{"one-1", "one-2"}},
		{"CheckpointList", client.MatchingFields{"spec.featureName": "one", "spec.verdict": "Invalid"}, []string{"one-2"}},
		{"CheckpointList", client.MatchingFields{"spec.action": "Promoted"}, []string{"one-1", "two-1"}},
		{"SupervisorPolicyList", client.MatchingFields{"spec.enforcement": "Audit"}, []string{"audit"}},
		{"TemplateList", client.MatchingFields{"spec.direction": "Output"}, []string{"form"}},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("tidewaiter.dev/v1alpha1")
		list.SetKind(c.kind)
		if err := env.Client.List(t.Context(), list, client.InNamespace(project), c.fields); err != nil {
			t.Errorf("%s by %v: %v", c.kind, c.fields, err)
			continue
		}
		var names []string
		for _, o := range list.Items {
			names = append(names, o.GetName())
		}
		if slices.Sort(names); !slices.Equal(names, c.want) {
			t.Errorf("%s by %v: want %v, got %v", c.kind, c.fields, c.want, names)
		}
	}
}
