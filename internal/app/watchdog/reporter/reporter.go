// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reporter reports what happens: to the spool, from which intake gets it, and to the journal if a repetition must be recognised.
package reporter

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Spool keeps reports until intake has them.
type Spool interface {
	Append(protocol.Report) (protocol.Report, error)
}

// Journal stores answers and final reports.
type Journal interface {
	Note(journal.Record) error
	State() journal.State
}

// Options of a Reporter.
type Options struct {
	Spool Spool
	// Health has the problems that each status contains.
	Health *health.Health
	Now    func() time.Time
	Log    *slog.Logger
	Probe  steps.Probe
}

// Reporter reports for one attempt.
type Reporter struct {
	Options
	journal Journal
	said    []byte // status that was spooled last
}

// New reporter. Until it is Opened it has only statuses to report.
func New(o Options) *Reporter { return &Reporter{Options: o} }

// Opened gives the journal to the reporter.
func (r *Reporter) Opened(j Journal) { r.journal = j }

// Checkpoint reports a checkpoint.
func (r *Reporter) Checkpoint(c protocol.CheckpointReport) error {
	return r.report(protocol.Report{Checkpoint: &c})
}

// Acknowledged reports what the agent has acknowledged. It is safe for concurrent use.
func (r *Reporter) Acknowledged(a protocol.Acknowledgment) error {
	return r.report(protocol.Report{Acknowledged: &a})
}

// Answer reports and remembers the result of a request, once.
func (r *Reporter) Answer(a protocol.RequestReport) error {
	if _, known := r.journal.State().Requests[a.ID]; known {
		return nil
	}
	if !strings.HasPrefix(a.ID, protocol.SteeringRequests) { // nobody has asked
		if err := r.report(protocol.Report{Request: &a}); err != nil {
			return err
		}
	}
	return r.journal.Note(journal.Record{Request: &a})
}

// Planned reports and remembers a plan of a model, or why there is none.
func (r *Reporter) Planned(p journal.Planned) error {
	report := protocol.PlanReport{Plan: p.Plan, Message: p.Message}
	if p.Plan != nil {
		report.Hash = plans.Hash(*p.Plan)
	}
	if err := r.report(protocol.Report{Planned: &report}); err != nil {
		return err
	}
	if err := r.Probe.After("plan reported"); err != nil {
		return err
	}
	return r.journal.Note(journal.Record{Planned: &p})
}

// Plan reports the plan that the journal has, if there is one. A watchdog may have ended after it had reported another one.
func (r *Reporter) Plan() error {
	j := r.journal.State()
	if j.Planned == nil || j.Planned.Plan == nil {
		return nil
	}
	hash := plans.Hash(*j.Planned.Plan)
	return r.report(protocol.Report{Planned: &protocol.PlanReport{Plan: j.Planned.Plan, Hash: hash, Approved: hash == j.Approved}})
}

// PlanApproved reports and remembers that a user has approved the plan with a hash.
func (r *Reporter) PlanApproved(hash string) error {
	p := r.journal.State().Planned
	if p == nil || p.Plan == nil {
		return errors.New("there is no plan to approve")
	}
	if err := r.report(protocol.Report{Planned: &protocol.PlanReport{Plan: p.Plan, Hash: hash, Approved: true}}); err != nil {
		return err
	}
	if err := r.Probe.After("plan approval reported"); err != nil {
		return err
	}
	return r.journal.Note(journal.Record{PlanApproved: &journal.PlanApproved{Hash: hash}})
}

// Failed reports a checkpoint that the watchdog could not capture or check.
func (r *Reporter) Failed(f protocol.CheckpointFailure) error {
	return r.report(protocol.Report{Failed: &f})
}

// Knowledge reports which files of the project's knowledge agents do not get.
func (r *Reporter) Knowledge(k protocol.KnowledgeReport) error {
	return r.report(protocol.Report{Knowledge: &k})
}

// Status reports a status with the problems of now, unless it equals the last reported one. It is not safe for concurrent use.
func (r *Reporter) Status(ctx context.Context, s protocol.StatusReport) {
	s.Problems = r.Health.List()
	text, err := json.Marshal(s)
	if err == nil && string(text) == string(r.said) {
		return
	}
	if err := r.report(protocol.Report{Status: &s}); err != nil {
		r.Log.WarnContext(ctx, "Cannot report the status", "error", err.Error())
		return
	}
	r.said = text
	attributes := []any{"state", s.State, "task", s.Task, "agentRunning", s.AgentRunning}
	if len(s.Problems) > 0 {
		attributes = append(attributes, "problems", s.Problems)
	}
	if s.Fault != nil {
		attributes = append(attributes, slog.Group("fault", "reason", s.Fault.Reason, "message", s.Fault.Message))
	}
	r.Log.InfoContext(ctx, "Status", attributes...)
}

// Conclude journals and sends the final report of the attempt. A restarted watchdog may repeat it.
func (r *Reporter) Conclude(ctx context.Context, f protocol.FinalReport) error {
	if !r.journal.State().Finished {
		if err := r.journal.Note(journal.Record{Final: &f}); err != nil {
			return err
		}
	}
	if err := r.Probe.After("final journaled"); err != nil {
		return err
	}
	r.Log.InfoContext(ctx, "Attempt ends", "outcome", f.Outcome, "reason", f.Reason, "message", f.Message, "head", f.Head)
	if err := r.report(protocol.Report{Final: &f}); err != nil {
		return err
	}
	return r.Probe.After("final spooled")
}

func (r *Reporter) report(report protocol.Report) error {
	report.Time = r.Now().UTC()
	_, err := r.Spool.Append(report)
	return err
}
