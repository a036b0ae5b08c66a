// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stored are objects with every field that this version does not act on, as an earlier version has stored them.
const (
	storedFeature = `
metadata: {name: stored}
spec:
  plan: {milestones: [{name: m, tasks: [{name: t}]}]}
  dependsOn: [other]
  delivery: {pullRequest: {title: Login}}
`
	storedPolicy = `
metadata: {name: stored}
spec:
  defaults: {models: [{role: reviewer, backend: b, model: m}]}
`
)

// TestStoredFieldsThatNothingActsOn: an object with such a field can be changed in everything else, and the field can be removed.
func TestStoredFieldsThatNothingActsOn(t *testing.T) {
	namespace := env.Project(t)
	restore := letInertFieldsPass(t, namespace)
	f, p := object(t, feature, storedFeature), object(t, policy, storedPolicy)
	for _, o := range []*unstructured.Unstructured{f, p} {
		if err := create(t, env.Client, namespace, o); err != nil {
			t.Fatal(err)
		}
		o.SetNamespace(namespace)
	}
	restore()
	patched := func(o *unstructured.Unstructured, patch string, subresource ...string) error {
		o = o.DeepCopy()
		if len(subresource) > 0 {
			return env.Client.SubResource(subresource[0]).Patch(t.Context(), o, client.RawPatch(types.MergePatchType, mergePatch(t, patch)))
		}
		return env.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, mergePatch(t, patch)))
	}
	for _, c := range []struct {
		what    string
		object  *unstructured.Unstructured
		patch   string
		status  []string
		refused string
	}{
		{what: "a label", object: f, patch: "{metadata: {labels: {team: web}}}"},
		{what: "a finalizer", object: f, patch: "{metadata: {finalizers: [example.com/a]}}"},
		{what: "another field of the spec", object: f, patch: "{spec: {suspend: true, delivery: {push: false}}}"},
		{what: "the status", object: f, patch: "{status: {phase: Suspended, observedRequests: [{id: old, state: Done}]}}", status: []string{"status"}},
		{what: "one more request", object: f, patch: "{spec: {requests: [{id: again, retry: {}}]}}"},
		{what: "one more task", object: f, patch: "{spec: {plan: {milestones: [{name: m, tasks: [{name: t}, {name: u}]}]}}}"},
		{what: "another title", object: f, patch: "{spec: {delivery: {pullRequest: {title: Page}}}}", refused: "spec.delivery.pullRequest"},
		{what: "one more dependency", object: f, patch: "{spec: {dependsOn: [other, another]}}", refused: "spec.dependsOn"},
		{what: "none of these fields", object: f, patch: "{metadata: {finalizers: null}, spec: {plan: null, dependsOn: null, delivery: null, requests: null}}"},
		{what: "another rule", object: p, patch: "{spec: {defaults: {models: [{role: primary, backend: b, model: m}, {role: supervisor, backend: b, model: m}]}}}"},
		{what: "another reviewer", object: p, patch: "{spec: {defaults: {reviewers: {codeStyle: {}}}}}"},
		{what: "another rule for a reviewer", object: p, patch: "{spec: {defaults: {reviewers: {knowledge: {everyTasks: 2}}}}}"},
		{what: "another model of the supervisor", object: p, patch: "{spec: {defaults: {models: [{role: supervisor, backend: other, model: m}]}}}"},
		{what: "neither", object: p, patch: "{spec: {defaults: {models: null, reviewers: null}}}"},
		{what: "another role again", object: p, patch: "{spec: {defaults: {models: [{role: reviewer, backend: b, model: m}]}}}", refused: "models[].role"},
	} {
		err := patched(c.object, c.patch, c.status...)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), inert+c.refused)):
			t.Errorf("%s: want refused because of %s, got %v", c.what, c.refused, err)
		}
	}
}

// letInertFieldsPass takes the rules that refuse fields out of the CRDs, as in an earlier version. What it returns puts them back.
func letInertFieldsPass(t *testing.T, namespace string) (restore func()) {
	t.Helper()
	whole := map[string]apiextensionsv1.CustomResourceDefinitionSpec{}
	for _, name := range []string{"features.tidewaiter.dev", "supervisorpolicies.tidewaiter.dev"} {
		whole[name] = editCRD(t, name, func(spec *apiextensionsv1.CustomResourceDefinitionSpec) {
			for i := range spec.Versions {
				withoutInertRules(spec.Versions[i].Schema.OpenAPIV3Schema)
			}
		})
	}
	await(t, namespace, true)
	return func() {
		t.Helper()
		for name, was := range whole {
			editCRD(t, name, func(spec *apiextensionsv1.CustomResourceDefinitionSpec) { *spec = was })
		}
		await(t, namespace, false)
	}
}

func editCRD(t *testing.T, name string, edit func(*apiextensionsv1.CustomResourceDefinitionSpec)) (was apiextensionsv1.CustomResourceDefinitionSpec) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
		t.Fatal(err)
	}
	was = *crd.Spec.DeepCopy()
	edit(&crd.Spec)
	if err := env.Client.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	return was
}

func withoutInertRules(schema *apiextensionsv1.JSONSchemaProps) {
	var kept apiextensionsv1.ValidationRules
	for _, rule := range schema.XValidations {
		if !strings.HasPrefix(rule.Message, inert) {
			kept = append(kept, rule)
		}
	}
	schema.XValidations = kept
	for name, property := range schema.Properties {
		withoutInertRules(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		withoutInertRules(schema.Items.Schema)
	}
}

// await waits until the API server lets the fields of both kinds pass, or refuses them.
func await(t *testing.T, namespace string, pass bool) {
	t.Helper()
	for _, o := range []*unstructured.Unstructured{object(t, feature, storedFeature), object(t, policy, storedPolicy)} {
		o.SetName("probe")
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return (create(t, env.Client, namespace, o, client.DryRunAll) == nil) == pass, nil
		})
		if err != nil {
			t.Fatalf("wait until the API server lets %s pass (%t): %v", o.GetKind(), pass, err)
		}
	}
}
