// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/inert"
)

// TestTheAPITakesWhatCanBeUsed: each number, size, length of time and amount of money of a policy's rules has the same limits in the CRD as in
// core/policy. What the API server takes must not be refused later, when no one looks; and what it refuses must not be documented as allowed.
func TestTheAPITakesWhatCanBeUsed(t *testing.T) {
	sections := map[string]bool{}
	for _, row := range policy.Rows() {
		section, _, _ := strings.Cut(row.Path, ".")
		sections[section] = true
	}
	tried := 0
	for path, edges := range limitsOfAPI(t) {
		if section, _, _ := strings.Cut(path, "."); !sections[strings.TrimSuffix(section, "[]")] || refused(path) {
			continue // this version does not act on it
		}
		for _, e := range edges {
			if !e.within && e.value == int64(0) && strings.Contains(path, "[]") {
				continue // in an entry of a list it stands for what is not set
			}
			tried++
			r := &v1alpha1.Rules{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(at(path, e.value), r); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if _, err := rules("spec.defaults", r); (err == nil) != e.within {
				t.Errorf("%s: %v is within the limits of the CRD: %t; core says %v", path, e.value, e.within, err)
			}
		}
	}
	if tried < 100 {
		t.Errorf("%d values were tried: is the CRD read?", tried)
	}
}

// refused says whether the CRD refuses a field of a policy's rules, because this version does not act on it.
func refused(path string) bool {
	_, fields := inert.Paths()
	return slices.ContainsFunc(fields, func(field string) bool { return path == field || strings.HasPrefix(path, field+".") })
}

// edge of what the CRD allows: a value that is just within, or just beyond.
type edge struct {
	value  any
	within bool
}

// limitsOfAPI are the edges of each field below spec.defaults of a SupervisorPolicy that has any, by its path. Entries of lists are "[]".
func limitsOfAPI(t *testing.T) map[string][]edge {
	t.Helper()
	text, err := os.ReadFile("../../../config/crd/bases/tidewaiter.dev_supervisorpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema property }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	all := map[string][]edge{}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["defaults"].walk("", func(path string, p property) {
		if edges := p.edges(t, path); len(edges) > 0 {
			all[path] = edges
		}
	})
	return all
}

// property of a CRD.
type property struct {
	Type             string
	Minimum, Maximum *int64
	Properties       map[string]property
	Items            *property
	Validations      []struct{ Rule string } `json:"x-kubernetes-validations"`
}

func (p property) walk(path string, visit func(string, property)) {
	visit(path, p)
	for name, child := range p.Properties {
		child.walk(strings.TrimPrefix(path+"."+name, "."), visit)
	}
	if p.Items != nil {
		p.Items.walk(path+"[]", visit)
	}
}

var (
	durationLimit = regexp.MustCompile(`duration\(self\) (>=|>|<=) duration\('([^']+)'\)`)
	quantityLimit = regexp.MustCompile(`quantity\(string\(self\)\)\.compareTo\(quantity\('([^']+)'\)\) (>=|<=) 0`)
)

func (p property) edges(t *testing.T, path string) (edges []edge) {
	t.Helper()
	if p.Type == "integer" {
		if p.Minimum == nil || p.Maximum == nil {
			t.Errorf("%s has no limits", path)
			return nil
		}
		return []edge{{*p.Minimum, true}, {*p.Maximum, true}, {*p.Minimum - 1, false}, {*p.Maximum + 1, false}}
	}
	for _, v := range p.Validations {
		for _, m := range durationLimit.FindAllStringSubmatch(v.Rule, -1) {
			limit, err := time.ParseDuration(m[2])
			if err != nil {
				t.Fatal(err)
			}
			beyond := map[string]time.Duration{">=": limit - 1, ">": limit, "<=": limit + 1}[m[1]]
			within := map[string]time.Duration{">=": limit, ">": limit + 1, "<=": limit}[m[1]]
			edges = append(edges, edge{within.String(), true}, edge{beyond.String(), false})
		}
		for _, m := range quantityLimit.FindAllStringSubmatch(v.Rule, -1) {
			limit := resource.MustParse(m[1])
			beyond := map[string]int64{">=": limit.Value() - 1, "<=": limit.Value() + 1}[m[2]]
			edges = append(edges, edge{m[1], true}, edge{fmt.Sprint(beyond), false})
		}
		if strings.Contains(v.Rule, "double(self) > 0.0") {
			edges = append(edges, edge{"0.000001", true}, edge{"0", false})
		}
		if strings.Contains(v.Rule, "[0-9]{1,3}([.][0-9]{1,2})?$') && double(self) >= 0.01") {
			edges = append(edges, edge{"0.01", true}, edge{"999.99", true}, edge{"0.00", false}, edge{"1000", false}, edge{"1.001", false}, edge{"1.", false}, edge{"one", false})
		}
	}
	return edges
}

// at is an object that has a value at a path.
func at(path string, value any) map[string]any {
	name, rest, deeper := strings.Cut(path, ".")
	if deeper {
		value = at(rest, value)
	}
	if list, is := strings.CutSuffix(name, "[]"); is {
		entry, _ := value.(map[string]any)
		maps.Copy(entry, map[string]any{"name": "x", "host": "registry.example.com", "instructions": "Look."})
		return map[string]any{list: []any{entry}}
	}
	return map[string]any{name: value}
}

// TestEveryNumberHasARow: and so limits, which TestTheAPITakesWhatCanBeUsed looks at.
func TestEveryNumberHasARow(t *testing.T) {
	tried := slices.Collect(maps.Keys(limitsOfAPI(t)))
	for _, row := range policy.Rows() {
		if row.SetNumber != nil && !slices.Contains(tried, row.Path) {
			t.Errorf("%s has no limits in the CRD", row.Path)
		}
	}
}
