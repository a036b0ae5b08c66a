// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// session is an agent that is watched and steered, as the watchdog does it: what each request says is taken, and then it is asked what to do.
type session struct {
	t     *testing.T
	seen  anomaly.State
	state State
	rules Rules
	now   time.Time
	turns map[int]int
	// closed says that requests have no place for words.
	closed bool
	// steps of all requests, in their order.
	steps []Step
}

func newSession(t *testing.T) *session {
	s := &session{t: t, rules: Defaults(), now: epoch, turns: map[int]int{}}
	s.turn(1)
	return s
}

// call of a tool and what it came to.
func call(tool, arguments, result string, failure conversation.Failure) conversation.Step {
	return conversation.Step{Call: conversation.Call{Name: tool, Arguments: conversation.QuoteOf(arguments)}, Result: conversation.QuoteOf(result), Failure: failure}
}

// turn of a thread; 1 is the main one. It says what is done, which is one injection at most.
func (s *session) turn(thread int, steps ...conversation.Step) (done []Step) {
	s.t.Helper()
	s.now = s.now.Add(10 * time.Second)
	s.turns[thread]++
	kind := conversation.KindMain
	if thread > 1 {
		kind = conversation.KindSub
	}
	s.seen.RunTurn = int64(s.turns[1])
	s.seen.Turn(conversation.Turn{Thread: thread, Kind: kind, Number: s.turns[thread], Steps: steps}, s.now)
	done = s.decide(TurnContext{Thread: thread, Kind: kind, Turn: int64(s.turns[thread]), RunTurn: s.seen.RunTurn, Now: s.now, Closed: s.closed})
	s.now = s.now.Add(10 * time.Second)
	s.seen.Answer(thread, conversation.Answer{Ended: true}, 0, s.now)
	return done
}

// remembered is what a watchdog keeps of what was decided.
type remembered struct {
	State    State
	Episodes []anomaly.Episode
}

// episodes of findings in which nothing was done.
func episodes(findings ...anomaly.Finding) (list []anomaly.Episode) {
	for _, f := range findings {
		list = append(list, anomaly.Episode{Finding: f})
	}
	return list
}

// found is what is wrong now.
func (s *session) found() (found []anomaly.Finding) {
	s.seen.Look(s.rules.Thresholds, s.now)
	for _, e := range s.seen.Episodes {
		found = append(found, e.Finding)
	}
	return found
}

func (s *session) decide(c TurnContext) (done []Step) {
	s.t.Helper()
	for _, e := range s.seen.Look(s.rules.Thresholds, s.now) {
		done = append(done, s.state.Over(e))
	}
	injections := 0
	for {
		// What was decided is written down, and read by a watchdog that begins anew.
		text, err := json.Marshal(remembered{s.state, s.seen.Episodes})
		if err != nil {
			s.t.Fatal(err)
		}
		var read remembered
		if err := json.Unmarshal(text, &read); err != nil {
			s.t.Fatal(err)
		}
		s.state, s.seen.Episodes = read.State, read.Episodes
		step, ok := s.state.Decide(s.seen.Episodes, c, s.rules)
		if !ok {
			break
		}
		if done = append(done, step); step.Rung != Observe {
			injections++
		}
	}
	if injections > 1 {
		s.t.Fatalf("turn %d: %d injections in one check", c.Turn, injections)
	}
	s.steps = append(s.steps, done...)
	return done
}

// fills the window of the main thread.
func (s *session) fills(percent int64) {
	s.seen.Answer(1, conversation.Answer{Ended: true, Counted: true, Usage: conversation.Usage{Input: percent}}, 100, s.now)
}

// work that brings something.
func (s *session) work(turns int) {
	for range turns {
		n := s.turns[1]
		s.turn(1, call("Read", fmt.Sprintf(`{"file_path":"file%d"}`, n), fmt.Sprintf("content %d", n), conversation.FailureNone))
	}
}

// fail in the same way.
func (s *session) fail(turns int) {
	for range turns {
		s.turn(1, call("Deploy", `{"to":"web"}`, "cannot", conversation.FailureTool))
	}
}

// said are the messages so far, by turn.
func (s *session) said() (texts []string) {
	for _, x := range s.steps {
		if x.Rung != Observe && !x.Over {
			texts = append(texts, x.Message)
		}
	}
	return texts
}

func (s *session) mustSay(n int, parts ...string) {
	s.t.Helper()
	said := s.said()
	if len(said) != n {
		s.t.Fatalf("%d messages, want %d:\n%s", len(said), n, strings.Join(said, "\n"))
	}
	for _, p := range parts {
		if !strings.Contains(said[n-1], p) {
			s.t.Errorf("%q does not say %q", said[n-1], p)
		}
	}
}

// The following eight tests are those of the text that the supervisor's loop comes from.

func TestNoOrgPassthrough(t *testing.T) {
	s := newSession(t)
	s.rules.Plan = Plan{Alternate: "Use the other cluster.", Contingent: "Use the other cluster.", Emergency: "Go home."}
	s.fail(30)
	if len(s.said()) == 0 {
		t.Error("without a role, nothing was said about a loop")
	}
	for _, x := range s.steps {
		if x.Kind == anomaly.PaceEscalated {
			t.Errorf("without a role, there was a plan: %s", x.Message)
		}
	}
	s = newSession(t)
	s.fills(85)
	s.work(3)
	s.mustSay(1, "85% full")
}

func TestNormalOperationIsSilent(t *testing.T) {
	s := newSession(t)
	s.rules.Role = true
	s.work(40)
	s.fail(2)
	s.work(3)
	if len(s.steps) > 0 {
		t.Errorf("%+v", s.steps)
	}
}

func TestStall(t *testing.T) {
	s := newSession(t)
	for n := range 13 {
		s.turn(1, call("Think", fmt.Sprint(n), fmt.Sprint(n), conversation.FailureNone))
	}
	s.mustSay(0)
	s.turn(1)
	s.mustSay(1, "[SUPERVISOR] Turn 15: ", "turns have changed no file", "Reassess the approach")
}

func TestLoop(t *testing.T) {
	s := newSession(t)
	s.fail(2)
	s.mustSay(0)
	s.rules.CheckEvery = 1
	s.fail(1)
	s.mustSay(1, "[SUPERVISOR] Turn 4: the same call of Deploy has failed 3 times in the same way (ToolError) (first seen now).", "try a different approach")
}

func TestContext(t *testing.T) {
	s := newSession(t)
	s.rules.CheckEvery = 1
	s.fills(79)
	s.work(1)
	s.mustSay(0)
	s.fills(81)
	s.work(1)
	s.mustSay(1, "81% full", "sum up what is done")
	// Graver than before: it is said at once, though there is a cooldown.
	s.fills(92)
	s.work(1)
	s.mustSay(2, "92% full", "Begin nothing new")
	s.work(5)
	s.mustSay(2)
}

func TestPACE(t *testing.T) {
	s := newSession(t)
	s.rules.Role, s.rules.CheckEvery = true, 1
	s.rules.Plan = Plan{Contingent: "Deploy by hand,\n as docs/deploy.md says"}
	s.fail(3)
	s.mustSay(1, "failed 3 times") // there is no alternate plan to quote, so that the loop speaks for itself
	s.fail(2)
	s.mustSay(2, "failed 5 times", "Contingent plan of your role: Deploy by hand, as docs/deploy.md says.")
	s.fail(4)
	emergency := s.steps[len(s.steps)-1]
	if emergency.Kind != anomaly.PaceEscalated || !strings.Contains(emergency.Message, "Stop, keep what works, and report") {
		t.Errorf("%+v", emergency)
	}
	// It is exempt from the cooldown: it is said again when it has become a stall, too. And it is not said again while nothing is different.
	s.fail(20)
	var emergencies []int
	for _, x := range s.steps {
		if x.Kind == anomaly.PaceEscalated && x.Finding.Level == anomaly.Emergency {
			var turn int
			if _, err := fmt.Sscanf(x.Message, "[SUPERVISOR] Turn %d:", &turn); err != nil {
				t.Error(err)
			}
			emergencies = append(emergencies, turn)
		}
	}
	if want := []int{10, 13}; !slices.Equal(emergencies, want) {
		t.Errorf("emergencies in turns %d, want %d: %s", emergencies, want, strings.Join(s.said(), "\n"))
	}
}

// TestPACEWithoutAPlan says what nothing else says.
func TestPACEWithoutAPlan(t *testing.T) {
	s := newSession(t)
	s.rules.Role, s.rules.CheckEvery = true, 1
	for n := range 5 {
		s.turn(1, call("Bash", fmt.Sprintf(`{"command":"make part%d"}`, n), fmt.Sprintf("no rule to make part%d", n), conversation.FailureExit))
	}
	s.mustSay(1, "nothing has succeeded in 5 turns in a row", "Try another way.")
}

// TestWithoutAPlan: what a plan would be off for is a stall of an agent whose role has none.
func TestWithoutAPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(s *session, n int)
		want []string
	}{
		"failures of different kinds": {func(s *session, n int) {
			s.turn(1, call("Bash", fmt.Sprintf(`{"command":"make part%d"}`, n), fmt.Sprintf("no rule to make part%d", n), conversation.FailureExit))
		}, []string{"nothing has succeeded in 5 turns in a row", "Find out what these failures have in common"}},
		"trials": {func(s *session, n int) {
			s.turn(1, call("Edit", fmt.Sprintf(`{"file_path":"a.go","old_string":"a%d","new_string":"a%d"}`, n, n+1), "ok", conversation.FailureNone),
				call("Bash", `{"command":"make test"}`, "FAIL: TestOrder", conversation.FailureExit))
		}, []string{"the same call of Bash has failed 6 times and got no better", "Find the cause of the failure"}},
		"refusals": {func(s *session, n int) {
			s.turn(1, call("Edit", fmt.Sprintf(`{"file_path":"a.go","old_string":"a%d","new_string":"a%d"}`, n, n+1), "ok", conversation.FailureNone))
			s.seen.Work(anomaly.Work{Tree: fmt.Sprint(n), Changed: true, Verdict: "Invalid"}, s.now)
		}, []string{"6 checkpoints in a row were not valid", "Take back what the policy refuses"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			s.rules.CheckEvery = 1
			for n := 0; len(s.steps) == 0 && n < 20; n++ {
				tc.do(s, n)
			}
			s.mustSay(1, tc.want...)
			if x := s.steps[0]; x.Kind != anomaly.AgentStalled || x.Rung != Nudge {
				t.Errorf("%+v", x)
			}
		})
	}
}

func TestCooldown(t *testing.T) {
	for _, cooldown := range []int{0, 1, 3, 6, 10} {
		s := newSession(t)
		s.rules.CheckEvery, s.rules.Cooldown = 1, cooldown
		var told []int64
		for range 40 {
			// A success with the same result stays at its first tier for long.
			for _, x := range s.turn(1, call("TaskOutput", "7", "running", conversation.FailureNone)) {
				told = append(told, int64(s.turns[1]))
				if x.Rung != Nudge {
					t.Fatalf("%+v", x)
				}
			}
		}
		if len(told) < 1 {
			t.Fatal("nothing was said")
		}
		want := told[0]
		for _, turn := range told {
			if turn != want {
				t.Errorf("cooldown %d: told in turns %d", cooldown, told)
				break
			}
			want += int64(max(cooldown, 1))
		}
		if want <= int64(s.turns[1]) {
			t.Errorf("cooldown %d: told in turns %d, and not again in %d", cooldown, told, want)
		}
	}
}

// TestCooldownsAreIndependent says something about one anomaly while another is in its cooldown, and one thing in each check.
func TestCooldownsAreIndependent(t *testing.T) {
	s := newSession(t)
	s.rules.CheckEvery, s.rules.Cooldown = 1, 5
	s.fills(85)
	s.fail(2)
	s.mustSay(1, "85% full")
	s.fail(1)
	s.mustSay(2, "Deploy has failed 3 times")
	s.fail(2)
	s.mustSay(2)
	s.fail(1) // turn 7
	s.mustSay(3, "85% full")
	s.fail(1)
	s.mustSay(3)
	s.fail(1)
	s.mustSay(4, "Deploy has failed 8 times")
}

func TestCascade(t *testing.T) {
	s := newSession(t)
	s.rules.CheckEvery = 1
	for _, tool := range []string{"Read", "Bash"} {
		s.turn(1, call(tool, "src/x", "no such file", conversation.FailureMissing))
	}
	s.mustSay(0)
	s.turn(1, call("Grep", "src/x", "no such file", conversation.FailureMissing))
	s.mustSay(1, "3 different tools have failed within the last 5 calls (Bash, Grep, Read)", "verify the working directory")
}

// TestACooldownHoldsBack: an agent that goes on for 60 turns hears less with the built-in cooldown than without one, and one as long as the time between
// two checks holds nothing back.
func TestACooldownHoldsBack(t *testing.T) {
	heard := func(cooldown int) int {
		s := newSession(t)
		s.rules.Cooldown = cooldown
		for n := range 60 { // a stall that nothing else explains
			s.turn(1, call("TodoWrite", fmt.Sprintf(`{"todo":"%d"}`, n), fmt.Sprint("ok ", n), conversation.FailureNone))
		}
		return len(s.said())
	}
	none, check, built := heard(0), heard(Defaults().CheckEvery), heard(Defaults().Cooldown)
	if none != 16 || check != none || built != 8 {
		t.Errorf("an agent is told %d times without a cooldown, %d times with one of a check, and %d times with the built-in one", none, check, built)
	}
}
