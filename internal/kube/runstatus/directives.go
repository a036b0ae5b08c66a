// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"errors"
	"fmt"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// validateDirectives names the first field that no watchdog of ours would send.
func validateDirectives(list []protocol.DirectiveStatus) error {
	if len(list) > protocol.MaxDirectives {
		return fmt.Errorf("status.directives has %d entries, more than %d", len(list), protocol.MaxDirectives)
	}
	seen := map[string]bool{}
	for i, d := range list {
		field := fmt.Sprintf("status.directives[%d]", i)
		switch {
		case d.ID == "" || len(d.ID) > protocol.MaxDirectiveID || Clean(d.ID, maxName) != d.ID:
			return errors.New(field + ".id is not an id")
		case seen[d.ID]:
			return fmt.Errorf("%s.id %q is there twice", field, d.ID)
		case d.Age < 0:
			return errors.New(field + ".age is negative")
		}
		seen[d.ID] = true
		if err := errors.Join(
			oneOf(field+".source", d.Source, protocol.SourcePerson, protocol.SourceFeature),
			oneOf(field+".state", d.State, protocol.DirectivePending, protocol.DirectiveActive, protocol.DirectiveAddressed, protocol.DirectiveEscalated, protocol.DirectiveDropped),
		); err != nil {
			return err
		}
	}
	return nil
}

// applyDirectives says how far directives are. A watchdog that has only begun to prepare does not know, and what was said before stays.
func applyDirectives(run *v1alpha1.RunStatus, list []protocol.DirectiveStatus) {
	if len(list) == 0 {
		return
	}
	run.Directives = nil
	for _, d := range list {
		run.Directives = append(run.Directives, v1alpha1.DirectiveStatus{
			ID: d.ID, Source: d.Source, State: d.State, Age: int32(min(d.Age, maxTasks)), Message: Clean(d.Message, maxEvidence), //nolint:gosec // bounded
		})
	}
}

// boundDirectives cuts what applyDirectives sets to what the API takes.
func boundDirectives(run *v1alpha1.RunStatus) {
	run.Directives = plain.CutList(run.Directives, protocol.MaxDirectives)
	for i := range run.Directives {
		d := &run.Directives[i]
		d.ID, d.Message = plain.CutRunes(d.ID, maxName), plain.CutRunes(d.Message, maxEvidence)
	}
}
