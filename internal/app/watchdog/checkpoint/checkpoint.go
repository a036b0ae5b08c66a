// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkpoint takes checkpoints: it captures the workspace, has the capture checked, journals what is about to happen, and does it.
// Rollbacks and patches are checkpoints on request. Only one goroutine at a time may use it.
package checkpoint

import (
	"log/slog"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/judging"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/notice"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// Reports takes the results of checkpoints and requests.
type Reports interface {
	Checkpoint(protocol.CheckpointReport) error
	Answer(protocol.RequestReport) error
}

// Freezer holds the agent still, and says how that went.
type Freezer interface {
	workspace.Freezer
	// Last is the result of the last freeze.
	Last() Freeze
}

// Freeze is the result of a freeze.
type Freeze struct {
	// Held: the watchdog has requested a freeze, and no thaw since.
	Held bool
	// Still: it stopped every process.
	Still bool
	// Flaw is why the freeze failed: a process ran meanwhile, or it ended by its limit.
	Flaw error
	// Pause is the agent's answer to the request for a pause before the freeze; nil without a request.
	Pause *protocol.Pause
}

// Options of a Service.
type Options struct {
	// Feature is the name of the Feature, after which checkpoints are named.
	Feature string
	// Dir is the trusted volume, Journal its journal, and Guard fails when another attempt owns it.
	Dir        trusted.Dir
	Journal    *trusted.Journal
	Guard      func() error
	Repository *git.Repository
	Workspace  *Workspace
	Judge      *judging.Judge
	Reports    Reports
	// Taken is called after each checkpoint, when the service has acted on its verdict. It must not block; nil for nobody.
	Taken func(journal.Intent)
	// Sealed: the pod of this service has no agent.
	Sealed bool
	// Waiting counts reports that intake has not had yet.
	Waiting func() int
	// Refused counts reports that intake has refused for good since the last call.
	Refused func() int
	Health  *health.Health
	Now     func() time.Time
	Log     *slog.Logger
	Probe   steps.Probe
}

// Service takes checkpoints.
type Service struct {
	Options
	recorder *recorder
}

// New service. Whatever a crash has interrupted is completed with Recover before anything else.
func New(o Options) *Service {
	return &Service{Options: o, recorder: &recorder{Options: o, events: fileEvents{path: o.Dir.FileChanges()}}}
}

// Close closes the log of file events.
func (s *Service) Close() error { return s.recorder.events.close() }

// Occasion is the reason for a checkpoint.
type Occasion struct {
	Trigger string
	// Task that was worked on, and how its process ended when the checkpoint closes it.
	Task   string
	Closes bool
	// Aborts: the task is aborted. A rollback restores the tree from its beginning, and a checkpoint proves that its changes have left.
	Aborts   bool
	Ending   supervise.Ending
	Requests []string
	// Reason of a rollback that supervision wants, in words.
	Reason string
	// Terms of its check.
	Terms  judging.Terms
	Orders protocol.Orders
	// Freezer of the agent; nil when nothing of it runs.
	Freezer Freezer
	// AtOnce: freeze before anything is read. Hold: so, and stay frozen.
	AtOnce, Hold bool
	// Doubt is why the workspace is not to be trusted although it is quiet; it makes the checkpoint unsettled.
	Doubt string
}

// TermsOf orders.
func TermsOf(o protocol.Orders) judging.Terms {
	return judging.Terms{Policy: o.Policy, Plan: o.Plan, Role: o.Agent.Role, Locks: o.Locks}
}

// Pin makes a checkpoint use the policy and plan from the beginning of its task.
func (o *Occasion) Pin(t journal.Task) {
	if t.Begun {
		o.Terms.Policy, o.Terms.Plan = t.Policy, t.Plan
	}
}

// freeze is the result of the last freeze; zero without an agent.
func (o Occasion) freeze() Freeze {
	if o.Freezer == nil {
		return Freeze{}
	}
	return o.Freezer.Last()
}

// Frozen: the agent was frozen for this and has not been thawed.
func (o Occasion) Frozen() bool { return o.freeze().Held }

// Taken is what came of a checkpoint.
type Taken struct {
	Snapshot  workspace.Snapshot
	Judgement judge.Judgement
	// Intent that was acted on; nil when there was nothing new to record.
	Intent *journal.Intent
	// Back is what went back because of the verdict; nil for nothing.
	Back *notice.Back
}

// Objection names what a check objects to; empty for nothing.
func Objection(j judge.Judgement) string {
	if len(j.Violations) == 0 {
		return ""
	}
	return judge.Summary(j)
}
