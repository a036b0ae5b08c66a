// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema checks objects against the shipped CRDs, as the API server does, but in process, so that a test can check thousands of
// statuses without a cluster.
package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
)

// MaxStatusBytes bounds the JSON of a Feature's status: the controller's 192 KiB and intake's 256 KiB.
const MaxStatusBytes = 448 << 10

// crd is the schema of one kind.
type crd struct {
	validator  validation.SchemaValidator
	structural *structuralschema.Structural
}

// features reads the CRD of Features once.
var features = sync.OnceValues(func() (crd, error) { return load("tidewaiter.dev_features.yaml") })

// load reads a CRD of the checkout.
func load(file string) (crd, error) {
	dir, err := moduleRoot()
	if err != nil {
		return crd{}, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "config/crd/bases", file))
	if err != nil {
		return crd{}, err
	}
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &v1); err != nil {
		return crd{}, fmt.Errorf("read %s: %w", file, err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		return crd{}, fmt.Errorf("convert %s: %w", file, err)
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return crd{}, fmt.Errorf("schema of %s: %w", file, err)
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return crd{}, fmt.Errorf("schema of %s: %w", file, err)
	}
	return crd{validator: validator, structural: structural}, nil
}

// moduleRoot is the nearest folder above that has a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// Refusal says why the API server would refuse a Feature with a status, or nil.
func Refusal(status v1alpha1.FeatureStatus) error {
	crd, err := features()
	if err != nil {
		return err
	}
	text, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	if len(text) > MaxStatusBytes {
		return fmt.Errorf("the status has %d bytes, more than %d", len(text), MaxStatusBytes)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("decode status: %w", err)
	}
	whole := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Feature", "metadata": map[string]any{"name": "login"},
		"spec": map[string]any{
			"prompt": "x", "repository": map[string]any{"url": "https://git.example.com/shop.git"}, "agent": map[string]any{"runtime": "worker"},
		},
		"status": object,
	}
	errs := validation.ValidateCustomResource(nil, whole, crd.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(field.NewPath(""), crd.structural, whole)...)
	return errs.ToAggregate()
}

// Check fails a test whose Feature has a status that the API server would refuse.
func Check(t testing.TB, f *v1alpha1.Feature) {
	t.Helper()
	if err := Refusal(f.Status); err != nil {
		t.Errorf("the status of Feature %s: %v", f.Name, err)
	}
}
