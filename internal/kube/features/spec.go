// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	coregates "github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/kube/inert"
)

// defaultRetries is the CRD's default of spec.maxRetries, for objects that were made without it.
const defaultRetries = 3

// Spec is the part of a Feature that decides about its life.
func Spec(f *v1alpha1.Feature, effective policy.Effective) lifecycle.Spec {
	s := lifecycle.Spec{
		Name:        f.Name,
		Generation:  f.Generation,
		Suspend:     f.Spec.Suspend,
		SuspendedBy: strings.Join(plain.CutList(effective.SuspendedBy, 8), ", "),
		Retries:     int(ptr.Deref(f.Spec.MaxRetries, defaultRetries)),
		Branch:      branch(f),
		Ephemeral:   Ephemeral(f),
		NotActedOn:  inert.Feature(f),
		Budget:      effective.Budgets.Any(),
		Planning:    planning(f),
		Questions:   effective.Questions,
		AskRestart:  effective.Supervision.RestartMode == policy.RestartAsk,
	}
	s.Strategy, s.StrategyReason = strategy(f, effective)
	choice := Mode(f, effective)
	s.Mode, s.ModeNotice = choice.Mode, choice.Notice
	if f.DeletionTimestamp != nil {
		s.DeletedAt = f.DeletionTimestamp.Time
	}
	if f.Spec.ActiveDeadline != nil {
		s.Deadline = f.Spec.ActiveDeadline.Duration
	}
	if f.Spec.TTLAfterFinished != nil {
		s.TTLAfterFinished = &f.Spec.TTLAfterFinished.Duration
	}
	s.RequireApproval = requiresApproval(f, effective)
	if effective.Approval == policy.ApprovalRequired {
		s.ApprovalBy = effective.Origins["delivery.approval"]
	}
	required := DeliveryGates(f, effective)
	for _, g := range required {
		s.Gates = append(s.Gates, lifecycle.Gate{Sum: coregates.Sum(g), Image: g.Image})
	}
	for _, g := range gates(f) {
		s.TaskGates = append(s.TaskGates, lifecycle.Gate{Sum: coregates.Sum(g), Image: g.Image})
	}
	s.ProvedBy, s.GateNotice = coregates.SumAll(required), strings.TrimSpace(ReplacedGates(f, effective)+" "+reportless(f, s.Mode))
	s.Gated = len(f.Spec.Gates) > 0 || len(required) > 0
	if d := f.Spec.Delivery; d != nil {
		s.ApprovedCommit = d.ApprovedCommit
	}
	for _, t := range listedTasks(f) {
		if t.Continue {
			s.Continuing++
		}
	}
	s.Continuing += extra(f)
	for _, a := range f.Spec.Answers {
		s.Answered = append(s.Answered, a.Question)
	}
	for _, r := range f.Spec.Requests {
		q := lifecycle.Request{ID: r.ID, Kind: requestKind(r)}
		switch {
		case r.Rollback != nil:
			_, q.Refusal = rollback(f.Name, *r.Rollback)
		case r.ApprovePlan != nil:
			q.Hash = r.ApprovePlan.Hash
			if s.Planning != protocol.PlanningApprove {
				q.Refusal = "spec.planning is not Approve: no plan needs an approval."
			}
		case r.Replan != nil && s.Planning == "":
			q.Refusal = "spec.planning is None: list the milestones in spec.plan, or set spec.planning to Auto or Approve."
		}
		s.Requests = append(s.Requests, q)
	}
	return s
}

// requiresApproval reports whether a person must approve the delivery: because the Feature says so, or a policy.
func requiresApproval(f *v1alpha1.Feature, effective policy.Effective) bool {
	d := f.Spec.Delivery
	return effective.Approval == policy.ApprovalRequired || d != nil && d.Approval == v1alpha1.ApprovalRequired
}

// Mode that a Feature's agent runs in under a policy; without one where nothing can run it.
func Mode(f *v1alpha1.Feature, effective policy.Effective) runtimes.Choice {
	runtime, known := runtimes.Find(f.Spec.Agent.Runtime)
	if !known || effective.Execution.Mode == "" {
		return runtimes.Choice{}
	}
	return runtimes.Choose(effective.Execution.Mode, runtime)
}

// strategy that a new attempt of a Feature runs by under a policy.
func strategy(f *v1alpha1.Feature, effective policy.Effective) (name, reason string) {
	var contracts []string
	if f.Spec.Plan != nil {
		contracts = f.Spec.Plan.Contracts
	}
	return judge.Strategy(Plan(f), contracts, effective)
}

// Ephemeral reports whether a Feature's volumes last as long as its pod.
func Ephemeral(f *v1alpha1.Feature) bool {
	return f.Spec.Workspace != nil && f.Spec.Workspace.Ephemeral
}

func requestKind(r v1alpha1.Request) lifecycle.RequestKind {
	switch {
	case r.Rollback != nil:
		return lifecycle.RequestRollback
	case r.Checkpoint != nil:
		return lifecycle.RequestCheckpoint
	case r.Retry != nil:
		return lifecycle.RequestRetry
	case r.ResetBreaker != nil:
		return lifecycle.RequestResetBreaker
	case r.Release != nil:
		return lifecycle.RequestRelease
	case r.ApprovePlan != nil:
		return lifecycle.RequestApprovePlan
	case r.Replan != nil:
		return lifecycle.RequestReplan
	default: // the CRD lets exactly one be set
		return ""
	}
}

// plan is what conditions need of the plan of a model; nil before there is one.
func plan(p *v1alpha1.ProposedPlan) *lifecycle.ModelPlan {
	if p == nil {
		return nil
	}
	facts := &lifecycle.ModelPlan{Milestones: len(p.Milestones), Missing: p.Message, Hash: p.Hash, Approved: p.Approved}
	for _, m := range p.Milestones {
		facts.Tasks += len(m.Tasks)
	}
	return facts
}

// gateFailures are the newest results of gates that have not passed, in words, and whether one of them could not be started.
func gateFailures(r *v1alpha1.RunStatus) (list []string, unstarted bool) {
	add := func(where string, all []v1alpha1.GateStatus) {
		for _, g := range all {
			state := coregates.State(g.State)
			if state == coregates.Passed {
				continue
			}
			list = append(list, fmt.Sprintf("gate %q %s: %s (exit code %d)", g.Name, where, g.State, g.ExitCode))
			unstarted = unstarted || state == coregates.NotStarted
		}
	}
	for _, t := range r.Tasks {
		if t.State != protocol.TaskDone && t.State != protocol.TaskAborted { // what has failed on an aborted task is gone
			add(fmt.Sprintf("of task %q", t.Name), t.Gates)
		}
	}
	add("before the delivery", r.DeliveryGates)
	return list, unstarted
}

// Run is what the watchdog reported, or nil.
func Run(f *v1alpha1.Feature) *lifecycle.Run {
	r := f.Status.Run
	if r == nil {
		return nil
	}
	run := &lifecycle.Run{
		Epoch:                 r.Epoch,
		Connected:             ptr.Deref(r.Connected, false),
		ConnectionChangedAt:   timeOf(r.ConnectionTransitionTime),
		LastValidCheckpoint:   r.LastValidCheckpoint,
		Counts:                lifecycle.Counts(r.Checkpoints),
		Rollbacks:             rollbacks(r.Rollbacks),
		Requests:              requestResults(r.Requests),
		BudgetWarning:         r.BudgetWarning,
		SupervisorCostWarning: r.SupervisorCostWarning,
		Used:                  r.Usage != nil,
		KnowledgeToReview:     r.KnowledgeToReview,
		Plan:                  plan(r.Plan),
	}
	run.GateFailures, run.GatesUnstarted = gateFailures(r)
	if i := slices.IndexFunc(r.Tasks, func(t v1alpha1.TaskStatus) bool { return t.State == protocol.TaskGating }); i >= 0 {
		run.Gating = r.Tasks[i].Name
	}
	if len(r.Anomalies) > 0 {
		run.Anomalies = map[string]string{}
	}
	for _, a := range r.Anomalies {
		run.Anomalies[a.Type] = a.Message
		run.Unserved = run.Unserved || a.Type == v1alpha1.ConditionAgentStalled && a.Cause == protocol.CauseProvider
	}
	if p := r.Report; p != nil {
		run.WorkspaceReady, run.AgentRunning, run.Task, run.Head = p.WorkspaceReady, p.AgentRunning, p.Task, p.Head
		run.Problems, run.Unacknowledged = p.Problems, p.Unacknowledged
		run.Unlisted = unlisted(f, p.Task)
		run.AgentRan = slices.ContainsFunc(r.Tasks, func(t v1alpha1.TaskStatus) bool { return t.State != protocol.TaskPending })
	}
	if r.Fault != nil {
		run.Fault = &lifecycle.Problem{Reason: r.Fault.Reason, Message: r.Fault.Message}
	}
	if r.Question != nil {
		run.Question, run.QuestionID, run.Guess = r.Question.Text, r.Question.ID, r.Question.Guess
		run.AskedAt = timeOf(r.Question.AskedTime)
	}
	if k := r.LastCheckpoint; k != nil {
		run.Checkpoint = &lifecycle.Checkpoint{Name: k.Name, Verdict: string(k.Verdict), Reason: k.Reason, Message: k.Message}
	}
	if n := r.Final; n != nil {
		run.Final = &lifecycle.Final{Epoch: n.Epoch, Outcome: n.Outcome, Reason: n.Reason, Message: n.Message, Head: n.Head, Gate: n.Gate, Task: n.Task, ProvedBy: n.ProvedBy, TaskFailures: int(n.TaskFailures)}
		if n.Failure != nil {
			run.Final.Failure = &protocol.Failure{Class: n.Failure.Class, Cause: n.Failure.Cause, Calls: int(n.Failure.Calls)}
		}
	}
	return run
}

// maxExtra is the most tasks that reviewers can add to a Feature: for Critical directives, and polish tasks.
const maxExtra = 32 + 100

// extra is how many tasks reviewers have added, as the watchdog reports them. Each has its retries, as one that continues.
func extra(f *v1alpha1.Feature) (n int) {
	if f.Status.Run == nil {
		return 0
	}
	for _, t := range f.Status.Run.Tasks {
		if protocol.Extra(t.Name) {
			n++
		}
	}
	return min(n, maxExtra)
}

// unlisted says that the user has removed a task that the watchdog has reported. If a model divides the work, the watchdog may know a newer plan than
// the status, so that only the watchdog knows the tasks.
func unlisted(f *v1alpha1.Feature, task string) bool {
	if task == "" || planning(f) != "" || protocol.Added(task) {
		return false
	}
	return !slices.ContainsFunc(listedTasks(f), func(t protocol.Task) bool { return t.Name == task })
}

func requestResults(list []v1alpha1.ObservedRequest) []lifecycle.RequestResult {
	var results []lifecycle.RequestResult
	for _, r := range list {
		results = append(results, lifecycle.RequestResult{
			ID: r.ID, State: lifecycle.RequestState(r.State), Message: r.Message, At: timeOf(r.ObservedTime),
		})
	}
	return results
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
