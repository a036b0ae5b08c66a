// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// unbounded are the places whose schemas are not ours. Their size is bounded by that of a request alone.
var unbounded = map[string]string{
	"Template spec.jsonSchema":           "a JSON schema: anything goes inside it",
	"Template status.inForce.jsonSchema": "as spec.jsonSchema",
}

// TestEverythingIsBounded: whatever people, watchdogs or the manager write has bounds, so that an object fits into etcd,
// rules have a known cost, and no number is too large for the program that reads it. Numbers are bounded where people
// write them.
func TestEverythingIsBounded(t *testing.T) {
	exempted := map[string]bool{}
	eachSchema(t, func(kind, path string, schema map[string]any) {
		if !strings.HasPrefix(path, "spec.") && !strings.HasPrefix(path, "status.") {
			return
		}
		for place := range unbounded {
			if at := kind + " " + path; at == place || strings.HasPrefix(at, place+".") {
				exempted[place] = true
				return
			}
		}
		if schema["type"] == "integer" && (kind == "Checkpoint" || strings.HasPrefix(path, "status.")) {
			return
		}
		if missing := missingBound(schema); missing != "" {
			t.Errorf("%s %s has no %s", kind, path, missing)
		}
	})
	for place := range unbounded {
		if !exempted[place] {
			t.Errorf("%s is exempted from bounds, but there is no such place", place)
		}
	}
}

// TestEnumsAreCamelCase: every value that the API has a closed set of is written like those of Kubernetes.
func TestEnumsAreCamelCase(t *testing.T) {
	eachSchema(t, func(kind, path string, schema map[string]any) {
		values, _ := schema["enum"].([]any)
		for _, value := range values {
			if text, ok := value.(string); !ok || !camelCase.MatchString(text) {
				t.Errorf("%s %s: the value %v is not in CamelCase", kind, path, value)
			}
		}
	})
}

var camelCase = regexp.MustCompile(`^([A-Z][a-z0-9]*)+$`)

// TestTimesEndInTime: a point in time says which one it is, as in the kinds of Kubernetes (docs/adr/0110).
func TestTimesEndInTime(t *testing.T) {
	name := regexp.MustCompile(`(^|\.)[a-z][A-Za-z]*Time$`)
	eachSchema(t, func(kind, path string, schema map[string]any) {
		if schema["format"] == "date-time" && !name.MatchString(path) {
			t.Errorf("%s %s is a time: give it a name that ends in Time", kind, path)
		}
	})
}

// TestWordsOfTheStatusAreClosedSets: what programs decide by has a closed set of values, which clients can generate.
func TestWordsOfTheStatusAreClosedSets(t *testing.T) {
	words := regexp.MustCompile(`(^|\.)(outcome|state|run|phase|verdict|action|trigger|severity|health|paceLevel|mode|enforcement)$`)
	eachSchema(t, func(kind, path string, schema map[string]any) {
		if words.MatchString(path) && schema["type"] == "string" && schema["enum"] == nil {
			t.Errorf("%s %s is any string: give it an enum", kind, path)
		}
	})
}

func missingBound(schema map[string]any) string {
	has := func(key string) bool { return schema[key] != nil }
	switch schema["type"] {
	case "string":
		if !has("maxLength") && !has("enum") && schema["format"] != "date-time" {
			return "maxLength"
		}
	case "array":
		if !has("maxItems") {
			return "maxItems"
		}
	case "integer":
		if !has("minimum") || !has("maximum") || !fits(schema) {
			return "minimum and maximum that fit its format"
		}
	case "object":
		if has("additionalProperties") && !has("maxProperties") || has("x-kubernetes-preserve-unknown-fields") {
			return "maxProperties"
		}
	}
	return ""
}

// fits tells whether an integer's bounds can be held by its format.
func fits(schema map[string]any) bool {
	limit := float64(math.MaxInt64)
	if schema["format"] == "int32" {
		limit = math.MaxInt32
	}
	number := func(key string) float64 {
		switch n := schema[key].(type) {
		case int64:
			return float64(n)
		case float64:
			return n
		}
		return math.Inf(1)
	}
	return math.Abs(number("minimum")) <= limit && number("maximum") <= limit
}

// TestNothingAcceptedBreaksReaders: an object that the API server takes but Go cannot read would fail every list of its
// kind, and with it the manager, for all projects.
func TestNothingAcceptedBreaksReaders(t *testing.T) {
	namespace := env.Project(t)
	cases := map[string]struct{ base, patch string }{
		"days":                {feature, "spec: {activeDeadline: 1d}"},
		"words":               {feature, "spec: {ttlAfterFinished: 2 weeks}"},
		"centuries":           {feature, "spec: {activeDeadline: 999999h999999h999999h999999h}"},
		"empty duration":      {feature, `spec: {activeDeadline: ""}`},
		"fractional exponent": {feature, `spec: {workspace: {size: "1e1.5"}}`},
		"huge exponent":       {feature, `spec: {workspace: {size: "1e99999999999"}}`},
		"busy exponent":       {feature, `spec: {agent: {resources: {requests: {memory: "1e99999999999"}}}}`},
		"exponent of limits":  {feature, `spec: {agent: {resources: {limits: {cpu: "1e1.5"}}}}`},
		"huge integer":        {feature, "spec: {maxRetries: 1000000000000000000000}"},
		"integer as float":    {feature, "spec: {maxRetries: 1e30}"},
		"beyond int32":        {policy, "spec: {priority: 3000000000}"},
		"beyond int64":        {policy, "spec: {defaults: {budget: {maxInputTokens: 1e19}}}"},
		"order beyond int32":  {template, "spec: {order: -3000000000}"},
		"whole float":         {policy, "spec: {priority: 7.0}"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := object(t, c.base, c.patch)
			u.SetName("reader")
			u.SetNamespace(namespace)
			err := env.Client.Create(t.Context(), u)
			if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
				return
			}
			if err != nil {
				t.Fatalf("want accepted or refused as invalid, got %v", err)
			}
			defer func() {
				if err := env.Client.Delete(t.Context(), u); err != nil {
					t.Error(err)
				}
			}()
			for _, list := range []client.ObjectList{&v1alpha1.FeatureList{}, &v1alpha1.SupervisorPolicyList{}, &v1alpha1.TemplateList{}} {
				if err := env.Client.List(t.Context(), list); err != nil {
					t.Errorf("accepted, but %T cannot be listed any more: %v", list, err)
				}
			}
		})
	}
}

// TestEveryFieldIsDocumented: `kubectl explain` shows what the comments of the types say.
func TestEveryFieldIsDocumented(t *testing.T) {
	eachSchema(t, func(kind, path string, schema map[string]any) {
		// The schema of an item or a value describes itself only where it is an object of ours.
		// Metadata is described by Kubernetes.
		if path == "" || path == "metadata" || strings.HasSuffix(path, "[]") {
			return
		}
		if description, _ := schema["description"].(string); description == "" {
			t.Errorf("%s %s has no description", kind, path)
		}
	})
}

// TestCRDsCanBeAppliedByKubectl: client-side apply keeps a copy of each object in an annotation of at most 256 KiB.
func TestCRDsCanBeAppliedByKubectl(t *testing.T) {
	root, err := kubetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "config/crd/bases/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("want CRDs in config/crd/bases, got %v, %v", files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		// JSON is smaller than the YAML that it comes from.
		if limit := int64(250 << 10); info.Size() > limit {
			t.Errorf("%s has %d bytes, more than %d", filepath.Base(file), info.Size(), limit)
		}
	}
}
