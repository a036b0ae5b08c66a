// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package inert_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/inert"
)

// TestTheCRDsRefuseWhatNothingActsOn: the rules of the CRDs and the list of this package name the same fields.
func TestTheCRDsRefuseWhatNothingActsOn(t *testing.T) {
	features, rules := inert.Paths()
	var want []string
	for _, path := range features {
		want = append(want, "Feature "+path)
	}
	for _, part := range []string{"spec.defaults.", "spec.overrides."} {
		for _, path := range rules {
			want = append(want, "SupervisorPolicy "+part+path)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, refused(t)); diff != "" {
		t.Errorf("fields that nothing acts on, in this package and in the rules of api/v1alpha1 (-list +rules):\n%s", diff)
	}
}

// refusal is the message of a rule that refuses a field: it names the field and says what to do.
var refusal = regexp.MustCompile(`^this version does not act on ([^ :]+)[^:]*: \S`)

// refused are the kinds and paths of all fields whose rule says that nothing acts on them. Each message names its own field.
func refused(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	var list []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd map[string]any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		kind, _, _ := unstructured.NestedString(crd, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
		for _, version := range versions {
			schema, _, _ := unstructured.NestedMap(version.(map[string]any), "schema", "openAPIV3Schema")
			eachRule(schema, "", func(path, message string) {
				m := refusal.FindStringSubmatch(message)
				if m == nil || strings.HasPrefix(path, "status.") { // a plan in the status has the same types
					return
				}
				list = append(list, kind+" "+path)
				if !strings.HasSuffix(path, m[1]) {
					t.Errorf("%s %s: the message names another field: %s", kind, path, message)
				}
			})
		}
	}
	slices.Sort(list)
	return list
}

func eachRule(schema map[string]any, path string, visit func(path, message string)) {
	rules, _, _ := unstructured.NestedSlice(schema, "x-kubernetes-validations")
	for _, rule := range rules {
		message, _, _ := unstructured.NestedString(rule.(map[string]any), "message")
		visit(path, message)
	}
	properties, _, _ := unstructured.NestedMap(schema, "properties")
	for name, property := range properties {
		eachRule(property.(map[string]any), strings.TrimPrefix(path+"."+name, "."), visit)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		eachRule(items, path+"[]", visit)
	}
}

// TestWhatAnEarlierVersionStoredIsNamed: each field of the list is found in an object that has it, and in no other.
func TestWhatAnEarlierVersionStoredIsNamed(t *testing.T) {
	found := map[string]bool{}
	for spec, want := range map[string][]string{
		"{}": nil,
		"{planning: Approve, gates: [], dependsOn: [], delivery: {push: true}, requests: [{id: a, approvePlan: {hash: x}}], plan: {milestones: [{name: m, tasks: [{name: t}]}]}}": nil,
		"{delivery: {pullRequest: {}}, dependsOn: [other]}": {"spec.delivery.pullRequest", "spec.dependsOn"},
		"{delivery: {pullRequest: {}}}":                     {"spec.delivery.pullRequest"},
	} {
		f := &v1alpha1.Feature{}
		if err := yaml.UnmarshalStrict([]byte(spec), &f.Spec); err != nil {
			t.Fatal(err)
		}
		got := inert.Feature(f)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
		for _, path := range got {
			found[path] = true
		}
	}
	for spec, want := range map[string][]string{
		"{}": nil,
		"{defaults: {models: [{role: primary}, {role: summarizer}, {role: supervisor}]}, overrides: {}}": nil,
		"{defaults: {models: [{role: primary}, {role: reviewer}]}}":                                      {"spec.defaults.models[].role"},
		"{defaults: {reviewers: {codeStyle: {}, design: {}, knowledge: {}, maxDirectives: 2}}}":          nil,
		"{defaults: {models: [{role: planner}]}, overrides: {models: [{role: reviewer}]}}":               {"spec.defaults.models[].role", "spec.overrides.models[].role"},
	} {
		p := &v1alpha1.SupervisorPolicy{}
		if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
			t.Fatal(err)
		}
		got := inert.Policy(p)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
		for _, path := range got {
			found[strings.TrimPrefix(strings.TrimPrefix(path, "spec.defaults."), "spec.overrides.")] = true
		}
	}
	features, rules := inert.Paths()
	for _, path := range slices.Concat(features, rules) {
		if !found[path] {
			t.Errorf("no case of this test has %s", path)
		}
	}
}

// wordsOf are the words of the pages for what this version does not act on; empty for a field that belongs to another word.
var wordsOf = map[string]string{
	"models[].role":  "",
	"spec.dependsOn": "dependencies", "spec.delivery.pullRequest": "pull requests",
}

// TestPagesSayWhatNothingActsOn: the sentence of the first pages names what the list of this package has, and nothing else.
func TestPagesSayWhatNothingActsOn(t *testing.T) {
	features, rules := inert.Paths()
	var want []string
	for _, path := range append(features, rules...) {
		word, known := wordsOf[path]
		if !known {
			t.Errorf("%s: give it a word in wordsOf", path)
		}
		if word != "" {
			want = append(want, word)
		}
	}
	slices.Sort(want)
	sentence := regexp.MustCompile(`It does not act yet on ([^.]+)\.`)
	for _, page := range []string{"../../../README.md", "../../../docs/get-started/overview.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		m := sentence.FindSubmatch(text)
		if m == nil {
			t.Errorf("%s: no sentence says what this version does not act on", page)
			continue
		}
		got := strings.Split(strings.ReplaceAll(string(m[1]), " and ", ", "), ", ")
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-list +page):\n%s", page, diff)
		}
	}
}
