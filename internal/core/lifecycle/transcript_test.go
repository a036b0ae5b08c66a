// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/locks"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

var update = flag.Bool("update", false, "write what happens into the transcripts")

// TestTranscripts replays what happens to Features over hours. A line of a transcript is a time since the line before
// and something that happens; the lines after it that begin with => say how things stand then, and those with ! which
// events were sent.
func TestTranscripts(t *testing.T) {
	for name, text := range transcripts(t) {
		t.Run(name, func(t *testing.T) {
			got := replay(t, text)
			if *update {
				if err := os.WriteFile(filepath.Join("testdata", name+".txt"), []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(text, got); diff != "" {
				t.Errorf("(-want +got; -update writes it):\n%s", diff)
			}
		})
	}
}

// transcripts are all there are, by name.
func transcripts(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(file), ".txt")] = string(text)
	}
	return texts
}

func replay(t *testing.T, text string) string {
	t.Helper()
	s := newSim()
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "=>"), strings.HasPrefix(line, "  !"):
			continue
		case line == "", strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
			continue
		}
		fmt.Fprintln(&out, line)
		if err := occurrence(line).on(s); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		s.told = nil
		s.settle()
		if s.broken != "" {
			t.Fatalf("%q: %s", line, s.broken)
		}
		fmt.Fprintln(&out, "=>", s.state())
		for _, e := range s.told {
			kind := "Normal"
			if e.Warning {
				kind = "Warning"
			}
			fmt.Fprintf(&out, "  ! %s %s\n", kind, e.Reason)
		}
	}
	return out.String()
}

// occurrence is a line of a transcript: a time since the line before, and what happens then.
type occurrence string

// on lets it happen.
func (o occurrence) on(s *sim) error {
	words := strings.Fields(string(o))
	if len(words) < 2 {
		return fmt.Errorf("want a time and what happens")
	}
	pause, err := time.ParseDuration(words[0])
	if err != nil {
		return fmt.Errorf("want a time first: %w", err)
	}
	s.now = s.now.Add(pause)
	return happen(s, words[1], words[2:])
}

// occurrences are those of a transcript.
func occurrences(text string) []occurrence {
	var list []occurrence
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "=>") && !strings.HasPrefix(line, "!") {
			list = append(list, occurrence(line))
		}
	}
	return list
}

// state is how things stand, for people.
func (s *sim) state() string {
	if s.released {
		return "gone"
	}
	text := s.line()
	m := s.memory
	if m.Failures+m.Lost > 0 {
		text += fmt.Sprintf(" (failures %d, lost %d)", m.Failures, m.Lost)
	}
	for _, r := range m.Requests {
		text += fmt.Sprintf("\n=>   request %s %s: %s", r.ID, r.State, r.Message)
	}
	if c := m.Condition(ConditionLocksHeld); c.Reason != ReasonNoLocks {
		text += fmt.Sprintf("\n=>   locks %v, %s/%s: %s", m.Locks, c.Status, c.Reason, c.Message)
	}
	if c := m.Condition(ConditionAreasDisjoint); c.Status == False {
		text += fmt.Sprintf("\n=>   %s %s: %s", c.Type, c.Reason, c.Message)
	}
	if c := m.Condition(ConditionIsolated); c.Status == False {
		text += fmt.Sprintf("\n=>   %s %s", c.Type, c.Reason)
		if !strings.Contains(text, c.Message) {
			text += ": " + c.Message
		}
	}
	if c := m.Condition(ConditionWithinBudget); c.Reason != ReasonNoBudget {
		text += fmt.Sprintf("\n=>   %s %s/%s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, name := range []string{ConditionAccepted, ConditionStalled, ConditionReconciling, ConditionSupervised} {
		c := m.Condition(name)
		usual := map[string]Status{ConditionAccepted: True, ConditionStalled: False, ConditionReconciling: False, ConditionSupervised: c.Status}
		if c.Status != usual[name] || c.Reason == ReasonModeFallback || c.Reason == ReasonHeartbeatMissing || c.Reason == ReasonSupervisionDegraded {
			text += fmt.Sprintf("\n=>   %s %s/%s", name, c.Status, c.Reason)
		}
	}
	return text
}

// happen lets one thing happen.
func happen(s *sim, what string, args []string) error {
	rest := strings.Join(args, " ")
	s.spec.Generation++
	switch what {
	case "apply", "wait":
		s.spec.Generation--
	case "reports":
		if !s.report(func(r *Run) { tell(r, args, s.now) }) {
			return fmt.Errorf("no pod may report")
		}
	case "final":
		if !s.final(args[0], args[1], strings.Join(args[2:], " ")) {
			return fmt.Errorf("no pod may report")
		}
		s.endPods()
	case "proving": // "proving unit": a gate of the task
		if !s.final(protocol.OutcomeProving, protocol.ReasonProving, fmt.Sprintf("gate %q of task \"login\" must pass on a fresh checkout of the work", args[0])) {
			return fmt.Errorf("no pod may report")
		}
		s.run.Final.Gate, s.run.Final.Task = "task-"+args[0], "login"
		s.endPods()
	case "failed": // in a task that is aborted after too many failures
		n, err := strconv.Atoi(args[0])
		if err != nil || !s.failedTask(n) {
			return fmt.Errorf("no pod may report, or %w", err)
		}
		s.endPods()
	case "work":
		s.work()
	case "final-lingers":
		if !s.final(args[0], args[1], strings.Join(args[2:], " ")) {
			return fmt.Errorf("no pod may report")
		}
	case "checkpoint":
		s.report(func(r *Run) {
			r.Counts.Total++
			r.Checkpoint = &Checkpoint{Name: "login-" + strconv.FormatInt(r.Counts.Total, 10), Verdict: args[0], Message: strings.Join(args[1:], " ")}
			if args[0] == verdictValid {
				r.Counts.Valid, r.LastValidCheckpoint = r.Counts.Valid+1, r.Checkpoint.Name
			} else {
				r.Counts.Invalid++
			}
		})
	case "answers":
		if !s.report(func(r *Run) {
			r.Requests = append(slices.Clone(r.Requests), RequestResult{ID: args[0], State: RequestState(args[1]), Message: strings.Join(args[2:], " "), At: s.now})
		}) {
			return fmt.Errorf("no pod may report")
		}
	case "pod-ends":
		s.endPods()
	case "pod-lost":
		s.losePods()
	case "problem":
		for i := range s.pods {
			s.pods[i].Started = false
			s.pods[i].Problem = &Problem{Reason: args[0], Message: strings.Join(args[1:], " ")}
		}
	case "pod-starts":
		for i := range s.pods {
			s.pods[i].Started, s.pods[i].Problem = true, nil
		}
	case "request":
		s.request(RequestKind(rest))
	default:
		return change(s, what, args)
	}
	return nil
}

func tell(r *Run, args []string, now time.Time) {
	for _, a := range args {
		switch a {
		case "ready":
			r.WorkspaceReady = true
		case "running":
			r.AgentRunning, r.Task = true, "login"
		case "degraded", "nominal":
			r.Problems = nil
			if a == "degraded" {
				r.Problems = []string{"watcher: changes are found by scanning only", "disk: it is full"}
			}
		case "fixed":
			r.Fault = nil
		case "gating":
			r.Gating = "login"
		case "proved":
			r.Gating = ""
		case "asks":
			r.Question, r.QuestionID, r.AskedAt = "Which colour?", "q1", now
		case "guesses":
			r.Question, r.QuestionID, r.AskedAt, r.Guess = "Which colour?", "q1", now, true
		case "hears":
			r.Question, r.QuestionID, r.AskedAt, r.Guess = "", "", time.Time{}, false
		case "warned":
			r.BudgetWarning = "The budget of the Feature is nearly used"
		case "connected", "disconnected":
			r.Connected, r.ConnectionChangedAt = a == "connected", now
		default:
			r.Fault = &Problem{Reason: a, Message: "It is so."}
		}
	}
}

// change is what people and the cluster do to the world around the Feature.
func change(s *sim, what string, args []string) error {
	rest := strings.Join(args, " ")
	switch what {
	case "removes-task":
		run := *s.run
		run.Unlisted, s.run = true, &run
	case "answered":
		s.spec.Answered = append(s.spec.Answered, args[0])
	case "questions":
		timeout, err := time.ParseDuration(args[1])
		if err != nil {
			return fmt.Errorf("want a timeout: %w", err)
		}
		s.spec.Questions = policy.Questions{Asking: policy.Asking(args[0]), Timeout: timeout, ParkAfter: 10 * time.Minute}
	case "planning":
		s.spec.Planning = rest
	case "plan":
		if !s.report(func(r *Run) { r.Plan = &ModelPlan{Milestones: 1, Tasks: 2, Hash: args[0], Approved: len(args) > 1} }) {
			return fmt.Errorf("no pod may report")
		}
	case "approve-plan":
		s.request(RequestApprovePlan)
		s.spec.Requests[len(s.spec.Requests)-1].Hash = rest
	case "suspend":
		s.spec.Suspend = true
	case "resume":
		s.spec.Suspend = false
	case "asks-before-restart":
		s.spec.AskRestart = rest != "no"
	case "mode":
		s.spec.Mode = rest
	case "falls-back":
		s.spec.Mode, s.spec.ModeNotice = "Deterministic", "Runtime worker does not support Interactive mode, falling back to Deterministic."
	case "retries":
		s.spec.Retries, _ = strconv.Atoi(rest)
	case "ephemeral":
		s.spec.Ephemeral = true
	case "refused-request":
		s.spec.Requests = append(s.spec.Requests, Request{ID: args[0], Kind: RequestRollback, Refusal: strings.Join(args[1:], " ")})
	case "require-approval":
		s.spec.RequireApproval = true
	case "policy-requires-approval":
		s.spec.RequireApproval, s.spec.ApprovalBy = true, rest
	case "gates":
		s.require(args...)
	case "task-gates":
		s.gated(args...)
	case "approve":
		s.spec.ApprovedCommit = strings.Repeat(rest, 40)
	case "budget":
		s.spec.Budget = true
	case "deadline":
		s.spec.Deadline, _ = time.ParseDuration(rest)
	case "ttl":
		ttl, err := time.ParseDuration(rest)
		s.spec.TTLAfterFinished = &ttl
		return err
	case "delete":
		s.spec.DeletedAt = s.now
	case "not-acted-on":
		s.spec.NotActedOn = args
	case "refuse":
		s.refusal = &Refusal{Reason: args[0], Message: strings.Join(args[2:], " "), ByUser: args[1] == "by-user"}
	case "accept":
		s.refusal = nil
	case "obstacle":
		s.obstacle = &Refusal{Reason: args[0], Message: strings.Join(args[1:], " ")}
	case "clear":
		s.obstacle = nil
	case "contracts":
		s.wanted = args
	case "locks-fail":
		s.failing = true
	case "overlap":
		s.areas = Areas{Overlap: &Overlap{Who: "Feature " + args[0], Mine: "web/**", Theirs: "web/login/**"}}
	case "waits-for-area":
		s.areas = Areas{Wait: true, Overlap: &Overlap{Who: "Feature " + args[0], Theirs: "web/login/**"}}
	case "area-in-line":
		s.areas = Areas{Wait: true, Overlap: &Overlap{Who: "Feature " + args[0], Theirs: "web/login/**", Before: true, More: true}}
	case "network-opens":
		s.open(rest != "warn")
	case "network-closes":
		s.isolation = Isolation{Enforce: true}
	case "disjoint":
		s.areas = Areas{Ignore: rest == "ignored"}
	case "lease":
		// Of a Feature: of this project, or of another one.
		s.leases.write(args[0], locks.Holder{Namespace: args[1], Name: args[2], UID: args[2]}, s.now)
	case "no-lease":
		delete(s.leases.of, rest)
	case "renewed":
		s.leases.write(rest, s.leases.of[rest].lease.Holder, s.now)
	case "in-line":
		s.leases.waiting = append(s.leases.waiting, locks.Waiter{Holder: locks.Holder{Namespace: "shop", Name: args[1], UID: args[1]}, Priority: 1, Locks: args[:1]})
	case "not-in-line":
		s.leases.waiting = nil
	case "full":
		s.capacity = Capacity{Limit: 2, Running: 2}
	case "room":
		s.capacity = Capacity{Limit: 2, Running: 1}
	case "all-full":
		s.capacity = Capacity{Limit: 2, Running: 1, Total: 7, RunningTotal: 5, AheadTotal: 2}
	case "all-room":
		s.capacity = Capacity{Limit: 2, Running: 1, Total: 7, RunningTotal: 5, AheadTotal: 1}
	default:
		return fmt.Errorf("nothing is called %s", what)
	}
	return nil
}
