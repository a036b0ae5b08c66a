// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// separate are the samples that do not go together with the others, or that would replace what an installation has: kustomization.yaml says why.
var separate = []string{"model-backends.yaml", "template-output-json.yaml", "templates-minimal.yaml", "templates-strict.yaml"}

// TestSamples applies the samples together as their kustomization lists them, into a new namespace of a cluster with Tidewaiter: unknown fields
// are forbidden, and a second time changes nothing. The other samples are valid by themselves.
func TestSamples(t *testing.T) {
	project := env.Project(t)
	strict := client.WithFieldValidation(env.Client, "Strict")
	listed, _, err := unstructured.NestedStringSlice(kubetest.Manifests(t, samplesDir+"/kustomization.yaml")[0].Object, "resources")
	if err != nil {
		t.Fatal(err)
	}
	all := samples(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(all)), slices.Sorted(slices.Values(slices.Concat(listed, separate)))); diff != "" {
		t.Fatalf("files, and what kustomization.yaml lists or leaves out (-files +list):\n%s", diff)
	}
	var together []*unstructured.Unstructured
	named := map[string]bool{}
	for _, file := range listed {
		for _, o := range all[file] {
			if o.GetNamespace() == "" {
				o.SetNamespace(project)
			}
			name := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
			if named[name] {
				t.Errorf("%s: %s is there twice", file, name)
			}
			named[name] = true
			together = append(together, o)
		}
	}
	apply := func() map[string]string {
		versions := map[string]string{}
		for _, o := range together {
			applied := o.DeepCopy()
			if err := strict.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("kubectl")); err != nil {
				t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
			}
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(o), applied); err != nil {
				t.Fatal(err)
			}
			versions[o.GetKind()+" "+o.GetName()] = applied.GetResourceVersion()
		}
		return versions
	}
	if diff := cmp.Diff(apply(), apply()); diff != "" {
		t.Errorf("applied again, these changed (-first +second):\n%s", diff)
	}
	for _, o := range together {
		if o.GetKind() != "Feature" {
			continue
		}
		for _, reference := range []struct{ kind, name string }{
			{"Secret", at(o, "spec", "repository", "credentialsSecretRef", "name")},
			{"ConfigMap", at(o, "spec", "promptFrom", "configMapKeyRef", "name")},
		} {
			if reference.name != "" && !named[reference.kind+" "+project+"/"+reference.name] {
				t.Errorf("Feature %s needs the %s %s, which no sample has", o.GetName(), reference.kind, reference.name)
			}
		}
	}
	for _, file := range separate {
		for _, o := range all[file] {
			if o.GetNamespace() == "" {
				o.SetNamespace(project)
			}
			if err := strict.Create(t.Context(), o, client.DryRunAll); err != nil {
				t.Errorf("%s: create %s %s: %v", file, o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// at is a text of an object; empty where it has none.
func at(o *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}

// TestSamplesShowEveryField: what users can write, they can look up. They cannot write what this version does not act on.
func TestSamplesShowEveryField(t *testing.T) {
	shown := map[string]bool{}
	for _, objects := range samples(t) {
		for _, o := range objects {
			eachField(o.Object, "", func(path string) { shown[o.GetKind()+" "+anyRules(path)] = true })
		}
	}
	var refused []string
	for _, rule := range rulesOfCRDs(t) {
		if field, _, is := strings.Cut(rule, ": "+inert); is {
			refused = append(refused, field)
		}
	}
	eachSchema(t, func(kind, path string, schema map[string]any) {
		if slices.ContainsFunc(refused, func(field string) bool {
			return field == kind+" "+path || strings.HasPrefix(kind+" "+path, field+".") || strings.HasPrefix(kind+" "+path, field+"[")
		}) {
			return
		}
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
