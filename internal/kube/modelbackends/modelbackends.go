// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelbackends reads which backends the gateways are configured with, and what they say on their Lease of those in force.
package modelbackends

import (
	"encoding/json"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Read the backends of the gateway, as their configuration has them. It need not have the windows of well-known models. The error names every field that cannot be used.
func Read(text string) (models.Config, error) {
	var config models.Config
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		return models.Config{}, fmt.Errorf("read backends: %w", err)
	}
	return config.WithWindows(), config.Validate()
}

// InForce returns the gateways' statements on their Lease. It omits a statement that it cannot read, as if the gateway had made none.
func InForce(lease *coordinationv1.Lease) models.Fleet {
	fleet := models.Fleet{}
	for name, text := range lease.Annotations {
		gateway, is := strings.CutPrefix(name, protocol.InForcePrefix)
		var in models.InForce
		if is && json.Unmarshal([]byte(text), &in) == nil {
			fleet[gateway] = in
		}
	}
	return fleet
}
