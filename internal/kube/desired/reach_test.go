// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/kube/desired"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
	"github.com/tidewaiter/tidewaiter/internal/kube/inert"
	"github.com/tidewaiter/tidewaiter/internal/kube/supervisorpolicy"
	"github.com/tidewaiter/tidewaiter/internal/testkit/leaves"
)

// elsewhere are the leaves of a Feature's spec that reach neither the orders of its watchdog, nor what the lifecycle decides by, nor its objects, and why.
var elsewhere = map[string]string{
	"priority": "kube/observe compares it with that of other Features",
}

// others are values of leaves for which the sample has the default, or that it cannot have together with another one.
var others = map[string]string{
	"promptFrom.configMapKeyRef.name": "prompts",
	"promptFrom.configMapKeyRef.key":  "login",
	"repository.revision":             "release",
	"agent.runAsUser":                 "2000",
	"workspace.size":                  "9Gi",
	"workspace.ephemeral":             "true",
	"delivery.branch":                 "tidewaiter/other",
	"delivery.push":                   "false",
	"delivery.approval":               "Required",
	"maxRetries":                      "1",
	"suspend":                         "true",
	"requests.rollback.kind":          "Full",
}

// TestEveryFieldOfASpecReachesSomething: each leaf of FeatureSpec changes the orders of the watchdog, what the lifecycle decides by or the objects of the
// Feature, or stands in a list with a reason. A field that was added and forgotten does none of it. The API server refuses what kube/inert lists.
func TestEveryFieldOfASpecReachesSomething(t *testing.T) {
	text, err := os.ReadFile("../../../config/samples/feature-every-field.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sample map[string]any
	if err := yaml.Unmarshal(text, &sample); err != nil {
		t.Fatal(err)
	}
	refused, _ := inert.Paths()
	for _, leaf := range leaves.Of[v1alpha1.FeatureSpec]() {
		if slices.ContainsFunc(refused, func(path string) bool {
			return strings.HasPrefix("spec."+leaf+".", strings.ReplaceAll(path, "[]", "")+".")
		}) {
			continue
		}
		object := runtime.DeepCopyJSON(sample)
		before, path := reached(t, object), strings.Split(leaf, ".")
		if value, is := others[leaf]; is {
			var v any
			if err := yaml.Unmarshal([]byte(value), &v); err != nil {
				t.Fatal(err)
			}
			set(object["spec"], path, v)
		} else if !remove(object["spec"], path) {
			t.Errorf("spec.%s: config/samples/feature-every-field.yaml does not have it: add it there, or a value to others in this test", leaf)
			continue
		}
		_, excused := elsewhere[leaf]
		switch same := reached(t, object) == before; {
		case same && !excused:
			t.Errorf("spec.%s changes nothing: neither the orders of the watchdog (kube/features), nor what core/lifecycle decides by, nor an object (kube/desired). Use it there, or say in elsewhere in this test where it is used", leaf)
		case !same && excused:
			t.Errorf("spec.%s reaches something: take it out of elsewhere in this test", leaf)
		}
	}
}

// reached is all that comes of a Feature, as text.
func reached(t *testing.T, object map[string]any) string {
	t.Helper()
	f := &v1alpha1.Feature{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, f); err != nil {
		t.Fatal(err)
	}
	f.Namespace = "shop"
	effective, err := supervisorpolicy.Effective(f, nil, supervisorpolicy.Place{})
	if err != nil {
		t.Fatal(err)
	}
	configMap, key, _ := features.PromptKey(f)
	o := desired.Options{SystemNamespace: "tidewaiter-system", Image: "tidewaiter", Pod: effective.Pod, Intake: netip.MustParseAddr("10.0.0.1"), Gateway: netip.MustParseAddr("10.0.0.2")}
	all, err := json.Marshal([]any{
		features.Orders(f, effective, f.Spec.Prompt, nil), features.Spec(f, effective), features.Use(f), configMap, key, desired.Claims(f),
		desired.Job(f, lifecycle.Start{Attempt: 1, Run: lifecycle.RunAgent, Mode: policy.ModeInteractive}, o),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// remove a leaf wherever it is in lists, and say whether it was anywhere.
func remove(at any, path []string) (was bool) {
	switch at := at.(type) {
	case []any:
		for _, element := range at {
			was = remove(element, path) || was
		}
	case map[string]any:
		if len(path) > 1 {
			return remove(at[path[0]], path[1:])
		}
		_, was = at[path[0]]
		delete(at, path[0])
	}
	return was
}

// set a leaf, in each element of lists.
func set(at any, path []string, value any) {
	switch at := at.(type) {
	case []any:
		for _, element := range at {
			set(element, path, value)
		}
	case map[string]any:
		if len(path) == 1 {
			at[path[0]] = value
			return
		}
		if at[path[0]] == nil {
			at[path[0]] = map[string]any{}
		}
		set(at[path[0]], path[1:], value)
	}
}
