// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// ruleCase shows that a rule of a CRD lets through what it should and refuses what it should, with its own message.
type ruleCase struct {
	base string
	// from is laid over the base before anything else. A case with it is about changes: accept and reject are updates.
	from string
	// accept and reject are laid over base and from.
	accept, reject string
	// field that the refusal names, and message that it gives.
	field, message string
}

// TestRules proves every validation rule of every CRD on a real API server.
func TestRules(t *testing.T) {
	namespace := env.Project(t)
	proved := map[string]bool{}
	for name, c := range ruleCases() {
		t.Run(name, func(t *testing.T) {
			t.Log(c.message)
			if err := c.try(t, namespace, c.accept); err != nil && !inertOnly(err) {
				t.Errorf("want accepted, got %v", err)
			}
			err := c.try(t, namespace, c.reject)
			if !apierrors.IsInvalid(err) {
				t.Fatalf("want refused as invalid, got %v", err)
			}
			if !refusedBy(err, c.field, c.message) {
				t.Fatalf("want refused at %q with %q, got %v", c.field, c.message, err)
			}
			proved[object(t, c.base, "").GetKind()+" "+anyIndex.ReplaceAllString(c.field, "[]")+": "+c.message] = true
		})
	}
	t.Run("every rule has a case", func(t *testing.T) {
		for _, rule := range rulesOfCRDs(t) {
			// A plan in the status has the same types as that in the spec.
			if strings.Contains(rule, " status.") && strings.Contains(rule, ": "+inert) {
				continue
			}
			if !proved[rule] {
				t.Errorf("no case proves the rule %s", rule)
			}
		}
	})
}

var anyIndex = regexp.MustCompile(`\[[^\]]*\]`)

// try creates or updates; nothing stays.
func (c ruleCase) try(t *testing.T, namespace, patch string) error {
	t.Helper()
	if c.from == "" {
		return create(t, env.Client, namespace, object(t, c.base, patch), client.DryRunAll)
	}
	old := object(t, c.base, c.from)
	old.SetNamespace(namespace)
	if err := env.Client.Create(t.Context(), old); err != nil {
		t.Fatalf("create what is to be changed: %v", err)
	}
	defer func() {
		if err := env.Client.Delete(t.Context(), old); err != nil {
			t.Errorf("delete what was to be changed: %v", err)
		}
	}()
	return env.Client.Patch(t.Context(), old.DeepCopy(), client.RawPatch(types.MergePatchType, mergePatch(t, patch)), client.DryRunAll)
}

// refusedBy tells whether a message is among the reasons of a refusal, at that field. The API server puts the value that
// it refuses before the message.
func refusedBy(err error, field, message string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return strings.TrimPrefix(cause.Field, "<nil>") == field && strings.HasSuffix(cause.Message, ": "+message)
	})
}

// inertOnly tells whether each reason to refuse an object is a field that this version does not act on: rules about such a field have a case, too.
func inertOnly(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 &&
		!slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return !strings.Contains(cause.Message, ": "+inert) })
}

// inert begins the message of a rule that refuses a field because this version does not act on it.
const inert = "this version does not act on "

// rulesOfCRDs lists every rule that the installed CRDs have, as "Kind field: message".
func rulesOfCRDs(t *testing.T) []string {
	t.Helper()
	var list []string
	eachSchema(t, func(kind, path string, schema map[string]any) {
		rules, _, err := unstructured.NestedSlice(schema, "x-kubernetes-validations")
		if err != nil {
			t.Fatalf("%s %s: %v", kind, path, err)
		}
		for _, rule := range rules {
			message, _, _ := unstructured.NestedString(rule.(map[string]any), "message")
			if message == "" {
				t.Errorf("%s %s: a rule without a message", kind, path)
			}
			list = append(list, kind+" "+path+": "+message)
		}
	})
	return list
}

// eachSchema visits the schema of every field of every CRD. The path of a list's items or a map's values ends in "[]".
func eachSchema(t *testing.T, visit func(kind, path string, schema map[string]any)) {
	t.Helper()
	var walk func(kind, path string, schema map[string]any)
	walk = func(kind, path string, schema map[string]any) {
		visit(kind, path, schema)
		properties, _, _ := unstructured.NestedMap(schema, "properties")
		for name, property := range properties {
			walk(kind, strings.TrimPrefix(path+"."+name, "."), property.(map[string]any))
		}
		for _, key := range []string{"items", "additionalProperties"} {
			if inner, ok := schema[key].(map[string]any); ok {
				walk(kind, path+"[]", inner)
			}
		}
	}
	for _, o := range kubetest.Manifests(t, "dist/install.yaml") {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, version := range versions {
			schema, _, _ := unstructured.NestedMap(version.(map[string]any), "schema", "openAPIV3Schema")
			walk(kind, "", schema)
		}
	}
}
