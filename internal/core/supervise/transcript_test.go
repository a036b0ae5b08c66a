// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

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

	"github.com/tidewaiter/tidewaiter/internal/core/gates"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

var update = flag.Bool("update", false, "write the answers into the transcripts")

// TestTranscripts replays testdata/*.txt. A line "12s exited 0" is an event, "12s => checkpoint Final" is what Next
// wants then; the first lines set the scene. Between two events the clock stops wherever a Wait asked for it.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want), got); diff != "" && !*update {
				t.Errorf("transcript (-want +got), -update accepts it:\n%s", diff)
			}
		})
	}
}

type player struct {
	t *testing.T
	// results of gates.
	results []gates.Result
	state   supervise.State
	orders  protocol.Orders
	// made is the newest plan of a model, and asked whether there was a question for one.
	made  supervise.Made
	asked bool
	last  supervise.Action
	wake  time.Time
	out   strings.Builder
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func replay(t *testing.T, transcript string) string {
	p := &player{t: t, orders: protocol.Orders{Delivery: protocol.Delivery{Push: true, Branch: "tidewaiter/login"}}}
	p.state.Checkpoints.Last = epoch
	p.state.Delivery.Head = "base"
	for line := range strings.Lines(transcript) {
		line = strings.TrimSuffix(line, "\n")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0, strings.HasPrefix(line, "#"):
			p.out.WriteString(line + "\n")
		case len(fields) > 1 && fields[1] == "=>":
		case p.scene(fields):
			p.out.WriteString(line + "\n")
		default:
			at, err := time.ParseDuration(fields[0])
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			p.advance(epoch.Add(at))
			p.out.WriteString(line + "\n")
			p.event(epoch.Add(at), fields[1], fields[2:])
			p.decide(epoch.Add(at))
		}
	}
	p.advance(epoch.Add(24 * time.Hour))
	return p.out.String()
}

// scene reads a line that describes the start.
func (p *player) scene(fields []string) bool {
	switch fields[0] {
	case "rules":
		for _, f := range fields[1:] {
			key, value, _ := strings.Cut(f, "=")
			d, _ := time.ParseDuration(value)
			n, _ := strconv.Atoi(value)
			switch key {
			case "interval":
				p.state.Rules.Interval = d
			case "min":
				p.state.Rules.MinInterval = d
			case "changes":
				p.state.Rules.MaxChanges = n
			case "corrections":
				p.state.Rules.MaxCorrections = n
			case "failures":
				p.state.Rules.MaxFailures = n
			case "park":
				p.state.Rules.ParkAfter = d
			case "retries":
				p.orders.MaxRetries = n
			}
		}
	case "tasks", "continuing": // if one of the latter cannot be done, the work continues
		for _, name := range fields[1:] {
			t := protocol.Task{Name: name, Continue: fields[0] == "continuing"}
			for _, g := range p.orders.Gates {
				t.Gates = append(t.Gates, g.Name)
			}
			p.orders.Tasks = append(p.orders.Tasks, t)
		}
	case "failed": // in so many earlier attempts
		n, _ := strconv.Atoi(fields[2])
		p.state.Tasks = append(p.state.Tasks, supervise.Task{Name: fields[1], Phase: supervise.Pending, Failures: n})
	case "seal":
		p.state.Seal = true
		for _, name := range fields[1:] {
			p.state.Tasks = append(p.state.Tasks, supervise.Task{Name: name, Phase: supervise.Done})
		}
		p.state.Delivery.Head, p.state.Delivery.Changed = "c1", len(fields) > 1
	case "earlier": // "earlier OUTCOME REASON [TASK]", where the task is the one of a gate that is to run
		p.state.Earlier = &protocol.FinalReport{Outcome: fields[1], Reason: fields[2], Message: "as before"}
		if len(fields) > 3 {
			p.state.Earlier.Task = fields[3]
		}
	case "pods": // for gates of tasks
		p.orders.GatePods = true
	case "proved-before-delivery":
		p.orders.Delivery.Gates = p.orders.Gates
	case "gating": // "gating form 1": an earlier attempt has closed the task, which was corrected once
		p.state.Delivery.Head, p.state.Delivery.Changed = "c1", true
		t := supervise.Task{Name: fields[1], Phase: supervise.Gating, Begun: true, Tree: "c1", InPods: true}
		t.Corrections, _ = strconv.Atoi(fields[2])
		p.state.Tasks = append(p.state.Tasks, t)
	case "result": // "result unit Failed 2": of a gate of the task at hand
		t := &p.state.Tasks[len(p.state.Tasks)-1]
		r := gates.Result{Gate: fields[1], Definition: gates.Sum(p.gate(fields[1])), Tree: t.Tree, State: gates.State(fields[2])}
		r.ExitCode, _ = strconv.Atoi(fields[3])
		t.Results = append(t.Results, r)
	case "gate-pod": // for a gate of the task at hand
		p.state.Seal, p.state.ForGate = true, gates.Sum(p.gate(fields[1]))
	case "gates":
		for _, name := range fields[1:] {
			p.orders.Gates = append(p.orders.Gates, protocol.Gate{Name: name, Command: []string{"make", name}})
		}
	case "sessions":
		p.state.Sessions = true
	case "planning":
		p.orders.Planning = fields[1]
	case "made": // "made abc approved": an earlier attempt has a plan
		p.asked, p.made = true, supervise.Made{Hash: fields[1], Approved: len(fields) > 2}
	case "parkable":
		p.orders.MayPark = true
	case "parked": // by an earlier attempt, and asked at the beginning
		p.state.Tasks = append(p.state.Tasks, supervise.Task{Name: fields[1], Phase: supervise.Pending, Parked: &protocol.Question{ID: fields[2], Text: "Which one?", At: epoch}})
	case "unseen":
		p.state.Checkpoints.Unseen = true
	case "approval":
		p.orders.Delivery.RequireApproval = true
	case "keep":
		p.orders.Delivery.Push = false
	default:
		return false
	}
	return true
}

// gate with a name that the orders list.
func (p *player) gate(name string) protocol.Gate {
	i := slices.IndexFunc(p.orders.Gates, func(g protocol.Gate) bool { return g.Name == name })
	return p.orders.Gates[i]
}

// advance lets the time pass until a moment, stopping wherever something was due.
func (p *player) advance(until time.Time) {
	for !p.wake.IsZero() && p.wake.Before(until) {
		p.decide(p.wake)
	}
}

func (p *player) decide(now time.Time) {
	seconds := strconv.FormatFloat(now.Sub(epoch).Seconds(), 'g', -1, 64)
	for range 10 {
		if m, over := p.state.Settled(); over {
			p.state = p.state.Apply(supervise.Settled{}, now)
			fmt.Fprintf(&p.out, "%ss => %s %s is settled: %v\n", seconds, m.Rung, m.ID, m.Done)
		}
		a := supervise.Next(p.state, now)
		p.state = p.state.Begin(a)
		if a.Kind == supervise.Wait {
			p.wake = a.Until
			if !p.wake.IsZero() && !p.wake.After(now) {
				p.t.Fatalf("wait until %v at %v: time would stand still", p.wake.Sub(epoch), now.Sub(epoch))
			}
			return
		}
		p.last = a
		fmt.Fprintf(&p.out, "%ss => %s\n", seconds, p.describe(a))
	}
	p.t.Fatal("more than ten acts at once")
}

// due are the names of reviewers among words.
func due(words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "critical" || word == "diverged" })
}

func divergence(n string, last bool) *supervise.Divergence {
	return &supervise.Divergence{Request: protocol.AssessorRequests + n, Reason: "It is another app.", Last: last}
}

func (p *player) describe(a supervise.Action) string {
	words := []string{string(a.Kind)}
	switch a.Kind {
	case supervise.Start:
		words = append(words, a.Task)
		if t, _ := p.state.Task(a.Task); t.Correction != "" {
			words = append(words, "corrected:", strings.ReplaceAll(strings.TrimSpace(t.Correction), "\n", "/"))
		}
	case supervise.Gate:
		words = append(words, a.Gate.Name, "of", a.Task)
	case supervise.Drop:
		words = append(words, a.Task)
	case supervise.Consult:
		words = append(words, a.Reviewer)
	case supervise.Plan, supervise.ApprovePlan:
		words = append(words, a.Request.ID)
	case supervise.Abort:
		words = append(words, a.Task, a.Reason+":", a.Message)
	case supervise.Checkpoint:
		words = append(words, a.Trigger)
		if a.Aborts {
			words = append(words, "aborts", a.Task)
		}
		if a.Closes {
			words = append(words, "closes", a.Task)
		}
		if a.Hold {
			words = append(words, "held still")
		}
		if len(a.Requests) > 0 {
			words = append(words, "for", strings.Join(a.Requests, ","))
		}
	case supervise.Rollback:
		words = append(words, a.Request.ID, a.Request.Rollback.Kind)
		if a.Aborts {
			words = append(words, "aborts", a.Task)
		}
	case supervise.Answer:
		words = append(words, a.Answer.ID, strconv.FormatBool(a.Answer.OK)+":", a.Answer.Message)
	case supervise.Finish:
		words = append(words, a.Final.Outcome+"/"+a.Final.Reason+":", a.Final.Message)
		if a.Final.TaskFailures > 0 {
			words = append(words, fmt.Sprintf("(failures in its task: %d)", a.Final.TaskFailures))
		}
		for _, g := range p.orders.Gates {
			if a.Final.Task != "" && gates.Sum(g) == a.Final.Gate {
				words = append(words, fmt.Sprintf("(next: %s of %s)", g.Name, a.Final.Task))
			}
		}
		if a.EndFirst {
			words = append(words, "(container ended first)")
		}
	}
	return strings.Join(words, " ")
}

func (p *player) event(now time.Time, name string, args []string) {
	e := p.parse(name, args)
	p.state = p.state.Apply(e, now)
	if name == "consulted" { // "consulted Design critical diverged": that one is still due, a Critical directive is open, and the work diverges
		b := supervise.Breakpoint{Due: due(args), Critical: slices.Contains(args, "critical")}
		if slices.Contains(args, "diverged") {
			b.Diverged = divergence("1", false)
		}
		p.state = p.state.Apply(b, now)
	}
}

func (p *player) parse(name string, args []string) supervise.Event {
	arg := strings.Join(args, " ")
	number := func() int { n, _ := strconv.Atoi(args[0]); return n }
	has := func(word string) bool { return slices.Contains(args, word) }
	switch name {
	case "ordered":
		return p.ordered(args)
	case "connected":
		e := supervise.Connected{Running: has("running"), Frozen: has("frozen"), Leftovers: has("leftovers")}
		if has("exited") {
			e.Exited = &protocol.RunnerExited{}
		}
		return e
	case "disconnected":
		return supervise.Disconnected{}
	case "terminated":
		return supervise.Terminated{}
	case "started":
		return supervise.Started{Rules: p.state.Rules}
	case "not-started":
		return supervise.NotStarted{Message: arg}
	case "changed":
		return supervise.Changed{Paths: number()}
	case "exited":
		return supervise.AgentExited{Code: number()}
	case "failed": // because of its model calls
		return supervise.AgentExited{Code: number(), Failure: &protocol.Failure{}}
	case "killed":
		return supervise.Killed{}
	case "resisted":
		return supervise.Resisted{Message: arg}
	case "aborted":
		return supervise.CalledOff{}
	case "due": // "due CodeStyle Design": reviewers, between two tasks
		return supervise.Breakpoint{Due: args}
	case "diverged": // "diverged 1 last": the assessor finds that the work diverges, and has had all its plans made
		return supervise.Breakpoint{Diverged: divergence(args[0], has("last"))}
	case "polish": // after the last task, directives of reviewers are open
		return supervise.Breakpoint{Polish: true}
	case "critical": // a Critical directive of a reviewer is open
		return supervise.Breakpoint{Critical: true}
	case "directed":
		return supervise.Directed{Task: args[0]}
	case "consulted":
		return supervise.Consulted{}
	case "polished":
		return supervise.Polished{Task: args[0]}
	case "frozen":
		return supervise.FrozenNow{}
	case "thawed":
		return supervise.ThawedNow{}
	case "allowed":
		return supervise.Allowed{Allowance: protocol.Allowance{Exceeded: arg}}
	case "slipped":
		return supervise.Slipped{}
	case "taken":
		return p.taken(args[0], args[1:])
	case "missed", "missed-unbegun":
		return supervise.Missed{Action: p.last, Unbegun: name != "missed", Fault: protocol.Fault{Reason: protocol.ReasonCheckpointFailed, Message: arg}}
	case "answered":
		return supervise.Answered{Answer: p.last.Answer}
	case "went-back":
		return supervise.RolledBack{ID: p.last.Request.ID, Went: true, Head: args[0], Changed: args[0] != "base"}
	case "refused-to":
		return supervise.RolledBack{ID: p.last.Request.ID, Refusal: arg}
	case "given-up":
		return supervise.GivenUp{Task: p.last.Task, ID: "steering/abort/1/" + args[0]}
	case "released":
		return supervise.Released{}
	case "steered":
		return p.steered(args)
	case "reviewed":
		return supervise.Reviewed{PolicyHash: p.state.PolicyHash, Objection: arg}
	case "pushed":
		return supervise.Pushed{Commit: p.state.Delivery.Head}
	case "refused":
		return supervise.Refused{Fault: protocol.Fault{Reason: protocol.ReasonPushConflict, Message: arg}}
	case "overtaken":
		return supervise.Refused{Fault: protocol.Fault{Reason: protocol.ReasonPushConflict, Message: arg}, Overtaken: true}
	case "undelivered":
		return supervise.Undelivered{Fault: protocol.Fault{Reason: protocol.ReasonRepositoryUnreachable, Message: arg}}
	case "tools":
		return p.tools(args)
	case "planned": // "planned abc page/form,page/save": a plan and its tasks. Orders with them follow.
		p.asked, p.made = true, supervise.Made{Hash: args[0], Request: p.last.Request.ID}
		p.state = p.state.Apply(supervise.Planned{Request: p.last.Request.ID}, epoch)
		return p.ordered([]string{"tasks=" + args[1]})
	case "unplanned": // no plan, and why
		p.asked = true
		return supervise.Planned{Request: p.last.Request.ID, Missing: arg}
	case "plan-approved":
		p.made.Approved = true
		return supervise.PlanApproved{Answer: p.last.Answer}
	case "parks":
		return supervise.ParkedNow{}
	case "dropped":
		return supervise.Dropped{Task: p.last.Task}
	case "gated":
		return p.gated(args)
	case "laid":
		return supervise.Laid{Head: args[0], Changed: true}
	case "finished":
		return supervise.Finished{Final: &p.last.Final}
	case "left":
		return supervise.Finished{}
	}
	p.t.Fatalf("unknown event %q", name)
	return nil
}

// taken reads "Valid c1", "Invalid web/x.txt is not allowed" or "unsettled web/x.txt moved".
func (p *player) taken(verdict string, rest []string) supervise.Event {
	e := supervise.Taken{Action: p.last, Settled: true, TreeVerdict: protocol.Verdict(verdict),
		Head: p.state.Delivery.Head, Changed: p.state.Delivery.Changed}
	var end supervise.Ending
	if p.last.Closes {
		t, _ := p.state.Task(p.last.Task)
		end = p.state.Ending(t)
	}
	switch verdict {
	case "unsettled":
		e.Settled, e.Unsettled = false, strings.Join(rest, " ")
	case "Valid":
		if len(rest) > 0 {
			e.Head, e.Changed = rest[0], true
		}
	default:
		e.Objection = strings.Join(rest, " ")
	}
	e.Aborted = p.last.Aborts && e.Settled && verdict == string(protocol.Valid)
	e.Completes = p.last.Closes && e.Settled && supervise.Completes(end, e.TreeVerdict, "")
	if e.Completes {
		e.Gates, e.Tree, e.Results = p.orders.GatesOf(p.last.Task), e.Head, p.results
	}
	return e
}

// gated reads "Failed 0 too few tests": the state of the gate that ran last, its exit code, and why it has failed all the same.
func (p *player) gated(args []string) supervise.Event {
	r := gates.Result{Gate: p.last.Gate.Name, Definition: gates.Sum(p.last.Gate), Tree: p.state.Delivery.Head, State: gates.State(args[0])}
	if len(args) > 1 {
		r.ExitCode, _ = strconv.Atoi(args[1])
		r.Message = strings.Join(args[2:], " ")
	}
	p.results = gates.With(p.results, r)
	return supervise.Gated{Task: p.last.Task, Result: r}
}

// steered reads "Hold m1 40s it repeats itself"; the time may be "-".
func (p *player) steered(args []string) supervise.Event {
	m := supervise.Measure{Rung: policy.Rung(args[0]), ID: args[1], Message: strings.Join(args[3:], " ")}
	if args[2] != "-" {
		at, err := time.ParseDuration(args[2])
		if err != nil {
			p.t.Fatal(err)
		}
		m.Until = epoch.Add(at)
	}
	return supervise.Steered{Measure: m}
}

// tools reads "patches=2 asked=q1 completed": what is on the desk, as a whole.
func (p *player) tools(args []string) supervise.Event {
	var e supervise.Tools
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "patches":
			e.Patches, _ = strconv.Atoi(value)
		case "asked", "guessed":
			id, at, _ := strings.Cut(value, "@")
			e.Question = &protocol.Question{ID: id, Text: "Which one?", Guess: key == "guessed"}
			if d, err := time.ParseDuration(at); err == nil {
				e.Question.At = epoch.Add(d)
			}
		case "asking":
			e.Asking = true
		case "completed":
			at, err := time.ParseDuration(value)
			if err != nil {
				p.t.Fatal(err)
			}
			e.Completed = epoch.Add(at)
		}
	}
	return e
}

func (p *player) ordered(args []string) supervise.Event {
	journaled := false
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "suspend":
			p.orders.Suspend = true
		case "answer":
			p.orders.Answers = append(p.orders.Answers, protocol.Answer{Question: value, Text: "This one."})
		case "questions":
			p.orders.Policy.Questions.Asking = policy.Asking(value)
		case "tasks":
			p.orders.Tasks = nil
			for name := range strings.SplitSeq(value, ",") {
				p.orders.Tasks = append(p.orders.Tasks, protocol.Task{Name: name})
			}
		case "gates":
			p.orders.Gates = nil
			for name := range strings.SplitSeq(value, ",") {
				p.orders.Gates = append(p.orders.Gates, protocol.Gate{Name: name, Command: []string{"make", "another", name}})
			}
		case "mode":
			p.orders.Mode, p.orders.NextMode = value, value
		case "next":
			p.orders.NextMode = value
		case "stop":
			p.orders.Stop, p.orders.StopReason = true, value
		case "policy":
			p.orders.Policy.Hash = value
		case "approved":
			p.orders.Delivery.ApprovedCommit = value
		case "checkpoint":
			p.orders.Requests = append(p.orders.Requests, protocol.Request{ID: value, Kind: protocol.RequestCheckpoint})
		case "release":
			p.orders.Requests = append(p.orders.Requests, protocol.Request{ID: value, Kind: protocol.RequestRelease})
		case "reset":
			p.orders.Requests = append(p.orders.Requests, protocol.Request{ID: value, Kind: protocol.RequestResetBreaker})
		case "rollback":
			p.orders.Requests = append(p.orders.Requests, protocol.Request{ID: value, Kind: protocol.RequestRollback,
				Rollback: &protocol.Rollback{Kind: protocol.RollbackFull}})
		case "request":
			p.orders.Requests = append(p.orders.Requests, protocol.Request{ID: value, Kind: "Dance"})
		case "replan":
			p.orders.Requests = append(p.orders.Requests, protocol.Request{ID: value, Kind: protocol.RequestReplan})
		case "approve": // "approve=a1:abc"
			id, hash, _ := strings.Cut(value, ":")
			p.orders.Requests = append(p.orders.Requests, protocol.Request{ID: id, Kind: protocol.RequestApprovePlan, Hash: hash})
		case "planning":
			p.orders.Planning = value
		case "done":
			p.orders.Requests = nil
		case "journaled": // before the manager has sent any
			journaled = true
		}
	}
	return supervise.Ordered{Orders: p.orders, Journaled: journaled, Made: p.made, Planned: p.asked}
}
