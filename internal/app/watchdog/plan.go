// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/consult"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/faults"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// planWithin bounds both questions to a planner, with their tries: a provider may be away for longer than people wait for a task.
const planWithin = 15 * time.Minute

// plan asks a model to divide the work, for a request of a user or of the assessor if there is a plan already. Without an answer that can be used, the tasks stay as
// they are.
func (x *acts) plan(ctx context.Context, o protocol.Orders, r protocol.Request) (supervise.Event, error) {
	within, cancel := context.WithTimeout(ctx, planWithin)
	defer cancel()
	event := supervise.Planned{Request: r.ID}
	planned, err := x.proposed(within, o, r)
	switch {
	case err == nil:
	case steps.Fatal(err):
		return nil, err
	case ctx.Err() != nil:
		return supervise.CalledOff{}, nil
	default:
		event.Missing = plain.CutBytes(err.Error(), faults.MaxMessage)
		planned = journal.Planned{Message: event.Missing, Request: r.ID}
		x.log().WarnContext(ctx, "No plan: the tasks stay as they are", "request", r.ID, "error", err.Error())
	}
	if have := x.attempt.journal.State().Planned; planned.Plan == nil && have != nil && have.Plan != nil {
		return event, x.note(journal.Record{PlanMissing: &journal.PlanMissing{Request: r.ID, Message: planned.Message}}, "plan missing") // the plan before it counts
	}
	if err := x.attempt.reports.Planned(planned); err != nil {
		return nil, err
	}
	return event, x.attempt.options.Probe.After("planned")
}

// approvePlan notes that a user has approved the plan, and answers the request.
func (x *acts) approvePlan(ctx context.Context, a supervise.Action) (supervise.Event, error) {
	x.log().InfoContext(ctx, "Plan approved", "hash", a.Request.Hash, "request", a.Request.ID)
	if err := x.attempt.reports.PlanApproved(a.Request.Hash); err != nil {
		return nil, err
	}
	if err := x.attempt.options.Probe.After("plan approved"); err != nil {
		return nil, err
	}
	return supervise.PlanApproved{Answer: a.Answer}, x.attempt.reports.Answer(a.Answer)
}

// proposed is the plan that a model proposes for the base.
func (x *acts) proposed(ctx context.Context, o protocol.Orders, r protocol.Request) (journal.Planned, error) {
	outline, err := x.outline(ctx)
	if err != nil {
		return journal.Planned{}, err
	}
	j := x.attempt.journal.State()
	earlier := plans.Earlier{
		Directive: r.Directive,
		Worked:    j.Base != nil && j.Promoted.Tree != j.Base.Tree,
		Done:      func(task string) bool { return j.Tasks[task].Over() },
	}
	if strings.HasPrefix(r.ID, protocol.AssessorRequests) {
		earlier.Directive, earlier.Diverged = "", r.Directive
	}
	if have := j.Planned; have != nil && have.Plan != nil {
		o = plans.Without(o, *have.Plan)
		earlier.Plan = *have.Plan
	}
	var p protocol.Proposal
	reasons := ""
	_, err = x.services.consult.Ask(ctx, plans.Question(o, earlier, outline), consult.Long, func(arguments json.RawMessage) (objection string) {
		p, objection = plans.Read(o, earlier, arguments)
		reasons = plans.Reasons(arguments)
		return objection
	})
	if err != nil {
		return journal.Planned{}, err
	}
	x.log().InfoContext(ctx, "Planned", "hash", plans.Hash(p), "milestones", len(p.Milestones), "tasks", plans.Tasks(p), "request", r.ID)
	return journal.Planned{Plan: &p, Reasons: reasons, Request: r.ID}, nil
}

// maxReadme bounds a README that is read, in bytes. An outline quotes only its head.
const maxReadme = 256 << 10

// outline describes the base.
func (x *acts) outline(ctx context.Context) (string, error) {
	base, _, err := x.services.workspace.Engine().Trees()
	if err != nil {
		return "", err
	}
	var files []plans.File
	var readme *objects.Entry
	base.Walk(func(path string, e *objects.Entry) bool {
		files = append(files, plans.File{Path: path, Size: e.Size})
		if readme == nil && !strings.Contains(path, "/") && strings.HasPrefix(strings.ToLower(path), "readme") && e.Mode == objects.ModeFile && e.Size <= maxReadme {
			readme = e
		}
		return true
	})
	head := ""
	if readme != nil {
		_, text, err := x.services.repository.Objects().Read(ctx, readme.ID, maxReadme)
		if err != nil {
			return "", fmt.Errorf("read the README of the base: %w", err)
		}
		head = string(text)
	}
	return plans.Outline(files, head), nil
}
