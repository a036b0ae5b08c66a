// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// Root is the checkout's directory: the one that holds the module's go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the checkout: no go.mod above the working directory")
		}
		dir = parent
	}
}

// Manifests reads every object of a YAML file of the checkout, strictly: a key that is there twice is an error.
func Manifests(t testing.TB, path string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := readManifests(path)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func readManifests(path string) ([]*unstructured.Unstructured, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		object := &unstructured.Unstructured{}
		if err := sigsyaml.UnmarshalStrict(document, &object.Object); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
