// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// TestAPIPagesHaveEverything: each kind has a page, with the comment of every field, every value of an enumeration and the message of every rule.
func TestAPIPagesHaveEverything(t *testing.T) {
	files, err := filepath.Glob(root + "/config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatal(err)
		}
		name := "docs/reference/api/" + crd.Spec.Names.Singular + ".md"
		page, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
			continue
		}
		has := func(path, text string) {
			if !strings.Contains(string(page), inCell(text)) {
				t.Errorf("%s does not say of %s: %s", name, path, text)
			}
		}
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, rule := range schema.XValidations {
			has("the object", rule.Message)
		}
		for _, part := range []string{"spec", "status"} {
			eachProperty(part, schema.Properties[part], func(path string, s apiextensionsv1.JSONSchemaProps) {
				has(path, s.Description)
				for _, value := range s.Enum {
					has(path, "`"+strings.Trim(string(value.Raw), `"`)+"`")
				}
			}, has)
		}
	}
}

// eachProperty visits a property, the properties below it, and the messages of their rules. It leaves out the fields of conditions, which Kubernetes defines.
func eachProperty(path string, s apiextensionsv1.JSONSchemaProps, visit func(path string, s apiextensionsv1.JSONSchemaProps), rule func(path, message string)) {
	visit(path, s)
	of := s
	for {
		for _, r := range of.XValidations {
			rule(path, r.Message)
		}
		if of.Items == nil {
			break
		}
		of = *of.Items.Schema
	}
	if strings.HasSuffix(path, ".conditions") {
		return
	}
	for name, property := range of.Properties {
		eachProperty(path+"."+name, property, visit, rule)
	}
}

// TestAPIPageRefuses: a field that the API server accepts is not marked as refused, and a rule that compares with the old object is understood or named.
func TestAPIPageRefuses(t *testing.T) {
	crd, kind := root+"/config/crd/bases/tidewaiter.dev_features.yaml", reflect.TypeFor[v1alpha1.Feature]()
	if _, err := kindPage(crd, kind, "", []string{"spec.prompt"}); err == nil || !strings.Contains(err.Error(), "no rule refuses spec.prompt") {
		t.Errorf("a list with a field that no rule refuses: %v", err)
	}
	text, err := os.ReadFile(crd)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(other, []byte(strings.ReplaceAll(string(text), "agent.runtime is fixed at creation", "do not change agent.runtime")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kindPage(other, kind, "", nil); err == nil || !strings.Contains(err.Error(), `"do not change agent.runtime" of spec compares with oldSelf`) {
		t.Errorf("a rule that compares with oldSelf and does not name its field: %v", err)
	}
}
