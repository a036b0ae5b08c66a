// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

const samplesDir = "config/samples"

// samples reads every sample file by name.
func samples(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	root, err := kubetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(root, samplesDir))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]*unstructured.Unstructured{}
	for _, file := range files {
		if file.Name() != "kustomization.yaml" {
			all[file.Name()] = kubetest.Manifests(t, samplesDir+"/"+file.Name())
		}
	}
	return all
}

// TestSamples applies every sample, unknown fields forbidden, and checks that kustomize would find it.
func TestSamples(t *testing.T) {
	project := env.Project(t)
	strict := client.WithFieldValidation(env.Client, "Strict")
	listed, _, err := unstructured.NestedStringSlice(kubetest.Manifests(t, samplesDir+"/kustomization.yaml")[0].Object, "resources")
	if err != nil {
		t.Fatal(err)
	}
	all := samples(t)
	for _, name := range listed {
		if all[name] == nil {
			t.Errorf("kustomization.yaml lists %s, which is not there", name)
		}
	}
	for name, objects := range all {
		t.Run(name, func(t *testing.T) {
			// The configuration of the gateway is there already where samples are applied.
			if is, want := slices.Contains(listed, name), name != "model-backends.yaml"; is != want {
				t.Errorf("kustomization.yaml lists %s: %t, want %t", name, is, want)
			}
			for _, o := range objects {
				if o.GetNamespace() == "" {
					o.SetNamespace(project)
				}
				if err := strict.Create(t.Context(), o); err != nil {
					t.Errorf("create %s %s: %v", o.GetKind(), o.GetName(), err)
				}
			}
		})
	}
}

// TestSamplesShowEveryField: what people may write, they can look up.
func TestSamplesShowEveryField(t *testing.T) {
	shown := map[string]bool{}
	for _, objects := range samples(t) {
		for _, o := range objects {
			eachField(o.Object, "", func(path string) { shown[o.GetKind()+" "+anyRules(path)] = true })
		}
	}
	eachSchema(t, func(kind, path string, schema map[string]any) {
		// Checkpoints are written by the manager; inside a JSON schema anything goes.
		if kind == "Checkpoint" || !strings.HasPrefix(path, "spec.") {
			return
		}
		if name := kind + " " + anyRules(path); !shown[name] {
			t.Errorf("no sample shows %s", name)
		}
	})
}

// anyRules makes one path of the two places where a policy has rules.
func anyRules(path string) string {
	return strings.NewReplacer("spec.defaults", "spec.rules", "spec.overrides", "spec.rules").Replace(path)
}

// eachField visits the path of every field of an object, as eachSchema names them.
func eachField(value any, path string, visit func(path string)) {
	visit(path)
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			eachField(inner, strings.TrimPrefix(path+"."+key, "."), visit)
			// A key of a map, where the schema has additionalProperties.
			eachField(inner, path+"[]", visit)
		}
	case []any:
		for _, inner := range value {
			eachField(inner, path+"[]", visit)
		}
	}
}
