// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
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
		if !review.Is(d.Source) && d.Source != protocol.SourcePerson && d.Source != protocol.SourceFeature {
			return fmt.Errorf("%s.source %q is not %s, %s or a reviewer", field, Clean(d.Source, maxName), protocol.SourcePerson, protocol.SourceFeature)
		}
		if err := errors.Join(
			oneOf(field+".type", cmp.Or(d.Type, protocol.DirectiveFunctional), protocol.DirectiveFunctional, protocol.DirectiveCleanup),
			oneOf(field+".priority", cmp.Or(d.Priority, protocol.PriorityNormal), protocol.PriorityCritical, protocol.PriorityNormal, protocol.PriorityLow),
			oneOf(field+".state", d.State, protocol.DirectivePending, protocol.DirectiveActive, protocol.DirectiveAddressed, protocol.DirectiveEscalated, protocol.DirectiveDropped),
		); err != nil {
			return err
		}
	}
	return nil
}

// applyDirectives says how far directives are. A watchdog that has only begun to prepare does not know, and what was said before stays. A watchdog
// reports the texts of a reviewer's directive until it is over: users can still read them then.
func applyDirectives(run *v1alpha1.RunStatus, list []protocol.DirectiveStatus) {
	if len(list) == 0 {
		return
	}
	before := run.Directives
	run.Directives = nil
	for _, d := range list {
		next := v1alpha1.DirectiveStatus{
			ID: d.ID, Source: d.Source, State: d.State, Unread: d.Unread, Age: int32(min(d.Age, maxTasks)), Message: Clean(d.Message, maxEvidence), //nolint:gosec // bounded
		}
		if review.Is(d.Source) {
			next = withTexts(next, d, before)
		}
		run.Directives = append(run.Directives, next)
	}
}

// withTexts is a directive of a reviewer with the texts that are reported or, without any, with those that were.
func withTexts(next v1alpha1.DirectiveStatus, d protocol.DirectiveStatus, before []v1alpha1.DirectiveStatus) v1alpha1.DirectiveStatus {
	if d.Description == "" {
		i := slices.IndexFunc(before, func(b v1alpha1.DirectiveStatus) bool { return b.ID == d.ID && b.Source == d.Source })
		if i >= 0 {
			b := before[i]
			next.Type, next.Priority, next.Description, next.Rationale, next.Files = b.Type, b.Priority, b.Description, b.Rationale, b.Files
		}
		return next
	}
	next.Type, next.Priority = d.Type, d.Priority
	next.Description, next.Rationale = Clean(d.Description, protocol.MaxDirectiveText), Clean(d.Rationale, protocol.MaxDirectiveRationale)
	for _, f := range plain.CutList(d.Files, protocol.MaxDirectiveFiles) {
		next.Files = append(next.Files, Clean(f, protocol.MaxDirectiveFile))
	}
	return next
}

// boundDirectives cuts what applyDirectives sets to what the API takes.
func boundDirectives(run *v1alpha1.RunStatus) {
	run.Directives = plain.CutList(run.Directives, protocol.MaxDirectives)
	for i := range run.Directives {
		d := &run.Directives[i]
		d.ID, d.Message = plain.CutRunes(d.ID, maxName), plain.CutRunes(d.Message, maxEvidence)
		d.Description, d.Rationale = plain.CutRunes(d.Description, protocol.MaxDirectiveText), plain.CutRunes(d.Rationale, protocol.MaxDirectiveRationale)
		d.Files = plain.CutList(d.Files, protocol.MaxDirectiveFiles)
		for n := range d.Files {
			d.Files[n] = plain.CutRunes(d.Files[n], protocol.MaxDirectiveFile)
		}
	}
}

// withoutTexts takes the texts from the directives of reviewers that are over, or from all.
func withoutTexts(run *v1alpha1.RunStatus, all bool) {
	for i := range run.Directives {
		if d := &run.Directives[i]; all || !openState(d.State) {
			d.Type, d.Priority, d.Description, d.Rationale, d.Files = "", "", "", "", nil
		}
	}
}

func openState(state string) bool {
	return state == protocol.DirectivePending || state == protocol.DirectiveActive
}
