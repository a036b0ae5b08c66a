// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/testkit/filled"
)

// TestEveryValueOfTheAPIIsRead: what core has a row of, it has all of; and no field of core's rules is never set. Sections
// without any row are those that package inert lists, or that are read elsewhere.
func TestEveryValueOfTheAPIIsRead(t *testing.T) {
	api := &v1alpha1.Rules{}
	filled.Value(t, api)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(api)
	if err != nil {
		t.Fatal(err)
	}
	// The gateway reads these itself: they are no rows.
	rows, sections := []string{"supervision.maxRetries", "supervision.failOnViolation", "supervision.allowRawOutput", "supervision.allowOutputReplacement", "supervision.requireFormatValidation"}, map[string]bool{}
	for _, row := range policy.Rows() {
		section, _, _ := strings.Cut(row.Path, ".")
		rows, sections[section] = append(rows, row.Path), true
	}
	for _, path := range leavesOf("", fields) {
		section, _, _ := strings.Cut(path, ".")
		entry := func(row string) bool { return path == row || strings.HasPrefix(path, row+".") } // of a map
		if sections[section] && !refused(path) && !slices.ContainsFunc(rows, entry) {
			t.Errorf("%s of the API's rules has no row in core/policy", path)
		}
	}
	got, _ := rules("spec.defaults", api) // what is filled in cannot all be used, and is read all the same
	for path, field := range fieldsOf("policy.Rules", reflect.ValueOf(got)) {
		if field.IsZero() {
			t.Errorf("%s is set by no field of the API's rules", path)
		}
	}
}

// leavesOf are the paths of what is no object.
func leavesOf(at string, fields map[string]any) []string {
	var paths []string
	for name, value := range fields {
		if object, ok := value.(map[string]any); ok {
			paths = append(paths, leavesOf(at+name+".", object)...)
		} else {
			paths = append(paths, at+name)
		}
	}
	return paths
}

// fieldsOf are the fields of a struct and of the structs in it, by path.
func fieldsOf(at string, v reflect.Value) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	for i := range v.NumField() {
		path := at + "." + v.Type().Field(i).Name
		if v.Field(i).Kind() != reflect.Struct {
			all[path] = v.Field(i)
			continue
		}
		maps.Copy(all, fieldsOf(path, v.Field(i)))
	}
	return all
}

// TestBudgetsOfAFeature: they are limits of its policy, and what is no amount of money lets nothing through.
func TestBudgetsOfAFeature(t *testing.T) {
	f := &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{Budget: &v1alpha1.Budget{MaxOutputTokens: ptr.To[int64](7), MaxCost: "0.5"}}}
	e, err := Effective(f, nil, Place{SystemNamespace: "tidewaiter-system"})
	if want := (policy.Limits{OutputTokens: 7, Cost: 500_000}); err != nil || e.Budgets.Feature != want {
		t.Errorf("%+v, %v; want %+v", e.Budgets.Feature, err, want)
	}
	for text, want := range map[string]string{"much": `spec.defaults.budget.maxCost: "much" is not an amount of money`, "0.0": "spec.defaults.budget.maxCost: 0.0 is too little"} {
		r, err := rules("spec.defaults", &v1alpha1.Rules{Budget: &v1alpha1.BudgetRules{Budget: v1alpha1.Budget{MaxCost: text}}})
		if err == nil || !strings.HasPrefix(err.Error(), want) || *r.Budget.Feature.Cost != 1 {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestSizes: a size is read as bytes, and one of nothing is refused at its place.
func TestSizes(t *testing.T) {
	got, err := rules("spec.defaults", &v1alpha1.Rules{Changes: &v1alpha1.ChangeRules{MaxFileSize: ptr.To(resource.MustParse("1.5Mi"))}})
	if err != nil || got.MaxFileSize == nil || *got.MaxFileSize != 3<<19 {
		t.Errorf("got %v, %v", got.MaxFileSize, err)
	}
	for text, want := range map[string]string{
		"0":   "spec.defaults.changes.maxFileSize: 0 is not a size: give a positive one, for example 50Mi",
		"-1k": "spec.defaults.changes.maxFileSize: -1k is not a size: give a positive one, for example 50Mi",
	} {
		_, err := rules("spec.defaults", &v1alpha1.Rules{Changes: &v1alpha1.ChangeRules{MaxFileSize: ptr.To(resource.MustParse(text))}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestHundredths: a decimal number is read in hundredths, and what is none is refused at its place.
func TestHundredths(t *testing.T) {
	for text, want := range map[string]int64{"1": 100, "1.0": 100, "0.5": 50, "0.05": 5, "12.34": 1234, "999.99": 99_999} {
		got, err := rules("spec.defaults", &v1alpha1.Rules{Reviewers: &v1alpha1.ReviewerRules{UrgencyThreshold: text}})
		if err != nil || got.Reviewers.UrgencyThreshold == nil || *got.Reviewers.UrgencyThreshold != want {
			t.Errorf("%s: %v, %v; want %d", text, got.Reviewers.UrgencyThreshold, err, want)
		}
	}
	_, err := rules("spec.overrides", &v1alpha1.Rules{Reviewers: &v1alpha1.ReviewerRules{UrgencyThreshold: "-1"}})
	if want := `spec.overrides.reviewers.urgencyThreshold: "-1" is not a decimal number with at most 2 digits after the point: give one such as 1.0`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
