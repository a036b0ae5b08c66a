// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"os"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestSampleOfBackends: the sample is one that a gateway takes, says when its prices were read, and says all that budgets need of each model.
func TestSampleOfBackends(t *testing.T) {
	text, err := os.ReadFile("../../../config/samples/model-backends.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`read on \d{4}-\d{2}-\d{2} from`).Match(text) {
		t.Error("the sample does not say when its prices were read")
	}
	var object corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Fatal(err)
	}
	config, err := Backends(object.Data["backends.yaml"])
	if err != nil || len(config.Unpriced()) > 0 || len(config.Windowless()) > 0 {
		t.Fatalf("%v; without prices %v, without a window %v", err, config.Unpriced(), config.Windowless())
	}
	dialects := map[string]bool{}
	for _, b := range config.Backends {
		for _, d := range b.Dialects {
			dialects[d] = true
		}
		for _, m := range b.Models {
			if p := m.Prices.Price(); m.MaxOutput == 0 || p.Output <= p.Input || p.Cached >= p.Input || p.Uses.Searches == 0 {
				t.Errorf("%s/%s: most output %d, %+v", b.Name, m.Name, m.MaxOutput, p)
			}
		}
	}
	if len(dialects) != 4 {
		t.Errorf("the sample has models for %v", dialects)
	}
}
