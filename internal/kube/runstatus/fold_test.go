// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

// at is the time of a report, as the API keeps it.
func at(sequence int64) *metav1.Time { return apiTime(reports.Time(sequence)) }

func TestFold(t *testing.T) {
	active := protocol.StatusReport{State: protocol.StateActive, WorkspaceReady: true, AgentRunning: true, Task: "login/form", Head: fmt.Sprintf("%040x", 7),
		Tasks: []protocol.TaskStatus{{Name: "login/form", State: protocol.TaskRunning}, {Name: "login/test", State: protocol.TaskFailed, ExitCode: new(3)}}}
	activeRun := v1alpha1.RunStatus{
		Epoch: 1, Sequence: 5,
		Report: &v1alpha1.RunReport{State: "Active", WorkspaceReady: true, AgentRunning: true, Progress: "0/2 tasks", Task: "login/form", Head: fmt.Sprintf("%040x", 7), ReportTime: at(5)},
		Tasks:  []v1alpha1.TaskStatus{{Name: "login/form", State: "Running"}, {Name: "login/test", State: "Failed", ExitCode: new(int32(3))}},
	}
	finished := v1alpha1.RunStatus{
		Epoch: 1, Sequence: 9, CheckpointSequence: 4, Checkpoints: v1alpha1.CheckpointCounts{Total: 4, Valid: 3, Invalid: 1},
		LastCheckpoint: &v1alpha1.CheckpointSummary{Name: "f-4", Verdict: "Valid", Action: "Promoted"}, LastValidCheckpoint: "f-4",
		Report: &v1alpha1.RunReport{State: "Complete"}, Tasks: []v1alpha1.TaskStatus{{Name: "f", State: "Failed"}}, Turn: 12,
		Requests:  []v1alpha1.ObservedRequest{{ID: "r1", State: "Done"}},
		Fault:     &v1alpha1.RunFault{Reason: "VolumeFull"},
		Connected: new(true), ConnectionTransitionTime: at(1), Replica: "manager-a",
		Final: &v1alpha1.FinalReport{Epoch: 1, Outcome: protocol.OutcomeAgentFailed}, Question: &v1alpha1.Question{ID: "q", Text: "why?"},
	}
	tests := map[string]struct {
		run     v1alpha1.RunStatus
		attempt int64
		reports []protocol.Report
		want    v1alpha1.RunStatus
	}{
		"nothing": {run: finished, attempt: 1, want: finished},
		"a status replaces the one before it, fault included": {
			run:     v1alpha1.RunStatus{Epoch: 1, Sequence: 4, Report: &v1alpha1.RunReport{State: "Preparing", Base: "x"}, Fault: &v1alpha1.RunFault{Reason: "RepositoryUnreachable"}},
			attempt: 1, reports: []protocol.Report{reports.New(1, 5, active)}, want: activeRun,
		},
		"tasks that are aborted": {
			attempt: 1,
			reports: []protocol.Report{
				reports.New(1, 1, protocol.StatusReport{State: protocol.StateIdle, Tasks: []protocol.TaskStatus{
					{Name: "a", State: protocol.TaskDone, Corrections: 1}, {Name: "b", State: protocol.TaskAborted, Corrections: 2, Message: "no\nway", Work: &protocol.TaskWork{Checkpoint: 3}}, {Name: "c", State: protocol.TaskPending},
				}}),
				reports.New(1, 2, protocol.FinalReport{Outcome: protocol.OutcomeAgentFailed, TaskFailures: 2}),
			},
			want: v1alpha1.RunStatus{Epoch: 1, Sequence: 2, Report: &v1alpha1.RunReport{State: "Idle", Progress: "2/3 tasks, 1 aborted", ReportTime: at(1)},
				Tasks: []v1alpha1.TaskStatus{{Name: "a", State: "Done", Corrections: 1}, {Name: "b", State: "Aborted", Corrections: 2, Message: "no way", Work: &v1alpha1.TaskWork{CheckpointSequence: 3}}, {Name: "c", State: "Pending"}},
				Final: &v1alpha1.FinalReport{Epoch: 1, Outcome: "AgentFailed", TaskFailures: 2}},
		},
		"a state of a later version, which is none": {
			run:     v1alpha1.RunStatus{Epoch: 1, Sequence: 4, Report: &v1alpha1.RunReport{State: "Active"}},
			attempt: 1, reports: []protocol.Report{reports.New(1, 5, protocol.StatusReport{State: "Bored", Task: "login/form"})},
			want: v1alpha1.RunStatus{Epoch: 1, Sequence: 5, Report: &v1alpha1.RunReport{Task: "login/form", ReportTime: at(5)}},
		},
		"a fault": {
			attempt: 1,
			reports: []protocol.Report{reports.New(1, 1, protocol.StatusReport{State: protocol.StatePreparing, Fault: &protocol.Fault{Reason: "RevisionNotFound", Message: "no\nsuch \x1b[31mbranch"}})},
			want: v1alpha1.RunStatus{Epoch: 1, Sequence: 1, Report: &v1alpha1.RunReport{State: "Preparing", ReportTime: at(1)},
				Fault: &v1alpha1.RunFault{Reason: "RevisionNotFound", Message: "no such \uFFFD[31mbranch"}},
		},
		"a question that ends the attempt, whatever the last status was": {
			attempt: 1,
			reports: []protocol.Report{
				reports.New(1, 1, protocol.StatusReport{State: protocol.StateWaiting}),
				reports.New(1, 2, protocol.FinalReport{Outcome: protocol.OutcomeParked, Reason: protocol.ReasonAwaitingInput, Question: &protocol.Question{ID: "q1", Text: "Which\ncolour?", At: at(1).Time}}),
			},
			want: v1alpha1.RunStatus{Epoch: 1, Sequence: 2, Report: &v1alpha1.RunReport{State: "Waiting", ReportTime: at(1)},
				Question: &v1alpha1.Question{ID: "q1", Text: "Which colour?", AskedTime: at(1)},
				Final:    &v1alpha1.FinalReport{Epoch: 1, Outcome: "Parked", Reason: "AwaitingInput"}},
		},
		"directives, which a report without any leaves as they are": {
			run: v1alpha1.RunStatus{Directives: []v1alpha1.DirectiveStatus{{ID: "old", State: "Pending"}}}, attempt: 1,
			reports: []protocol.Report{
				reports.New(1, 1, protocol.StatusReport{State: protocol.StatePreparing, Directives: []protocol.DirectiveStatus{
					{ID: "use-dict", Source: "Person", State: "Escalated", Age: 3, Message: "the agent says\nno"}, {ID: "answer/q1", Source: "Person", State: "Addressed"},
				}}),
				reports.New(1, 2, protocol.StatusReport{State: protocol.StatePreparing}),
			},
			want: v1alpha1.RunStatus{Epoch: 1, Sequence: 2, Report: &v1alpha1.RunReport{State: "Preparing", ReportTime: at(2)}, Directives: []v1alpha1.DirectiveStatus{
				{ID: "use-dict", Source: "Person", State: "Escalated", Age: 3, Message: "the agent says no"}, {ID: "answer/q1", Source: "Person", State: "Addressed"},
			}},
		},
		"problems that the watchdog works around": {
			attempt: 1,
			reports: []protocol.Report{reports.New(1, 1, protocol.StatusReport{State: protocol.StateActive,
				Problems: []string{"watcher: scanning\nonly", "2", "3", "4", "5", "6", "7", "8", "9"}})},
			want: v1alpha1.RunStatus{Epoch: 1, Sequence: 1, Report: &v1alpha1.RunReport{State: "Active", Health: "Degraded", ReportTime: at(1),
				Problems: []string{"watcher: scanning only", "2", "3", "4", "5", "6", "7", "8"}}},
		},
		"what the agent does not acknowledge": {
			attempt: 1,
			reports: []protocol.Report{reports.New(1, 1, protocol.StatusReport{State: protocol.StateActive,
				Unacknowledged: []string{"rule areas at\ncheckpoint login-1", "2", "3", "4", "5", "6", "7", "8", "9"}})},
			want: v1alpha1.RunStatus{Epoch: 1, Sequence: 1, Report: &v1alpha1.RunReport{State: "Active", ReportTime: at(1),
				Unacknowledged: []string{"rule areas at checkpoint login-1", "2", "3", "4", "5", "6", "7", "8"}}},
		},
		"a conversation, and its end": {
			attempt: 1,
			reports: []protocol.Report{
				reports.New(1, 1, protocol.StatusReport{State: protocol.StateActive, Problems: []string{"slow"}, Role: "dba", Runtime: "codex", Contracts: []string{"openapi"}, FilesModified: 4, Directory: "web", Conversation: &protocol.Conversation{
					Turn: 7, Health: protocol.HealthNominal, Pace: protocol.PaceAlternate, Tool: "Read", Step: "web/\na.html", Iterations: 3, Awaits: "the background command \"m\u202eake\"", FilesRead: 2, TurnsSinceProgress: 4, ContextTurns: 20,
					Model: "large", ContextTokens: 50, Window: 200, ToolFailures: 9, ToolFailuresInARow: 1, FixedInTime: 3,
					Anomalies: []protocol.Anomaly{{Type: v1alpha1.ConditionAgentLooping, Turn: 5, Since: at(1).Time, Message: "the same\ncall", Cause: protocol.CauseProvider}},
				}}),
			},
			want: v1alpha1.RunStatus{
				Epoch: 1, Sequence: 1, Turn: 7, Anomalies: []v1alpha1.Anomaly{{Type: v1alpha1.ConditionAgentLooping, Turn: 5, StartTime: at(1), Message: "the same call", Cause: protocol.CauseProvider}},
				Report: &v1alpha1.RunReport{
					State: "Active", ReportTime: at(1), Health: "Degraded", Problems: []string{"slow"}, PaceLevel: "Alternate", FixedInTime: 3,
					Activity: &v1alpha1.SaluteActivity{Tool: "Read", Step: "web/ a.html", Iterations: 3, WaitsFor: "the background command \"m\ufffdake\""}, Unit: &v1alpha1.SaluteUnit{Role: "dba", Runtime: "codex"},
					Location:    &v1alpha1.SaluteLocation{Directory: "web", FilesModified: 4, FilesRead: 2, Contracts: []string{"openapi"}},
					Time:        &v1alpha1.SaluteTime{TurnsSinceProgress: 4, ContextTurnsRemaining: 20},
					Environment: &v1alpha1.SaluteEnvironment{Model: "large", ContextPercent: 25, ContextTokens: 50, ContextTokensMax: 200, ToolFailures: 9, ToolFailuresInARow: 1},
				},
			},
		},
		"what models have used, which a report without it does not take back": {
			attempt: 1,
			reports: []protocol.Report{
				reports.New(1, 1, protocol.StatusReport{State: protocol.StateActive, BudgetWarning: "it is nearly\nused", SupervisorCostWarning: "they have\n14 %",
					Usage: &protocol.Usage{Calls: 3, InputTokens: 100, CachedInputTokens: 90, OutputTokens: 10, Cost: "0.5"}}),
				reports.New(1, 2, protocol.StatusReport{State: protocol.StateActive}),
			},
			want: v1alpha1.RunStatus{Epoch: 1, Sequence: 2, Report: &v1alpha1.RunReport{State: "Active", ReportTime: at(2)}, BudgetWarning: "it is nearly used", SupervisorCostWarning: "they have 14 %",
				Usage: &v1alpha1.Usage{Calls: 3, InputTokens: 100, CachedInputTokens: 90, OutputTokens: 10, Cost: "0.5"}},
		},
		"checkpoints are counted by verdict": {
			attempt: 1,
			reports: []protocol.Report{reports.New(1, 1, reports.Taken(1, protocol.Valid)), reports.New(1, 2, reports.Taken(2, protocol.Skipped)), reports.New(1, 3, reports.Taken(3, protocol.Invalid))},
			want: v1alpha1.RunStatus{
				Epoch: 1, Sequence: 3, CheckpointSequence: 3, Checkpoints: v1alpha1.CheckpointCounts{Total: 3, Valid: 1, Invalid: 1}, LastValidCheckpoint: "f-1",
				LastCheckpoint: &v1alpha1.CheckpointSummary{Name: "f-3", Verdict: "Invalid", Action: "Held", Reason: "InForbiddenArea",
					Message: `Rule forbidden-areas is broken by "web/legacy/a b": may not change. To fix it: undo it. There are 2 more violations.`},
			},
		},
		"an unsettled checkpoint is neither valid nor invalid": {
			attempt: 1,
			reports: []protocol.Report{reports.New(1, 1, protocol.CheckpointReport{Sequence: 1, Verdict: protocol.Valid, Action: protocol.ActionHeld, UnsettledReason: "web/a still moves"})},
			want: v1alpha1.RunStatus{
				Epoch: 1, Sequence: 1, CheckpointSequence: 1, Checkpoints: v1alpha1.CheckpointCounts{Total: 1},
				LastCheckpoint: &v1alpha1.CheckpointSummary{Name: "f-1", Verdict: "Valid", Action: "Held", Reason: "CheckpointFailed", Message: "web/a still moves"},
			},
		},
		"results of requests, once each": {
			attempt: 1,
			reports: []protocol.Report{
				reports.New(1, 1, protocol.RequestReport{ID: "r1", OK: true, Message: "checkpoint 4"}), reports.New(1, 2, protocol.RequestReport{ID: "r2", Message: "no"}),
				reports.New(1, 3, protocol.RequestReport{ID: "r1", Message: "again"}),
			},
			want: v1alpha1.RunStatus{Epoch: 1, Sequence: 3, Requests: []v1alpha1.ObservedRequest{
				{ID: "r1", State: "Done", Message: "checkpoint 4", ObservedTime: at(1)}, {ID: "r2", State: "Failed", Message: "no", ObservedTime: at(2)},
			}},
		},
		"what is not above the mark is known": {
			run: activeRun, attempt: 1,
			reports: []protocol.Report{reports.New(1, 4, protocol.FinalReport{Outcome: protocol.OutcomeStopped}), reports.New(1, 5, protocol.StatusReport{State: protocol.StateIdle})},
			want:    activeRun,
		},
		"a gap is no reason to stop": {
			run: v1alpha1.RunStatus{Epoch: 1, Sequence: 1}, attempt: 1, reports: []protocol.Report{reports.New(1, 5, active)}, want: activeRun,
		},
		"the last word": {
			attempt: 3,
			reports: []protocol.Report{reports.New(3, 1, protocol.FinalReport{Outcome: protocol.OutcomeDelivered, Reason: "Delivered", Message: "done", Head: fmt.Sprintf("%040x", 9)})},
			want: v1alpha1.RunStatus{Epoch: 3, Sequence: 1,
				Final: &v1alpha1.FinalReport{Epoch: 3, Outcome: "Delivered", Reason: "Delivered", Message: "done", Head: fmt.Sprintf("%040x", 9)}},
		},
		"a new attempt keeps what adds up and forgets what the last one said of itself": {
			run: finished, attempt: 2, reports: []protocol.Report{reports.New(2, 1, reports.Taken(5, protocol.Valid))},
			want: v1alpha1.RunStatus{
				Epoch: 2, Sequence: 1, CheckpointSequence: 5, Checkpoints: v1alpha1.CheckpointCounts{Total: 5, Valid: 4, Invalid: 1},
				LastCheckpoint: &v1alpha1.CheckpointSummary{Name: "f-5", Verdict: "Valid", Action: "Promoted"}, LastValidCheckpoint: "f-5",
				Tasks: finished.Tasks, Turn: 12, Requests: finished.Requests,
			},
		},
		"of an earlier attempt only checkpoints and results count": {
			run: finished, attempt: 2,
			reports: []protocol.Report{
				reports.New(1, 10, reports.Taken(4, protocol.Valid)), reports.New(1, 11, reports.Taken(5, protocol.Valid)), reports.New(1, 12, active),
				reports.New(1, 13, protocol.RequestReport{ID: "r2", OK: true}), reports.New(1, 14, protocol.FinalReport{Outcome: protocol.OutcomeDelivered}),
			},
			want: func() v1alpha1.RunStatus {
				w := *finished.DeepCopy()
				w.CheckpointSequence, w.Checkpoints = 5, v1alpha1.CheckpointCounts{Total: 5, Valid: 4, Invalid: 1}
				w.LastCheckpoint, w.LastValidCheckpoint = &v1alpha1.CheckpointSummary{Name: "f-5", Verdict: "Valid", Action: "Promoted"}, "f-5"
				w.Requests = append(w.Requests, v1alpha1.ObservedRequest{ID: "r2", State: "Done", ObservedTime: at(13)})
				return w
			}(),
		},
		"an attempt that does not exist yet is not believed": {
			run: finished, attempt: 1, reports: []protocol.Report{reports.New(2, 1, active)}, want: finished,
		},
		"a checkpoint that was adopted is not counted again": {
			run:     v1alpha1.RunStatus{Epoch: 1, Sequence: 1, CheckpointSequence: 2, Checkpoints: v1alpha1.CheckpointCounts{Total: 2, Valid: 2}, LastValidCheckpoint: "f-2"},
			attempt: 1, reports: []protocol.Report{reports.New(1, 2, reports.Taken(2, protocol.Valid))},
			want: v1alpha1.RunStatus{Epoch: 1, Sequence: 2, CheckpointSequence: 2, Checkpoints: v1alpha1.CheckpointCounts{Total: 2, Valid: 2}, LastValidCheckpoint: "f-2"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := test.run.DeepCopy()
			got := Fold(test.run, "f", test.attempt, test.reports)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(*before, test.run); diff != "" {
				t.Errorf("it changed what it was given:\n%s", diff)
			}
		})
	}
}

// TestRollbacksAreCounted by their cause, over attempts, once however often a report comes, and where a Checkpoint stands for its report.
func TestRollbacksAreCounted(t *testing.T) {
	back := func(sequence int64, verdict protocol.Verdict, b protocol.RollbackReport) protocol.CheckpointReport {
		c := reports.Taken(sequence, verdict)
		c.Action, c.Rollback = protocol.ActionReverted, &b
		return c
	}
	first := []protocol.Report{
		reports.New(1, 1, reports.Taken(1, protocol.Valid)),
		reports.New(1, 2, back(2, protocol.Invalid, protocol.RollbackReport{Cause: protocol.RollbackByViolation})),
	}
	second := []protocol.Report{
		reports.New(2, 1, back(3, protocol.Valid, protocol.RollbackReport{Cause: protocol.RollbackBySupervision, Reason: "the same call\nhas failed"})),
		reports.New(2, 2, back(4, protocol.Valid, protocol.RollbackReport{Cause: protocol.RollbackByRequest, To: 1, Reason: "request back-1"})),
	}
	run := Fold(v1alpha1.RunStatus{}, "f", 1, first)
	want := v1alpha1.RollbackStatus{Total: 1, Violation: 1, Last: v1alpha1.LastRollback{
		RollbackTime: *apiTime(first[1].Checkpoint.CapturedAt), Cause: v1alpha1.RollbackByViolation, Before: "f-2", To: "f-1", Reason: run.LastCheckpoint.Message,
	}}
	if diff := cmp.Diff(&want, run.Rollbacks); diff != "" || want.Last.Reason == "" {
		t.Errorf("a violation (-want +got)\n%s", diff)
	}
	run = Fold(run, "f", 2, append(slices.Clone(first), second[0]))
	want = v1alpha1.RollbackStatus{Total: 2, Violation: 1, Supervision: 1, Last: v1alpha1.LastRollback{
		RollbackTime: *apiTime(second[0].Checkpoint.CapturedAt), Cause: v1alpha1.RollbackBySupervision, Before: "f-3", To: "f-1", Reason: "the same call has failed",
	}}
	if diff := cmp.Diff(&want, run.Rollbacks); diff != "" {
		t.Errorf("supervision (-want +got)\n%s", diff)
	}
	adopted := Adopt(run, Checkpoint(&v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: "f"}}, second[1]))
	want.Total, want.Request = 3, 1
	want.Last = v1alpha1.LastRollback{RollbackTime: *apiTime(second[1].Checkpoint.CapturedAt), Cause: v1alpha1.RollbackByRequest, Before: "f-4", To: "f-1", Reason: "request back-1"}
	for name, got := range map[string]v1alpha1.RunStatus{"reported": Fold(run, "f", 2, second), "adopted": adopted, "both": Fold(adopted, "f", 2, second)} {
		if diff := cmp.Diff(&want, got.Rollbacks); diff != "" {
			t.Errorf("a request, %s (-want +got)\n%s", name, diff)
		}
	}
}

// TestAnAbortedTaskGoesBackToItsBeginning: neither the newest valid checkpoint nor the last one counts, which the task may have promoted.
func TestAnAbortedTaskGoesBackToItsBeginning(t *testing.T) {
	for want, b := range map[string]protocol.RollbackReport{"f-1": {To: 1}, "": {ToBase: true}, "f-2": {}} {
		back := reports.Taken(3, protocol.Valid)
		b.Cause, b.Reason = protocol.RollbackBySupervision, "task is aborted"
		back.Action, back.Rollback = protocol.ActionReverted, &b
		before := Fold(v1alpha1.RunStatus{}, "f", 1, []protocol.Report{reports.New(1, 1, reports.Taken(1, protocol.Valid)), reports.New(1, 2, reports.Taken(2, protocol.Valid))})
		report := reports.New(1, 3, back)
		adopted := Adopt(before, Checkpoint(&v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: "f"}}, report))
		for name, run := range map[string]v1alpha1.RunStatus{"reported": Fold(before, "f", 1, []protocol.Report{report}), "adopted": adopted} {
			if got := run.Rollbacks.Last.To; got != want {
				t.Errorf("%+v, %s: to %q, want %q", b, name, got, want)
			}
		}
	}
}

// TestAValidStateThatWentBackIsNotTheLastValidOne: nothing goes on from it, and a rollback after that one does not lead to it.
func TestAValidStateThatWentBackIsNotTheLastValidOne(t *testing.T) {
	var list []protocol.Report
	for i := range int64(3) {
		c := reports.Taken(i+1, protocol.Valid)
		if i > 0 {
			c.Action, c.Rollback = protocol.ActionReverted, &protocol.RollbackReport{Cause: protocol.RollbackBySupervision}
		}
		list = append(list, reports.New(1, i+1, c))
	}
	run := Fold(v1alpha1.RunStatus{}, "f", 1, list)
	if run.LastValidCheckpoint != "f-1" || run.Rollbacks.Last.To != "f-1" || run.Checkpoints.Valid != 3 {
		t.Errorf("the last valid one is %s, and the workspace went back to %s", run.LastValidCheckpoint, run.Rollbacks.Last.To)
	}
}

func TestConnection(t *testing.T) {
	later := reports.Noon.Add(time.Minute)
	first := Connect(v1alpha1.RunStatus{}, 1, "a", reports.Noon)
	want := v1alpha1.RunStatus{Epoch: 1, Connected: new(true), ConnectionTransitionTime: apiTime(reports.Noon), Replica: "a"}
	check := func(what string, got, want v1alpha1.RunStatus) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
	check("a first connection", first, want)
	check("the same again", Connect(first, 1, "a", later), want)
	moved := Connect(first, 1, "b", later)
	want.Replica = "b"
	check("another replica takes over: it is connected since it was", moved, want)
	check("the old replica's end says nothing", Disconnect(moved, 1, "a", later), want)
	check("an earlier attempt's end says nothing", Disconnect(moved, 0, "b", later), want)
	broken := Disconnect(moved, 1, "b", later)
	want.Connected, want.ConnectionTransitionTime = new(false), apiTime(later)
	check("it breaks", broken, want)
	ended := moved
	ended.Final = &v1alpha1.FinalReport{Epoch: 1, Outcome: protocol.OutcomeDelivered}
	check("its end after the last word says nothing", Disconnect(ended, 1, "b", later), ended)
	check("it breaks once", Disconnect(broken, 1, "b", later.Add(time.Hour)), want)
	want.Epoch, want.Connected, want.ConnectionTransitionTime, want.Replica = 2, new(true), apiTime(later), "a"
	check("the next attempt connects", Connect(broken, 2, "a", later), want)
	forgotten := Fold(moved, "f", 2, []protocol.Report{reports.New(2, 1, protocol.RequestReport{ID: "r"})})
	if forgotten.Connected != nil || forgotten.Replica != "" {
		t.Errorf("the connection of attempt 1 counts for attempt 2: %+v", forgotten)
	}
}

// spools draws what a watchdog may have in its spool: a few attempts, numbers without order among the kinds.
func spools() *rapid.Generator[[]protocol.Report] {
	return rapid.Custom(func(t *rapid.T) []protocol.Report {
		var all []protocol.Report
		checkpoints := int64(0)
		for epoch := int64(1); epoch <= 3; epoch++ {
			for sequence := range rapid.Int64Range(0, 6).Draw(t, "reports of the attempt") {
				switch rapid.IntRange(0, 3).Draw(t, "kind") {
				case 0:
					all = append(all, reports.New(epoch, sequence+1, protocol.StatusReport{State: rapid.SampledFrom([]string{"Active", "Idle"}).Draw(t, "state")}))
				case 1:
					checkpoints++
					c := reports.Taken(checkpoints, rapid.SampledFrom([]protocol.Verdict{protocol.Valid, protocol.Invalid, protocol.Skipped}).Draw(t, "verdict"))
					if rapid.Bool().Draw(t, "went back") {
						c.Rollback = &protocol.RollbackReport{Cause: protocol.RollbackBySupervision}
					}
					all = append(all, reports.New(epoch, sequence+1, c))
				case 2:
					all = append(all, reports.New(epoch, sequence+1, protocol.RequestReport{ID: fmt.Sprint("r", rapid.IntRange(0, 3).Draw(t, "request")), OK: true}))
				default:
					all = append(all, reports.New(epoch, sequence+1, protocol.FinalReport{Outcome: protocol.OutcomeStopped}))
				}
			}
		}
		return all
	})
}

// TestFoldIsExactlyOnce sends a spool as a watchdog does that loses answers: again and again from any point that was
// not acknowledged, in batches of any size, to replicas of which one may apply what another has applied already. The
// outcome is that of sending everything once.
func TestFoldIsExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spool := spools().Draw(t, "spool")
		const attempt = 3
		want := Fold(v1alpha1.RunStatus{}, "f", attempt, spool)
		run := v1alpha1.RunStatus{}
		fresh := map[protocol.ReportAck]int{}
		for acknowledged := 0; acknowledged < len(spool); {
			end := rapid.IntRange(acknowledged+1, len(spool)).Draw(t, "end of the batch")
			batch := spool[acknowledged:end]
			for range rapid.IntRange(1, 3).Draw(t, "times") {
				for _, r := range Fresh(run, attempt, batch) {
					fresh[protocol.ReportAck{Epoch: r.Epoch, Sequence: r.Sequence}]++
				}
				run = Fold(run, "f", attempt, batch)
			}
			if rapid.Bool().Draw(t, "the answer arrives") {
				acknowledged = end
			}
		}
		if diff := cmp.Diff(want, run); diff != "" {
			t.Fatalf("(-once +replayed)\n%s", diff)
		}
		for _, r := range spool {
			late := r.Epoch < attempt && r.Checkpoint == nil
			if n := fresh[protocol.ReportAck{Epoch: r.Epoch, Sequence: r.Sequence}]; (n != 1 || late) && (n != 0 || !late) {
				t.Fatalf("report %d of epoch %d was fresh %d times", r.Sequence, r.Epoch, n)
			}
		}
		checkpoints := int64(len(slices.DeleteFunc(slices.Clone(spool), func(r protocol.Report) bool { return r.Checkpoint == nil })))
		if run.Checkpoints.Total != checkpoints || run.CheckpointSequence != checkpoints {
			t.Fatalf("%d checkpoints were reported, %d are counted", checkpoints, run.Checkpoints.Total)
		}
	})
}

// TestFoldTheMarkNeverGoesBack: whatever is folded, in whatever order.
func TestFoldTheMarkNeverGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := v1alpha1.RunStatus{}
		for attempt := int64(1); attempt <= 3; attempt++ {
			for range 3 {
				spool := rapid.Permutation(spools().Draw(t, "spool")).Draw(t, "order")
				next := Fold(run, "f", attempt, spool)
				if next.Epoch < run.Epoch || next.Epoch == run.Epoch && next.Sequence < run.Sequence || next.CheckpointSequence < run.CheckpointSequence {
					t.Fatalf("from (%d, %d) back to (%d, %d)", run.Epoch, run.Sequence, next.Epoch, next.Sequence)
				}
				if next.Epoch > attempt {
					t.Fatalf("epoch %d of an attempt that does not exist", next.Epoch)
				}
				if len(next.Requests) > maxRequests {
					t.Fatalf("%d results of requests", len(next.Requests))
				}
				run = next
			}
		}
	})
}

func TestOldResultsMakeRoom(t *testing.T) {
	run := v1alpha1.RunStatus{}
	for i := range int64(maxRequests + 5) {
		run = Fold(run, "f", 1, []protocol.Report{reports.New(1, i+1, protocol.RequestReport{ID: fmt.Sprint("r", i), OK: true})})
	}
	if len(run.Requests) != maxRequests || run.Requests[0].ID != "r5" || run.Requests[maxRequests-1].ID != fmt.Sprint("r", maxRequests+4) {
		t.Errorf("%d results from %s to %s", len(run.Requests), run.Requests[0].ID, run.Requests[len(run.Requests)-1].ID)
	}
}
