// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/runstatus"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/reports"
)

func TestReportsBecomeObjects(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	batch := []protocol.Report{
		reports.New(1, 1, protocol.StatusReport{State: protocol.StateActive, WorkspaceReady: true, AgentRunning: true}),
		reports.New(1, 2, reports.Taken(1, protocol.Valid)), reports.New(1, 3, reports.Taken(2, protocol.Invalid)),
		reports.New(1, 4, protocol.FinalReport{Outcome: protocol.OutcomeBlocked, Reason: protocol.ReasonCheckpointInvalid, Message: "undo it"}),
	}
	var ack protocol.ReportAck
	r.post(t, login.Token, batch...).decode(t, &ack)
	if ack != (protocol.ReportAck{Epoch: 1, Sequence: 4}) {
		t.Errorf("acknowledged %+v", ack)
	}
	after := read(t, login.Feature)
	want := runstatus.Fold(v1alpha1.RunStatus{}, "login", 1, batch)
	if diff := cmp.Diff(want, runOf(after)); diff != "" {
		t.Errorf("status.run (-want +got)\n%s", diff)
	}
	// Nothing else of the status is intake's.
	if after.Status.Attempt != 1 || after.Status.Job == nil || after.Status.Job.PodUID != string(login.Pod.UID) {
		t.Errorf("the controller's part is not as it was: %+v", after.Status)
	}
	objects := checkpoints(t, login.Feature)
	if len(objects) != 2 {
		t.Fatalf("%d Checkpoints", len(objects))
	}
	for i, object := range objects {
		want := runstatus.Checkpoint(login.Feature, batch[i+1])
		if diff := cmp.Diff(want.Spec, object.Spec); diff != "" {
			t.Errorf("%s (-want +got)\n%s", object.Name, diff)
		}
		if object.Labels[v1alpha1.LabelVerdict] != string(want.Spec.Verdict) || object.OwnerReferences[0].UID != login.Feature.UID {
			t.Errorf("%s is labelled %v and owned by %v", object.Name, object.Labels, object.OwnerReferences)
		}
	}
	// The same again says the same and writes nothing.
	r.post(t, login.Token, batch...).decode(t, &ack)
	if ack != (protocol.ReportAck{Epoch: 1, Sequence: 4}) {
		t.Errorf("acknowledged again %+v", ack)
	}
	if again := read(t, login.Feature); again.ResourceVersion != after.ResourceVersion {
		t.Error("a repeated batch was written again")
	}
}

// TestAReportSaysLess: an agent that begins anew has read no file and called no tool. What was said of the one before is gone.
func TestAReportSaysLess(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	status := func(c *protocol.Conversation) protocol.StatusReport {
		return protocol.StatusReport{State: protocol.StateActive, WorkspaceReady: true, AgentRunning: true, Conversation: c}
	}
	for i, c := range []*protocol.Conversation{
		{Turn: 3, Tool: "Read", Iterations: 2, FilesRead: 1, TurnsSinceProgress: 1, ContextTurns: 9, Model: "large", ContextTokens: 10, Window: 100, ToolFailures: 1, ToolFailuresInARow: 1, FixedInTime: 2},
		{Turn: 4}, {Turn: 5, Tool: "Read", Iterations: 1},
	} {
		var ack protocol.ReportAck
		r.post(t, login.Token, reports.New(1, int64(i+1), status(c))).decode(t, &ack)
		got := read(t, login.Feature).Status.Run
		if got.Turn != c.Turn || (got.Report.Environment != nil) != (c.Model != "") || (got.Report.Activity != nil) != (c.Tool != "") || got.Report.FixedInTime != c.FixedInTime {
			t.Errorf("%+v is reported as turn %d, %+v", c, got.Turn, got.Report)
		}
	}
}

// TestUsageIsForgotten: a watchdog that knows of no usage any more, because the gateway's ledger is a new one, is no reason to refuse a status.
func TestUsageIsForgotten(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	for i, u := range []protocol.Usage{{Calls: 1, InputTokens: 2}, {}, {Calls: 3}} {
		var ack protocol.ReportAck
		r.post(t, login.Token, reports.New(1, int64(i+1), protocol.StatusReport{State: protocol.StateActive, Usage: &u})).decode(t, &ack)
		got := read(t, login.Feature).Status.Run
		if got.Sequence != int64(i+1) || (got.Usage != nil) != (u.Calls > 0) {
			t.Errorf("%+v is reported as %+v of report %d", u, got.Usage, got.Sequence)
		}
	}
}

// TestExactlyOnceOnTwoReplicas: a watchdog whose answers get lost sends its spool to both replicas, in pieces that
// overlap, at the same time, while the controller writes its part of the status.
func TestExactlyOnceOnTwoReplicas(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	replicas := []*replica{newReplica(t, "a", clock), newReplica(t, "b", clock)}
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	var spool []protocol.Report
	for n := int64(1); n <= 40; n++ {
		switch n % 4 {
		case 0:
			spool = append(spool, reports.New(1, n, protocol.StatusReport{State: protocol.StateActive, Task: fmt.Sprint("task ", n)}))
		case 1:
			spool = append(spool, reports.New(1, n, protocol.RequestReport{ID: fmt.Sprint("r", n), OK: true}))
		default:
			spool = append(spool, reports.New(1, n, reports.Taken(int64(len(spool)-int(n/4)-int((n+2)/4)+1), []protocol.Verdict{protocol.Valid, protocol.Invalid}[n%2])))
		}
	}
	var senders sync.WaitGroup
	for sender := range 4 {
		r := replicas[sender%2]
		random := rand.New(rand.NewPCG(uint64(sender), 7))
		senders.Go(func() {
			for sent := 0; sent < len(spool); {
				from := max(0, sent-random.IntN(6))
				to := min(len(spool), sent+1+random.IntN(6))
				got := r.post(t, login.Token, spool[from:to]...)
				if got.code != http.StatusOK {
					t.Errorf("sender %d: %d %s", sender, got.code, got.body)
					return
				}
				sent = to
			}
		})
	}
	senders.Go(func() {
		for range 10 {
			login.Pin(t) // the controller's part is written as well
		}
	})
	senders.Wait()
	if diff := cmp.Diff(runstatus.Fold(v1alpha1.RunStatus{}, "login", 1, spool), run(t, login.Feature)); diff != "" {
		t.Errorf("status.run (-once +got)\n%s", diff)
	}
	if got := len(checkpoints(t, login.Feature)); got != 20 {
		t.Errorf("%d Checkpoints of 20", got)
	}
	var want []string
	for _, r := range spool {
		want = append(want, fmt.Sprintf("%d/%02d", r.Epoch, r.Sequence))
	}
	wantObserved(t, replicas, want...)
}

// TestADeathBetweenTheWrites: the Checkpoint exists, but nobody has counted it. The watchdog, which has no answer, sends
// the same again, and it is counted once.
func TestADeathBetweenTheWrites(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	batch := []protocol.Report{reports.New(1, 1, reports.Taken(1, protocol.Valid)), reports.New(1, 2, reports.Taken(2, protocol.Invalid))}
	r.failing.Store(1)
	if got := r.post(t, login.Token, batch...); got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("answered %d: %s", got.code, got.body)
	}
	if n, status := len(checkpoints(t, login.Feature)), run(t, login.Feature); n != 2 || status.CheckpointSequence != 0 {
		t.Fatalf("%d Checkpoints, %+v: it did not die in between", n, status)
	}
	if got := r.post(t, login.Token, batch...); got.code != http.StatusOK {
		t.Errorf("answered %d: %s", got.code, got.body)
	}
	if diff := cmp.Diff(runstatus.Fold(v1alpha1.RunStatus{}, "login", 1, batch), run(t, login.Feature)); diff != "" {
		t.Errorf("status.run (-once +got)\n%s", diff)
	}
	if n := len(checkpoints(t, login.Feature)); n != 2 {
		t.Errorf("%d Checkpoints", n)
	}
	wantObserved(t, []*replica{r}, "1/01", "1/02")
}

// TestAFailedCheckpointIsTold in an Event and counted once, and the record goes on.
func TestAFailedCheckpointIsTold(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	failed := reports.New(1, 1, protocol.CheckpointFailure{Trigger: protocol.TriggerChanges, Reason: protocol.ReasonVolumeFull, Message: "write pack: no space\x1b left."})
	for range 2 { // the answer to the first was lost
		if got := r.post(t, login.Token, failed, reports.New(1, 2, reports.Taken(1, protocol.Valid))); got.code != http.StatusOK {
			t.Fatalf("answered %d: %s", got.code, got.body)
		}
	}
	if status := run(t, login.Feature); status.Sequence != 2 || status.CheckpointSequence != 1 {
		t.Errorf("recorded %+v", status)
	}
	const want = "Warning CheckpointFailed A checkpoint (trigger Changes) failed with VolumeFull: write pack: no space\uFFFD left. The agent's work is still in the workspace, and the next checkpoint captures it."
	if event := <-r.recorder.Events; event != want {
		t.Errorf("the event is %q", event)
	}
	select {
	case event := <-r.recorder.Events:
		t.Errorf("and %q", event)
	default:
	}
}

// TestEscalatedDirectivesAreTold in an Event each, once for each reason: a user decides about them. Those of users are not.
func TestEscalatedDirectivesAreTold(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	status := func(state, message string) protocol.StatusReport {
		d := protocol.DirectiveStatus{ID: "design/1a2b3c4d", Source: protocol.SourceDesign, State: state, Type: protocol.DirectiveFunctional, Priority: protocol.PriorityNormal, Description: "Lock the store (store.go:7).", Message: message}
		mine := protocol.DirectiveStatus{ID: "mine", Source: protocol.SourcePerson, State: state, Message: message}
		return protocol.StatusReport{State: protocol.StateActive, Directives: []protocol.DirectiveStatus{d, mine}}
	}
	list := []protocol.StatusReport{status("Active", "told"), status("Escalated", "it cannot be done"), status("Escalated", "it cannot be done"), status("Active", "told again"), status("Escalated", "it is still there")}
	for i, s := range list {
		for range 2 { // the answer to the first was lost
			if got := r.post(t, login.Token, reports.New(1, int64(i+1), s)); got.code != http.StatusOK {
				t.Fatalf("answered %d: %s", got.code, got.body)
			}
		}
	}
	for _, want := range []string{"it cannot be done", "it is still there"} {
		if event := <-r.recorder.Events; event != "Warning DirectiveEscalated Design directive design/1a2b3c4d (Lock the store (store.go:7)) is Escalated: "+want {
			t.Errorf("the event is %q, want %q", event, want)
		}
	}
	select {
	case event := <-r.recorder.Events:
		t.Errorf("and %q", event)
	default:
	}
}

// TestKnowledgeThatIsLeftOutIsTold in an Event.
func TestKnowledgeThatIsLeftOutIsTold(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	left := reports.New(1, 1, protocol.KnowledgeReport{LeftOut: []string{"docs/knowledge/lessons/a.md does not keep to the format: line 1:\x1b no", "docs/knowledge/lessons/b.md does not keep to the format: no rules"}, More: 3})
	for range 2 { // the answer to the first was lost
		if got := r.post(t, login.Token, left); got.code != http.StatusOK {
			t.Fatalf("answered %d: %s", got.code, got.body)
		}
	}
	const want = "Warning KnowledgeLeftOut Agents do not get these documents and 3 more: docs/knowledge/lessons/a.md does not keep to the format: line 1:\uFFFD no; docs/knowledge/lessons/b.md does not keep to the format: no rules."
	if event := <-r.recorder.Events; event != want {
		t.Errorf("the event is %q", event)
	}
	select {
	case event := <-r.recorder.Events:
		t.Errorf("and %q", event)
	default:
	}
}

// TestRObsReviewsAreTold in an Event each, once, and stand in the status.
func TestRObsReviewsAreTold(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	status := func(list ...protocol.ReviewStatus) protocol.StatusReport {
		return protocol.StatusReport{State: protocol.StateActive, Reviews: list}
	}
	style := protocol.ReviewStatus{Reviewer: protocol.SourceCodeStyle, Task: "login/form", Outcome: protocol.ReviewMinorDrift, Directives: 1, Summary: "Code style review: 1 inconsistency, 1 cleanup directive", Time: reports.Noon}
	design := protocol.ReviewStatus{Reviewer: protocol.SourceDesign, Task: "login/form", Outcome: protocol.ReviewSkipped, Summary: "the model is away", Time: reports.Noon}
	assessor := protocol.ReviewStatus{Reviewer: protocol.SourceAssessor, Task: "login/form", Outcome: protocol.ReviewMajorDivergence, Summary: "Assessor review: the work diverges from the request or the plan. It is another app.", Time: reports.Noon}
	for range 2 { // the answer to the first was lost
		if got := r.post(t, login.Token, reports.New(1, 1, status(style)), reports.New(1, 2, status(style, design, assessor))); got.code != http.StatusOK {
			t.Fatalf("answered %d: %s", got.code, got.body)
		}
	}
	if got := r.post(t, login.Token, reports.New(1, 3, status(style, design, assessor))); got.code != http.StatusOK {
		t.Fatalf("answered %d: %s", got.code, got.body)
	}
	if got := run(t, login.Feature); len(got.Reviews) != 3 || got.Reviews[0].Reviewer != protocol.SourceCodeStyle {
		t.Errorf("recorded %+v", got.Reviews)
	}
	for _, want := range []string{
		"Normal Reviewed After task login/form: Code style review: 1 inconsistency, 1 cleanup directive",
		"Warning ReviewSkipped After task login/form: Design review was skipped: the model is away",
		"Warning Reviewed After task login/form: Assessor review: the work diverges from the request or the plan. It is another app.",
	} {
		if event := <-r.recorder.Events; event != want {
			t.Errorf("the event is %q, want %q", event, want)
		}
	}
	select {
	case event := <-r.recorder.Events:
		t.Errorf("and %q", event)
	default:
	}
}

// TestARollbackThatWasNotKept: a manager, or a definition of Checkpoints, from before rollbacks were told of has made the Checkpoint and died.
func TestARollbackThatWasNotKept(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	back := reports.Taken(1, protocol.Valid)
	r.failing.Store(1)
	if got := r.post(t, login.Token, reports.New(1, 1, back)); got.code != http.StatusServiceUnavailable {
		t.Errorf("answered %d: %s", got.code, got.body)
	}
	back.Rollback = &protocol.RollbackReport{Cause: protocol.RollbackByRequest, Reason: "request back"}
	if got := r.post(t, login.Token, reports.New(1, 1, back)); got.code != http.StatusOK {
		t.Errorf("answered %d: %s", got.code, got.body)
	}
	if status := run(t, login.Feature); status.CheckpointSequence != 1 || status.Rollbacks == nil || status.Rollbacks.Request != 1 {
		t.Errorf("recorded %+v", status)
	}
}

func TestAContradictionIsRefused(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	if got := r.post(t, login.Token, reports.New(1, 1, reports.Taken(1, protocol.Valid))); got.code != http.StatusOK {
		t.Fatalf("answered %d: %s", got.code, got.body)
	}
	lie := reports.Taken(1, protocol.Valid)
	lie.Tree = strings.Repeat("f", 40)
	got := r.post(t, login.Token, reports.New(1, 2, protocol.StatusReport{State: protocol.StateIdle}), reports.New(1, 3, lie), reports.New(1, 4, reports.Taken(2, protocol.Valid)))
	var p protocol.Problem
	if err := json.Unmarshal(got.body, &p); err != nil || got.code != http.StatusConflict || p.Epoch != 1 || p.Sequence != 3 || !strings.Contains(p.Error, "login-1 exists with another content") {
		t.Errorf("answered %d: %s", got.code, got.body)
	}
	if status := run(t, login.Feature); status.Sequence != 2 || status.Report.State != protocol.StateIdle || status.CheckpointSequence != 1 {
		t.Errorf("what came before the contradiction is not stored, or what came after is: %+v", status)
	}
	if object := checkpoints(t, login.Feature)[0]; object.Spec.Tree == lie.Tree {
		t.Error("a record was overwritten")
	}
	select {
	case event := <-r.recorder.Events:
		if !strings.HasPrefix(event, "Warning CheckpointConflict") {
			t.Errorf("the event is %q", event)
		}
	default:
		t.Error("no event")
	}
}

func TestBadBatches(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	bad := reports.Taken(1, protocol.Valid)
	bad.Trigger = "Mood"
	got := r.post(t, login.Token, reports.New(1, 1, protocol.StatusReport{State: protocol.StateIdle}), reports.New(1, 2, bad), reports.New(1, 3, reports.Taken(2, protocol.Valid)))
	var p protocol.Problem
	if err := json.Unmarshal(got.body, &p); err != nil || got.code != http.StatusBadRequest || p.Sequence != 2 || !strings.Contains(p.Error, "checkpoint.trigger") {
		t.Errorf("answered %d: %s", got.code, got.body)
	}
	if status := run(t, login.Feature); status.Sequence != 1 {
		t.Errorf("what came before the bad report is not stored: %+v", status)
	}
	if got := r.postBody(t, login.Token, []byte("{")); got.code != http.StatusBadRequest {
		t.Errorf("no JSON is answered %d", got.code)
	}
	if got := r.postBody(t, login.Token, make([]byte, protocol.MaxReportBytes+1)); got.code != http.StatusRequestEntityTooLarge {
		t.Errorf("too much is answered %d", got.code)
	}
	if got := r.post(t, login.Token, reports.New(2, 1, protocol.StatusReport{State: protocol.StateIdle})); got.code != http.StatusTooEarly {
		t.Errorf("an attempt that does not exist yet is answered %d: %s", got.code, got.body)
	}
}

// TestNothingIsLostWithAPod: what an attempt could not report any more is reported by the next, from the same spool.
func TestNothingIsLostWithAPod(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	first := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	if got := r.post(t, first.Token, reports.New(1, 1, reports.Taken(1, protocol.Valid))); got.code != http.StatusOK {
		t.Fatalf("answered %d: %s", got.code, got.body)
	}
	second := attempt.Start(t, env, read(t, first.Feature))
	if got := r.post(t, first.Token, reports.New(1, 2, reports.Taken(2, protocol.Valid))); got.code != http.StatusForbidden {
		t.Errorf("the pod of the first attempt is still heard: %d", got.code)
	}
	spool := []protocol.Report{
		reports.New(1, 1, reports.Taken(1, protocol.Valid)), reports.New(1, 2, reports.Taken(2, protocol.Valid)), reports.New(1, 3, protocol.FinalReport{Outcome: protocol.OutcomeDelivered}),
		reports.New(2, 1, protocol.StatusReport{State: protocol.StatePreparing}),
	}
	var ack protocol.ReportAck
	r.post(t, second.Token, spool...).decode(t, &ack)
	if ack != (protocol.ReportAck{Epoch: 2, Sequence: 1}) {
		t.Errorf("acknowledged %+v", ack)
	}
	status := run(t, first.Feature)
	if status.Epoch != 2 || status.CheckpointSequence != 2 || status.Checkpoints.Valid != 2 || status.Final != nil {
		t.Errorf("the run is %+v", status)
	}
	names := []string{}
	for _, object := range checkpoints(t, first.Feature) {
		names = append(names, fmt.Sprintf("%s of attempt %d", object.Name, object.Spec.Attempt))
	}
	if want := []string{"login-1 of attempt 1", "login-2 of attempt 1"}; !slices.Equal(names, want) {
		t.Errorf("there are %q", names)
	}
	wantObserved(t, []*replica{r}, "1/01", "1/02", "2/01")
}

// TestAProjectThatIsDeletedIsNotKept by the last reports of its pods, of which no Checkpoint can be made any more.
func TestAProjectThatIsDeletedIsNotKept(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	login := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), "login"))
	if err := env.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: login.Feature.Namespace}}); err != nil {
		t.Fatal(err)
	}
	final := protocol.FinalReport{Outcome: protocol.OutcomeStopped}
	if got := r.post(t, login.Token, reports.New(1, 1, reports.Taken(1, protocol.Valid)), reports.New(1, 2, final)); got.code != http.StatusOK {
		t.Errorf("answered %d: %s", got.code, got.body)
	}
	if status := run(t, login.Feature); status.Final == nil {
		t.Errorf("the end is not known: %+v", status)
	}
	if n := len(checkpoints(t, login.Feature)); n != 0 {
		t.Errorf("%d Checkpoints", n)
	}
}

// TestStoredCheckpointsAreSmall: with everything that the API server adds.
func TestStoredCheckpointsAreSmall(t *testing.T) {
	r := newReplica(t, "a", clocktesting.NewFakeClock(time.Now()))
	long := attempt.Start(t, env, attempt.Feature(t, env, env.Project(t), strings.Repeat("n", 52)))
	c := reports.Taken(1<<40, protocol.Invalid)
	c.Commit, c.Base, c.DeliveryCommit, c.PolicyHash = c.Tree, c.Tree, c.Tree, strings.Repeat("a", 64)
	c.Task, c.Audit, c.Frozen, c.FrozenFor, c.Processes = strings.Repeat("t", 200), true, true, time.Hour, 1<<20
	c.Added, c.Modified, c.Deleted, c.TypeChanged, c.LinesAdded, c.LinesDeleted, c.ViolationCount = 1<<40, 1<<40, 1<<40, 1<<40, 1<<40, 1<<40, 1<<40
	c.CaptureTime, c.SyncTime, c.JudgeTime, c.ActTime = time.Hour, time.Hour, time.Hour, time.Hour
	c.UnsettledReason, c.Settled = strings.Repeat("é<", 500), false
	c.Violations, c.Transient = nil, &protocol.Transient{More: 1 << 40, Incomplete: true}
	for range 20 {
		c.Transient.Names = append(c.Transient.Names, strings.Repeat("<\u202e/", 300))
		c.SamplePaths = append(c.SamplePaths, strings.Repeat("<\u202e/", 300))
		c.Violations = append(c.Violations, protocol.Violation{
			Rule: strings.Repeat("r", 90), Path: strings.Repeat("é/<", 300), Severity: policy.Critical, Message: strings.Repeat("<é ", 300), Suggestion: strings.Repeat("& ", 300),
		})
	}
	without := c
	without.Sequence, without.Violations, without.ViolationCount, without.Verdict = c.Sequence+1, nil, 0, protocol.Valid
	if got := r.post(t, long.Token, reports.New(1, 1, c), reports.New(1, 2, without)); got.code != http.StatusOK {
		t.Fatalf("answered %d: %s", got.code, got.body)
	}
	for _, object := range checkpoints(t, long.Feature) {
		object.APIVersion, object.Kind = v1alpha1.GroupVersion.String(), "Checkpoint"
		stored, err := json.Marshal(object)
		limit := 4 << 10
		if len(object.Spec.Violations) > 0 {
			limit = 8 << 10 // they stay readable
		}
		if err != nil || len(stored) > limit {
			t.Errorf("%d bytes, %v:\n%s", len(stored), err, stored)
		}
		t.Logf("the largest Checkpoint has %d bytes", len(stored))
	}
}
