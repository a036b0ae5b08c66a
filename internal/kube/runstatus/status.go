// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// This file is all that the manager does with the fields of a status report: what it refuses, what it makes of them, and
// how it bounds what is stored. A new field is read here.

const (
	// maxTasks bounds the tasks of a status report, as the API has it: 32 milestones of 64 tasks, and 256 more for tasks that a model has planned, that gates
	// before the delivery have added, or that are being dropped.
	maxTasks = 32*64 + 256
	// maxCost of a usage, in characters, as the API has it.
	maxCost = 32
	// maxNumber is the largest that every reader of JSON takes as it is (RFC 8259, section 6).
	maxNumber = 1<<53 - 1
	// maxPlace of a directory and of a file, maxUnit of a role, a runtime and a contract, in characters, and maxContracts, as the API has it.
	maxPlace, maxUnit, maxContracts = 256, 63, 32
	// maxTaskFailures of an agent in a task: the largest spec.maxRetries, and the first start.
	maxTaskFailures = 101
	// maxProblems is how many problems of a watchdog a run has room for.
	maxProblems = 8
)

// validateStatus names the first field that no watchdog of ours would send.
func validateStatus(s protocol.StatusReport) error {
	if len(s.Tasks) > maxTasks {
		return fmt.Errorf("status.tasks has %d entries, more than %d", len(s.Tasks), maxTasks)
	}
	for i, t := range s.Tasks {
		if err := validateTask(fmt.Sprintf("status.tasks[%d]", i), t); err != nil {
			return err
		}
	}
	if s.State == "" {
		return errors.New("status.state is missing")
	}
	if s.Fault != nil && s.Fault.Reason == "" {
		return errors.New("status.fault.reason is missing")
	}
	if u := s.Usage; u != nil {
		if u.InputTokens < 0 || u.CachedInputTokens < 0 || u.OutputTokens < 0 || u.Calls < 0 {
			return errors.New("status.usage has a negative number")
		}
	}
	return errors.Join(validateGates("status.deliveryGates", s.DeliveryGates), validateQuestion("status.question", s.Question), validatePlace(s), validateConversation(s.Conversation), validateDirectives(s.Directives), validateReviews(s.Reviews), validateToReview(s.KnowledgeToReview),
		hash("status.base", s.Base), hash("status.head", s.Head))
}

func validateTask(field string, t protocol.TaskStatus) error {
	if t.Name == "" {
		return errors.New(field + ".name is missing")
	}
	if t.ExitCode != nil && (*t.ExitCode < math.MinInt32 || *t.ExitCode > math.MaxInt32) {
		return errors.New(field + ".exitCode is not an exit code")
	}
	if t.Corrections < 0 || t.Corrections > math.MaxInt32 {
		return errors.New(field + ".corrections is not a number of corrections")
	}
	if w := t.Work; w != nil && (w.Checkpoint < 0 || w.Promoted < 0) {
		return errors.New(field + ".work has a negative number")
	}
	if err := validateGates(field+".gates", t.Gates); err != nil {
		return err
	}
	return oneOf(field+".state", t.State, protocol.TaskPending, protocol.TaskRunning, protocol.TaskGating, protocol.TaskDone, protocol.TaskFailed, protocol.TaskAborted)
}

// validateGates is about results of gates.
func validateGates(field string, list []protocol.GateStatus) error {
	for i, g := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		if g.Name == "" || g.ExitCode < math.MinInt32 || g.ExitCode > math.MaxInt32 {
			return errors.New(at + " has no name, or no exit code")
		}
		if err := oneOf(at+".state", g.State, protocol.GateStates()...); err != nil {
			return err
		}
	}
	return nil
}

// shownGates are results of gates as the status has them.
func shownGates(list []protocol.GateStatus) []v1alpha1.GateStatus {
	var shown []v1alpha1.GateStatus
	for _, g := range plain.CutList(list, protocol.MaxGates) {
		shown = append(shown, v1alpha1.GateStatus{Name: Clean(g.Name, maxName), State: g.State, ExitCode: int32(g.ExitCode)}) //nolint:gosec // validateGates has seen it
	}
	return shown
}

// validatePlace is about where the work is, and what it has claimed.
func validatePlace(s protocol.StatusReport) error {
	if s.FilesModified < 0 {
		return errors.New("status.filesModified is negative")
	}
	contracts := map[string]bool{}
	for _, c := range s.Contracts {
		if contracts[c] {
			return fmt.Errorf("status.contracts: %q is there twice", c)
		}
		contracts[c] = true
	}
	return nil
}

// applyStatus replaces what an earlier report said.
func applyStatus(run *v1alpha1.RunStatus, s protocol.StatusReport, at time.Time) {
	// A whole new report: what this version does not fill is not kept from an older one.
	run.Report = &v1alpha1.RunReport{
		State: state(s.State), Task: Clean(s.Task, maxName), Base: s.Base, Head: s.Head,
		AgentRunning: s.AgentRunning, WorkspaceReady: s.WorkspaceReady, ReportTime: apiTime(at),
	}
	run.Report.Progress = progress(s.Tasks)
	run.Report.Unit = unlessEmpty(v1alpha1.SaluteUnit{Role: Clean(s.Role, maxUnit), Runtime: Clean(s.Runtime, maxUnit)})
	if s.Directory != "" || s.FilesModified > 0 || len(s.Contracts) > 0 {
		run.Report.Location = &v1alpha1.SaluteLocation{Directory: Clean(s.Directory, maxPlace), FilesModified: s.FilesModified}
		for _, c := range s.Contracts[:min(len(s.Contracts), maxContracts)] {
			run.Report.Location.Contracts = append(run.Report.Location.Contracts, Clean(c, maxUnit))
		}
	}
	for _, p := range s.Problems[:min(len(s.Problems), maxProblems)] {
		run.Report.Health = "Degraded"
		run.Report.Problems = append(run.Report.Problems, Clean(p, maxText))
	}
	for _, u := range s.Unacknowledged[:min(len(s.Unacknowledged), protocol.MaxAcknowledgments)] {
		run.Report.Unacknowledged = append(run.Report.Unacknowledged, Clean(u, maxText))
	}
	applyConversation(run, s.Conversation)
	applyDirectives(run, s.Directives)
	applyReviews(run, s.Reviews)
	if len(s.Reviews) > 0 { // without a review, the watchdog does not know the documents yet
		run.KnowledgeToReview = s.KnowledgeToReview
	}
	run.Tasks = nil
	for _, t := range s.Tasks {
		status := v1alpha1.TaskStatus{Name: Clean(t.Name, maxName), State: t.State, Corrections: int32(t.Corrections), Message: Clean(t.Message, protocol.MaxTaskMessage)} //nolint:gosec // validated
		if t.ExitCode != nil {
			code := int32(*t.ExitCode)
			status.ExitCode = &code
		}
		if w := t.Work; w != nil {
			status.Work = &v1alpha1.TaskWork{CheckpointSequence: w.Checkpoint, PromotedCheckpoints: w.Promoted, Summary: Clean(w.Summary, protocol.MaxTaskSummary)}
		}
		status.Gates = shownGates(t.Gates)
		run.Tasks = append(run.Tasks, status)
	}
	run.DeliveryGates = shownGates(s.DeliveryGates)
	run.Question = question(s.Question)
	if s.Usage != nil || s.BudgetWarning != "" { // a watchdog that has just started does not know yet
		run.BudgetWarning = Clean(s.BudgetWarning, maxText)
	}
	if s.Usage != nil || s.SupervisorCostWarning != "" {
		run.SupervisorCostWarning = Clean(s.SupervisorCostWarning, maxText)
	}
	if u := s.Usage; u != nil {
		run.Usage = unlessEmpty(v1alpha1.Usage{Calls: u.Calls, InputTokens: u.InputTokens, CachedInputTokens: u.CachedInputTokens, OutputTokens: u.OutputTokens, Cost: Clean(u.Cost, maxCost)})
	}
	run.Fault = nil
	if s.Fault != nil {
		run.Fault = &v1alpha1.RunFault{Reason: Clean(s.Fault.Reason, maxName), Message: Clean(s.Fault.Message, maxMessage)}
	}
}

// state of a run. One of a later version is none: the schema would refuse it, and with it all of the report.
func state(name string) string {
	if slices.Contains(protocol.States(), name) {
		return name
	}
	return ""
}

// progress in the plan, for people: how many tasks are over, and how many of these were aborted.
func progress(tasks []protocol.TaskStatus) string {
	over, aborted := 0, 0
	for _, t := range tasks {
		switch t.State {
		case protocol.TaskAborted:
			over, aborted = over+1, aborted+1
		case protocol.TaskDone:
			over++
		}
	}
	if len(tasks) == 0 {
		return ""
	}
	text := fmt.Sprintf("%d/%d tasks", over, len(tasks))
	if aborted > 0 {
		text += fmt.Sprintf(", %d aborted", aborted)
	}
	return text
}

// boundStatus cuts what applyStatus sets to what the API takes.
func boundStatus(run *v1alpha1.RunStatus) {
	if r := run.Report; r != nil {
		r.Task, r.Base, r.Head = plain.CutRunes(r.Task, maxName), plain.CutRunes(r.Base, maxHash), plain.CutRunes(r.Head, maxHash)
		r.Problems, r.Progress = plain.CutList(r.Problems, maxProblems), plain.CutRunes(r.Progress, maxName)
		if u := r.Unit; u != nil {
			u.Role, u.Runtime = plain.CutRunes(u.Role, maxUnit), plain.CutRunes(u.Runtime, maxUnit)
		}
		if l := r.Location; l != nil {
			l.FilesRead, l.FilesModified, l.Directory = min(l.FilesRead, maxNumber), min(l.FilesModified, maxNumber), plain.CutRunes(l.Directory, maxPlace)
			l.Contracts = plain.CutList(l.Contracts, maxContracts)
			for i := range l.Contracts {
				l.Contracts[i] = plain.CutRunes(l.Contracts[i], maxUnit)
			}
		}
		for i := range r.Problems {
			r.Problems[i] = plain.CutRunes(r.Problems[i], maxText)
		}
		r.Unacknowledged = plain.CutList(r.Unacknowledged, protocol.MaxAcknowledgments)
		for i := range r.Unacknowledged {
			r.Unacknowledged[i] = plain.CutRunes(r.Unacknowledged[i], maxText)
		}
	}
	boundConversation(run)
	boundDirectives(run)
	boundReviews(run)
	run.KnowledgeToReview = plain.CutList(run.KnowledgeToReview, protocol.MaxKnowledgeToReview)
	run.BudgetWarning, run.SupervisorCostWarning = plain.CutRunes(run.BudgetWarning, maxText), plain.CutRunes(run.SupervisorCostWarning, maxText)
	if u := run.Usage; u != nil {
		u.Cost = plain.CutRunes(u.Cost, maxCost)
		for _, n := range []*int64{&u.Calls, &u.InputTokens, &u.CachedInputTokens, &u.OutputTokens} {
			*n = min(*n, maxNumber)
		}
	}
	run.Tasks = plain.CutList(run.Tasks, maxTasks)
	boundGates(&run.DeliveryGates)
	works, proved, messages := 0, 0, 0
	for i := range run.Tasks {
		t := &run.Tasks[i]
		t.Name = plain.CutRunes(t.Name, maxName)
		if len(t.Gates) > 0 {
			proved++
		}
		if proved > protocol.MaxTaskGates {
			t.Gates = nil
		}
		boundGates(&t.Gates)
		if t.Message != "" {
			messages++
		}
		if messages > protocol.MaxTaskWorks {
			t.Message = ""
		}
		if t.Work == nil {
			continue
		}
		if works++; works > protocol.MaxTaskWorks {
			t.Work = nil
			continue
		}
		t.Work.Summary = plain.CutRunes(t.Work.Summary, protocol.MaxTaskSummary)
		for _, n := range []*int64{&t.Work.CheckpointSequence, &t.Work.PromotedCheckpoints} {
			*n = min(*n, maxNumber)
		}
	}
	if f := run.Final; f != nil {
		f.Task = plain.CutRunes(f.Task, maxName)
	}
	if f := run.Fault; f != nil {
		f.Reason = plain.CutRunes(f.Reason, maxName)
	}
	if q := run.Question; q != nil {
		q.ID = plain.CutRunes(q.ID, maxName)
	}
}

func boundGates(list *[]v1alpha1.GateStatus) {
	*list = plain.CutList(*list, protocol.MaxGates)
	for i := range *list {
		(*list)[i].Name = plain.CutRunes((*list)[i].Name, maxName)
	}
}

// question that an agent asks users; nil for none.
func question(q *protocol.Question) *v1alpha1.Question {
	if q == nil {
		return nil
	}
	shown := &v1alpha1.Question{ID: Clean(q.ID, maxName), Text: Clean(q.Text, maxMessage), Guess: q.Guess}
	if !q.At.IsZero() {
		shown.AskedTime = &metav1.Time{Time: q.At}
	}
	return shown
}
