// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

// TestFinalNamesTheTaskOfAGate: the name is one line that fits.
func TestFinalNamesTheTaskOfAGate(t *testing.T) {
	report := func(n int64, task string) protocol.Report {
		return protocol.Report{Epoch: 1, Sequence: n, Time: reports.Time(n), Final: &protocol.FinalReport{Outcome: protocol.OutcomeProving, Gate: strings.Repeat("a", 64), Task: task}}
	}
	if run := Fold(v1alpha1.RunStatus{}, "f", 1, []protocol.Report{report(1, "page/form")}); run.Final.Task != "page/form" {
		t.Errorf("%+v", run.Final)
	}
	run := Fold(v1alpha1.RunStatus{}, "f", 1, []protocol.Report{report(1, strings.Repeat("ü", 200)+"\n")})
	if got := []rune(run.Final.Task); len(got) != maxName {
		t.Errorf("%d characters", len(got))
	}
	run.Final.Task = strings.Repeat("ü", 200)
	if boundStatus(&run); len([]rune(run.Final.Task)) != maxName {
		t.Errorf("%d characters are kept of a name that something else has written", len([]rune(run.Final.Task)))
	}
}

// TestResultsOfGates are kept for the newest tasks, as the watchdog reports them, and the next report replaces them.
func TestResultsOfGates(t *testing.T) {
	report := func(n int64, tasks []protocol.TaskStatus, delivery ...protocol.GateStatus) protocol.Report {
		return protocol.Report{Epoch: 1, Sequence: n, Time: reports.Time(n), Status: &protocol.StatusReport{State: protocol.StateActive, Tasks: tasks, DeliveryGates: delivery}}
	}
	form := []protocol.TaskStatus{{Name: "page/form", State: protocol.TaskGating, Gates: []protocol.GateStatus{{Name: "unit", State: "Failed", ExitCode: 1}}}}
	run := Fold(v1alpha1.RunStatus{}, "f", 1, []protocol.Report{report(1, form, protocol.GateStatus{Name: "all", State: "Passed"})})
	if diff := cmp.Diff([]v1alpha1.GateStatus{{Name: "unit", State: "Failed", ExitCode: 1}}, run.Tasks[0].Gates); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]v1alpha1.GateStatus{{Name: "all", State: "Passed"}}, run.DeliveryGates); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	form[0].Gates = nil
	if run = Fold(run, "f", 1, []protocol.Report{report(2, form)}); run.Tasks[0].Gates != nil || run.DeliveryGates != nil {
		t.Errorf("%+v, %+v", run.Tasks, run.DeliveryGates)
	}
	// More than a watchdog of ours sends.
	var many []protocol.TaskStatus
	for n := range 50 {
		many = append(many, protocol.TaskStatus{Name: fmt.Sprint("page/", n), State: protocol.TaskDone})
		for range 100 {
			many[n].Gates = append(many[n].Gates, protocol.GateStatus{Name: strings.Repeat("ü", 200), State: "Passed"})
		}
	}
	run = Fold(v1alpha1.RunStatus{}, "f", 1, []protocol.Report{report(1, many, many[0].Gates...)})
	boundStatus(&run)
	with := 0
	for _, task := range append(run.Tasks, v1alpha1.TaskStatus{Gates: run.DeliveryGates}) {
		if len(task.Gates) == 0 {
			continue
		}
		with++
		if len(task.Gates) > protocol.MaxGates || len([]rune(task.Gates[0].Name)) > maxName {
			t.Errorf("%s has %d results", task.Name, len(task.Gates))
		}
	}
	if with != protocol.MaxTaskGates+1 {
		t.Errorf("%d have results", with)
	}
}

// TestGatesThatAreRefused name the field.
func TestGatesThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		gate protocol.GateStatus
		want string
	}{
		"no name":      {protocol.GateStatus{State: "Passed"}, "gates[0] has no name, or no exit code"},
		"no exit code": {protocol.GateStatus{Name: "unit", State: "Failed", ExitCode: math.MaxInt32 + 1}, "gates[0] has no name, or no exit code"},
		"no state":     {protocol.GateStatus{Name: "unit", State: "Mine"}, `gates[0].state "Mine" is not one of Passed, Failed, TimedOut, NotStarted`},
	} {
		task := protocol.TaskStatus{Name: "form", State: protocol.TaskDone, Gates: []protocol.GateStatus{tc.gate}}
		if err := validateStatus(protocol.StatusReport{State: protocol.StateActive, Tasks: []protocol.TaskStatus{task}}); err == nil || !strings.Contains(err.Error(), "status.tasks[0]."+tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		err := validateStatus(protocol.StatusReport{State: protocol.StateActive, DeliveryGates: []protocol.GateStatus{tc.gate}})
		if want := "status.deliveryG" + strings.TrimPrefix(tc.want, "g"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
