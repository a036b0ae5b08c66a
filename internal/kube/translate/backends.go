// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"encoding/json"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Backends are the gateway's, as their configuration has them; it need not have the windows of well-known models. The error names every field that cannot be used.
func Backends(text string) (models.Config, error) {
	var config models.Config
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		return models.Config{}, fmt.Errorf("read backends: %w", err)
	}
	return config.WithWindows(), config.Validate()
}

// Fleet is what the gateways say on their Lease. What cannot be read is left out, as that of a gateway that says nothing.
func Fleet(lease *coordinationv1.Lease) models.Fleet {
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
