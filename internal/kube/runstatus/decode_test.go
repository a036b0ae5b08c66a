// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

func encode(t testing.TB, all ...protocol.Report) string {
	t.Helper()
	return string(reports.Encode(t, all...))
}

// directed is a status with directives.
func directed(list ...protocol.DirectiveStatus) protocol.StatusReport {
	return protocol.StatusReport{State: protocol.StateIdle, Directives: list}
}

// looked is a status with reviews.
func looked(list ...protocol.ReviewStatus) protocol.StatusReport {
	return protocol.StatusReport{State: protocol.StateIdle, Reviews: list}
}

// lesson is the path of a document.
const lesson = "docs/knowledge/lessons/flush.md"

func TestDecode(t *testing.T) {
	idle := protocol.StatusReport{State: protocol.StateIdle}
	checkpoint := func(change func(*protocol.CheckpointReport)) protocol.Report {
		c := reports.Taken(2, protocol.Invalid)
		change(&c)
		return reports.New(1, 2, c)
	}
	status := func(s protocol.StatusReport) protocol.Report { return reports.New(1, 2, s) }
	two := reports.New(1, 2, idle)
	two.Final = &protocol.FinalReport{Outcome: protocol.OutcomeStopped}
	none := reports.New(1, 2, idle)
	none.Status = nil
	timeless := protocol.Report{Epoch: 1, Sequence: 2, Status: &idle}
	many := make([]protocol.Report, maxReports+1)
	for i := range many {
		many[i] = reports.New(1, int64(i+1), idle)
	}
	good := reports.New(1, 1, idle)
	tests := map[string]struct {
		body      string
		want      string // part of the error; "" means accepted
		wantIndex int64  // sequence of the refused report
	}{
		"good":                    {body: encode(t, good, reports.New(1, 2, reports.Taken(1, protocol.Valid)), reports.New(2, 1, protocol.FinalReport{Outcome: protocol.OutcomeDelivered}))},
		"knowledge":               {body: encode(t, good, reports.New(1, 2, protocol.KnowledgeReport{LeftOut: []string{"docs/knowledge/a.md"}, More: 2}))},
		"no knowledge":            {body: encode(t, good, reports.New(1, 2, protocol.KnowledgeReport{})), want: "knowledge.leftOut has 0 entries, not 1 to 8", wantIndex: 2},
		"too much knowledge":      {body: encode(t, good, reports.New(1, 2, protocol.KnowledgeReport{LeftOut: make([]string, 9)})), want: "knowledge.leftOut has 9 entries, not 1 to 8", wantIndex: 2},
		"less than nothing":       {body: encode(t, good, reports.New(1, 2, protocol.KnowledgeReport{LeftOut: []string{"a"}, More: -1})), want: "knowledge.more is -1", wantIndex: 2},
		"fields of tomorrow":      {body: `{"version":1,"more":1,"reports":[{"epoch":1,"sequence":1,"time":"2026-11-21T12:00:00Z","status":{"state":"Idle","mood":"good"}}]}`},
		"not JSON":                {body: "\x00", want: "not a report batch"},
		"empty":                   {body: "", want: "not a report batch"},
		"another type":            {body: `{"version":1,"reports":7}`, want: "not a report batch"},
		"something after it":      {body: encode(t, good) + "{}", want: "data after the report batch"},
		"a later version":         {body: `{"version":2,"reports":[]}`, want: "version 2 is not supported"},
		"no reports":              {body: encode(t), want: "reports is empty"},
		"too many":                {body: encode(t, many...), want: "more than 256"},
		"no epoch":                {body: encode(t, good, reports.New(0, 2, idle)), want: "count from 1", wantIndex: 2},
		"negative sequence":       {body: encode(t, reports.New(1, -3, idle)), want: "count from 1", wantIndex: -3},
		"the same twice":          {body: encode(t, reports.New(1, 2, idle), reports.New(1, 2, idle)), want: "the order is", wantIndex: 2},
		"out of order":            {body: encode(t, reports.New(1, 3, idle), reports.New(1, 2, idle)), want: "the order is", wantIndex: 2},
		"epochs out of order":     {body: encode(t, reports.New(2, 1, idle), reports.New(1, 2, idle)), want: "the order is", wantIndex: 2},
		"two things in one":       {body: encode(t, good, two), want: "exactly one of", wantIndex: 2},
		"nothing in it":           {body: encode(t, good, none), want: "exactly one of", wantIndex: 2},
		"no time":                 {body: encode(t, good, timeless), want: "time is missing", wantIndex: 2},
		"state of tomorrow":       {body: encode(t, good, status(protocol.StatusReport{State: "Bored"}))},
		"no state":                {body: encode(t, good, status(protocol.StatusReport{})), want: "status.state is missing", wantIndex: 2},
		"unknown state of a task": {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Tasks: []protocol.TaskStatus{{Name: "a", State: "x"}}})), want: "status.tasks[0].state", wantIndex: 2},
		"task without a name":     {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Tasks: []protocol.TaskStatus{{State: "Done"}}})), want: "status.tasks[0].name", wantIndex: 2},
		"exit code that is none":  {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Tasks: []protocol.TaskStatus{{Name: "a", State: "Done", ExitCode: new(1 << 40)}}})), want: "exitCode", wantIndex: 2},
		"negative corrections":    {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Tasks: []protocol.TaskStatus{{Name: "a", State: "Aborted", Corrections: -1}}})), want: "status.tasks[0].corrections", wantIndex: 2},
		"failures of a task":      {body: encode(t, good, reports.New(1, 2, protocol.FinalReport{Outcome: "AgentFailed", TaskFailures: 102})), want: "final.taskFailures is not between 0 and 101", wantIndex: 2},
		"fault without a reason":  {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Fault: &protocol.Fault{}})), want: "status.fault.reason", wantIndex: 2},
		"turn that is none":       {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Conversation: &protocol.Conversation{Turn: -1}})), want: "status.conversation has a negative number", wantIndex: 2},
		"fixes that are none":     {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Conversation: &protocol.Conversation{FixedInTime: -1}})), want: "status.conversation has a negative number", wantIndex: 2},
		"unknown anomaly":         {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Conversation: &protocol.Conversation{Anomalies: []protocol.Anomaly{{Type: "Bored"}}}})), want: `status.conversation.anomalies[0].type "Bored" is not one of AgentStalled`, wantIndex: 2},
		"unknown cause":           {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Conversation: &protocol.Conversation{Anomalies: []protocol.Anomaly{{Type: "AgentStalled", Cause: "The moon"}}}})), want: `status.conversation.anomalies[0].cause "The moon" is not one of Provider`, wantIndex: 2},
		"anomaly twice": {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Conversation: &protocol.Conversation{Anomalies: []protocol.Anomaly{{Type: "AgentLooping"}, {Type: "AgentLooping"}}}})),
			want: `anomalies[1].type "AgentLooping" is there twice`, wantIndex: 2},
		"too many anomalies":      {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Conversation: &protocol.Conversation{Anomalies: make([]protocol.Anomaly, 9)}})), want: "anomalies has 9 entries", wantIndex: 2},
		"unknown health":          {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Conversation: &protocol.Conversation{Health: "Ill"}})), want: "status.conversation.health", wantIndex: 2},
		"unknown pace":            {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Conversation: &protocol.Conversation{Pace: "Fast"}})), want: "status.conversation.pace", wantIndex: 2},
		"head that is none":       {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Head: "main"})), want: "status.head is not 40", wantIndex: 2},
		"directive":               {body: encode(t, good, status(directed(protocol.DirectiveStatus{ID: "answer/q1", Source: "Person", State: "Addressed"})))},
		"too many directives":     {body: encode(t, good, status(directed(make([]protocol.DirectiveStatus, 193)...))), want: "status.directives has 193 entries", wantIndex: 2},
		"directive without id":    {body: encode(t, good, status(directed(protocol.DirectiveStatus{State: "Active", Source: "Person"}))), want: "status.directives[0].id", wantIndex: 2},
		"directive twice":         {body: encode(t, good, status(directed(protocol.DirectiveStatus{ID: "a", State: "Active", Source: "Person"}, protocol.DirectiveStatus{ID: "a", State: "Active", Source: "Person"}))), want: `status.directives[1].id "a" is there twice`, wantIndex: 2},
		"state of a directive":    {body: encode(t, good, status(directed(protocol.DirectiveStatus{ID: "a", State: "Loved", Source: "Person"}))), want: `status.directives[0].state "Loved" is not one of Pending`, wantIndex: 2},
		"source of a directive":   {body: encode(t, good, status(directed(protocol.DirectiveStatus{ID: "a", State: "Active", Source: "Agent"}))), want: `status.directives[0].source "Agent" is not Person, Feature or a reviewer`, wantIndex: 2},
		"directive of a reviewer": {body: encode(t, good, status(directed(protocol.DirectiveStatus{ID: "design/1", Source: "Design", State: "Active", Type: "Functional", Priority: "Critical", Description: "Do it.", Files: []string{"a"}})))},
		"type of a directive":     {body: encode(t, good, status(directed(protocol.DirectiveStatus{ID: "a", State: "Active", Source: "Design", Type: "Whim"}))), want: `status.directives[0].type "Whim" is not one of Functional, Cleanup`, wantIndex: 2},
		"priority of a directive": {body: encode(t, good, status(directed(protocol.DirectiveStatus{ID: "a", State: "Active", Source: "Design", Priority: "Now"}))), want: `status.directives[0].priority "Now" is not one of Critical`, wantIndex: 2},
		"reviews":                 {body: encode(t, good, status(looked(protocol.ReviewStatus{Reviewer: "CodeStyle", Task: "a", Outcome: "MinorDrift", Directives: 12, Time: reports.Noon}, protocol.ReviewStatus{Reviewer: "Design", Outcome: "Skipped", Time: reports.Noon})))},
		"a custom reviewer":       {body: encode(t, good, status(looked(protocol.ReviewStatus{Reviewer: "custom/licenses", Outcome: "Aligned", Time: reports.Noon}))), wantIndex: 0},
		"directive of a custom":   {body: encode(t, good, status(directed(protocol.DirectiveStatus{ID: "custom-licenses/1", Source: "custom/licenses", State: "Active", Type: "Cleanup", Priority: "Low", Description: "Do it."})))},
		"a custom name":           {body: encode(t, good, status(looked(protocol.ReviewStatus{Reviewer: "custom/The licenses", Outcome: "Aligned", Time: reports.Noon}))), want: `status.reviews[0].reviewer "custom/The licenses" is not a reviewer`, wantIndex: 2},
		"too many documents":      {body: encode(t, good, status(protocol.StatusReport{State: protocol.StateIdle, KnowledgeToReview: make([]string, 9)})), want: "status.knowledgeToReview has 9 entries, more than 8", wantIndex: 2},
		"not a document":          {body: encode(t, good, status(protocol.StatusReport{State: protocol.StateIdle, KnowledgeToReview: []string{"README.md"}})), want: "status.knowledgeToReview[0] is not the path of a document", wantIndex: 2},
		"a document twice":        {body: encode(t, good, status(protocol.StatusReport{State: protocol.StateIdle, KnowledgeToReview: []string{lesson, lesson}})), want: "status.knowledgeToReview[1] is there twice", wantIndex: 2},
		"too many reviews":        {body: encode(t, good, status(looked(make([]protocol.ReviewStatus, 17)...))), want: "status.reviews has 17 entries, more than 16", wantIndex: 2},
		"review of nobody":        {body: encode(t, good, status(looked(protocol.ReviewStatus{Reviewer: "Crowd", Outcome: "Aligned", Time: reports.Noon}))), want: `status.reviews[0].reviewer "Crowd" is not a reviewer`, wantIndex: 2},
		"outcome of a review":     {body: encode(t, good, status(looked(protocol.ReviewStatus{Reviewer: "Design", Outcome: "Bored", Time: reports.Noon}))), want: `status.reviews[0].outcome "Bored" is not one of Aligned, MinorDrift, MajorDivergence, Skipped`, wantIndex: 2},
		"directives of a review":  {body: encode(t, good, status(looked(protocol.ReviewStatus{Reviewer: "Design", Outcome: "MinorDrift", Directives: 13, Time: reports.Noon}))), want: "status.reviews[0].directives is not a number from 0 to 12", wantIndex: 2},
		"review without a time":   {body: encode(t, good, status(looked(protocol.ReviewStatus{Reviewer: "Design", Outcome: "Aligned"}))), want: "status.reviews[0].time is missing", wantIndex: 2},
		"age of a directive":      {body: encode(t, good, status(directed(protocol.DirectiveStatus{ID: "a", State: "Active", Source: "Person", Age: -1}))), want: "status.directives[0].age", wantIndex: 2},
		"too many tasks":          {body: encode(t, good, status(protocol.StatusReport{State: "Idle", Tasks: make([]protocol.TaskStatus, maxTasks+1)})), want: "status.tasks has", wantIndex: 2},
		"request without an id":   {body: encode(t, good, reports.New(1, 2, protocol.RequestReport{})), want: "request.id", wantIndex: 2},
		"paths uncounted":         {body: encode(t, good, reports.New(1, 2, protocol.FinalReport{Outcome: "Delivered", Paths: []string{"a"}})), want: "final.pathCount", wantIndex: 2},
		"unknown outcome":         {body: encode(t, good, reports.New(1, 2, protocol.FinalReport{Outcome: "Lost"})), want: "final.outcome", wantIndex: 2},
		"checkpoint 0":            {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Sequence, c.Previous = 0, 0 })), want: "checkpoint.sequence", wantIndex: 2},
		"checkpoint after itself": {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Previous = 2 })), want: "checkpoint.previous", wantIndex: 2},
		"never captured": {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) {
			c.CapturedAt = c.CapturedAt.AddDate(-2026, 0, 0).Truncate(0)
			c.CapturedAt = protocol.Report{}.Time
		})), want: "checkpoint.capturedAt", wantIndex: 2},
		"a rollback of nobody": {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Rollback = &protocol.RollbackReport{Cause: "Whim"} })), want: "checkpoint.rollback.cause", wantIndex: 2},
		"a rollback to what comes": {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) {
			c.Rollback = &protocol.RollbackReport{Cause: protocol.RollbackByRequest, To: c.Sequence}
		})), want: "checkpoint.rollback.to", wantIndex: 2},
		"negative count":              {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Deleted = -1 })), want: "negative count", wantIndex: 2},
		"too many processes":          {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Processes = 1 << 40 })), want: "checkpoint.processes", wantIndex: 2},
		"unknown trigger":             {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Trigger = "Mood" })), want: "checkpoint.trigger", wantIndex: 2},
		"unknown verdict":             {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Verdict = "valid" })), want: "checkpoint.verdict", wantIndex: 2},
		"unknown action":              {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Action = "" })), want: "checkpoint.action", wantIndex: 2},
		"unknown severity":            {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Severity = "Bad" })), want: "checkpoint.severity", wantIndex: 2},
		"violation without a rule":    {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Violations[0].Rule = "" })), want: "violations[0]", wantIndex: 2},
		"violation without a message": {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Violations[0].Message = "" })), want: "violations[0]", wantIndex: 2},
		"violation without severity":  {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Violations[0].Severity = "" })), want: "violations[0].severity", wantIndex: 2},
		"tree that is none":           {body: encode(t, good, checkpoint(func(c *protocol.CheckpointReport) { c.Tree = strings.Repeat("A", 40) })), want: "checkpoint.tree is not 40", wantIndex: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reports, err := Decode([]byte(test.body))
			var refused *Refusal
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want == "":
			case !errors.As(err, &refused) || !strings.Contains(err.Error(), test.want):
				t.Fatalf("got %v, want something about %q", err, test.want)
			case refused.Report.Sequence != test.wantIndex:
				t.Errorf("it names report %d, want %d", refused.Report.Sequence, test.wantIndex)
			case len(reports) > 1:
				t.Errorf("%d reports are left before the bad one", len(reports))
			}
		})
	}
}

// FuzzDecode: what is accepted can be folded and stored, whatever it is.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(encode(f, reports.New(1, 1, protocol.StatusReport{State: "Idle", Tasks: []protocol.TaskStatus{{Name: "a", State: "Done", ExitCode: new(1)}}}))))
	f.Add([]byte(encode(f, reports.New(1, 1, reports.Taken(1, protocol.Invalid)), reports.New(2, 1, protocol.FinalReport{Outcome: "Stopped"}))))
	f.Add([]byte(encode(f, reports.New(3, 4, protocol.RequestReport{ID: "r", OK: true}))))
	f.Add([]byte(`{"version":1,"reports":[{"epoch":1,"sequence":9223372036854775807,"time":"9999-12-31T23:59:59Z","final":{"outcome":"Stopped"}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		reports, err := Decode(body)
		if err == nil && len(reports) == 0 {
			t.Fatal("accepted, but nothing is in it")
		}
		run := Fold(v1alpha1.RunStatus{}, "f", 2, reports)
		if again := Fold(run, "f", 2, reports); fmt.Sprint(again) != fmt.Sprint(run) && run.Sequence != again.Sequence {
			t.Fatalf("folded twice: %+v, %+v", run, again)
		}
		if _, err := json.Marshal(run); err != nil {
			t.Fatal(err)
		}
		for _, r := range reports {
			if r.Checkpoint == nil {
				continue
			}
			object, err := json.Marshal(Checkpoint(login(), r))
			most := 4096
			if len(r.Checkpoint.Violations) > 0 {
				most = 8192
			}
			if err != nil || len(object) > most {
				t.Fatalf("a Checkpoint of %d bytes, %v", len(object), err)
			}
		}
	})
}
