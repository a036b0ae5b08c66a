// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// directives that the agent of a Feature is given.
func directives(f *v1alpha1.Feature) (list []protocol.Directive) {
	for _, d := range f.Spec.Directives {
		list = append(list, protocol.Directive{
			ID: d.ID, Source: protocol.SourcePerson, Type: d.Type, Priority: d.Priority, Description: d.Description, Rationale: d.Rationale, Files: d.Files,
		})
	}
	return list
}
