// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// Backends are the gateway's, as their configuration has them. The error names every field that cannot be used.
func Backends(text string) (models.Config, error) {
	var config models.Config
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		return models.Config{}, fmt.Errorf("read backends: %w", err)
	}
	return config, config.Validate()
}
