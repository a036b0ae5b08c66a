// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Small objects that the API server accepts; cases say how theirs differ.
const (
	feature = `
apiVersion: tidewaiter.dev/v1alpha1
kind: Feature
metadata: {name: add-login}
spec:
  prompt: Add a login page.
  repository: {url: "https://git.example.com/shop.git"}
  agent: {runtime: command, image: agent, command: [work]}
`
	policy = `
apiVersion: tidewaiter.dev/v1alpha1
kind: SupervisorPolicy
metadata: {name: rules}
spec: {}
`
	template = `
apiVersion: tidewaiter.dev/v1alpha1
kind: Template
metadata: {name: tone}
spec: {direction: Input, text: Be brief.}
`
	checkpoint = `
apiVersion: tidewaiter.dev/v1alpha1
kind: Checkpoint
metadata: {name: add-login-1}
spec:
  featureName: add-login
  featureUID: 0b5f8f5e-0000-4000-8000-000000000000
  sequence: 1
  attempt: 1
  trigger: Task
  captureTime: "2026-01-02T03:04:05Z"
  verdict: Valid
  action: Promoted
`
)

// object is a base with a JSON merge patch (in YAML) laid over it.
func object(t *testing.T, base, patch string) *unstructured.Unstructured {
	t.Helper()
	document, err := yaml.YAMLToJSONStrict([]byte(base))
	if err != nil {
		t.Fatalf("base: %v", err)
	}
	if patch != "" {
		if document, err = jsonpatch.MergePatch(document, mergePatch(t, patch)); err != nil {
			t.Fatalf("lay patch over base: %v", err)
		}
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(document, &u.Object); err != nil {
		t.Fatalf("read patched base: %v", err)
	}
	return u
}

func mergePatch(t *testing.T, patch string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(patch))
	if err != nil {
		t.Fatalf("patch %q: %v", patch, err)
	}
	return data
}

// create makes the object in a namespace.
func create(t *testing.T, who client.Client, namespace string, u *unstructured.Unstructured, opts ...client.CreateOption) error {
	t.Helper()
	u = u.DeepCopy()
	u.SetNamespace(namespace)
	return who.Create(t.Context(), u, opts...)
}
