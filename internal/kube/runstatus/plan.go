// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// nameFormat of milestones and tasks, as the API has it.
var nameFormat = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Bounds of a plan without its secrets: what stands for a secret can be longer. The run has room for both.
const (
	maxPlanBytes    = 2 * plans.MaxBytes
	maxInstructions = 4 * plans.MaxInstructions
	maxArea         = 4 * plans.MaxArea
)

// validatePlanned names the first field that no watchdog of ours would send.
func validatePlanned(r protocol.PlanReport) error {
	if (r.Plan == nil) == (r.Message == "") {
		return errors.New("planned needs either a plan or a message")
	}
	if r.Plan == nil && (r.Hash != "" || r.Approved) {
		return errors.New("planned has a hash or an approval, and no plan")
	}
	if r.Plan == nil {
		return nil
	}
	if r.Hash == "" || len(r.Plan.Milestones) == 0 {
		return errors.New("planned has no hash or no milestone")
	}
	if err := digest("planned.hash", r.Hash); err != nil {
		return err
	}
	if len(r.Plan.Milestones) > plans.MaxMilestones || plans.Tasks(*r.Plan) > plans.MaxTasks || max(len(r.Plan.Allowed), len(r.Plan.Forbidden)) > plans.MaxAreas {
		return errors.New("planned.plan has more milestones, tasks or areas than a plan can have")
	}
	if plans.Size(*r.Plan) > maxPlanBytes {
		return fmt.Errorf("planned.plan has more than %d bytes", maxPlanBytes)
	}
	for _, area := range slices.Concat(r.Plan.Allowed, r.Plan.Forbidden) {
		if len(area) > maxArea {
			return fmt.Errorf("planned.plan has an area of more than %d bytes", maxArea)
		}
	}
	milestones := map[string]bool{}
	for i, m := range r.Plan.Milestones {
		at := fmt.Sprintf("planned.plan.milestones[%d]", i)
		if milestones[m.Name] || !nameFormat.MatchString(m.Name) || len(m.Tasks) == 0 {
			return errors.New(at + " has no tasks, or no name of its own")
		}
		milestones[m.Name] = true
		tasks := map[string]bool{}
		for _, t := range m.Tasks {
			gates := slices.Compact(slices.Sorted(slices.Values(t.Gates)))
			named := !tasks[t.Name] && nameFormat.MatchString(t.Name) && len(gates) == len(t.Gates) && !slices.ContainsFunc(gates, func(g string) bool { return !nameFormat.MatchString(g) })
			if !named || len(t.Gates) > plans.MaxGates || utf8.RuneCountInString(t.Instructions) > maxInstructions {
				return errors.New(at + ".tasks has one that is too large, or has no name of its own")
			}
			tasks[t.Name] = true
		}
	}
	return nil
}

// proposed is a plan as the status has it.
func proposed(r protocol.PlanReport) *v1alpha1.ProposedPlan {
	p := &v1alpha1.ProposedPlan{Hash: r.Hash, Approved: r.Approved, Message: Clean(r.Message, maxMessage)}
	if r.Plan == nil {
		return p
	}
	for _, area := range r.Plan.Allowed {
		p.AllowedAreas = append(p.AllowedAreas, plain.CutRunes(area, plans.MaxArea))
	}
	for _, area := range r.Plan.Forbidden {
		p.ForbiddenAreas = append(p.ForbiddenAreas, plain.CutRunes(area, plans.MaxArea))
	}
	for _, m := range r.Plan.Milestones {
		milestone := v1alpha1.Milestone{Name: m.Name}
		for _, t := range m.Tasks {
			milestone.Tasks = append(milestone.Tasks, v1alpha1.Task{Name: t.Name, Instructions: t.Instructions, Gates: t.Gates})
		}
		p.Milestones = append(p.Milestones, milestone)
	}
	return p
}
