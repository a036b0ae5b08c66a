// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// foreign are the kinds in config that the API server of this test does not have, with the reason. A file without a kind is listed by its path.
func foreign() map[string]string {
	return map[string]string{
		"Kustomization":                "kustomize reads it in make generate",
		"Component":                    "kustomize reads it in make generate",
		"PrometheusRule":               "of the Prometheus operator; internal/kube/metrics compares it with rules.yaml",
		"ServiceMonitor":               "of the Prometheus operator; hack/tools/helm compares it with the chart's",
		"config/prometheus/rules.yaml": "rules of Prometheus itself; hack/tools/prometheus reads them with its parser",
	}
}

// TestConfig: the API server takes each object of config, with no field that it does not know. A kind that it does not have is listed with a reason.
func TestConfig(t *testing.T) {
	project := env.Project(t)
	strict := client.WithFieldValidation(client.NewDryRunClient(env.Client), "Strict")
	taken, met := 0, map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "config"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, o := range kubetest.Manifests(t, name) {
			kind := o.GetKind()
			switch {
			case kind == "" && filepath.Base(name) == "kustomization.yaml":
				kind = "Kustomization" // kustomize's default
			case kind == "":
				kind = name
			}
			if foreign()[kind] != "" {
				met[kind] = true
				continue
			}
			mapping, err := env.Client.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
			if err != nil {
				t.Errorf("%s: the API server has no kind %s: list it in this test with the reason: %v", name, kind, err)
				continue
			}
			if mapping.Scope.Name() == "namespace" && o.GetNamespace() == "" {
				o.SetNamespace(project)
			}
			if err := strict.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership); err != nil {
				t.Errorf("%s: apply %s %s: %v", name, kind, o.GetName(), err)
			}
			taken++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if taken < 50 {
		t.Errorf("only %d objects were found", taken)
	}
	for kind := range foreign() {
		if !met[kind] {
			t.Errorf("config has no %s any more: remove it from this test", kind)
		}
	}
}
