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

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// rungs that were climbed, with the turn of each.
func (s *session) climbed() (out []string) {
	for _, x := range s.steps {
		text := string(x.Rung)
		if x.Over {
			text += " over"
		}
		out = append(out, text)
	}
	return out
}

func TestLadder(t *testing.T) {
	for name, tc := range map[string]struct {
		ladder Rung
		want   []string
	}{
		"observe":   {Observe, []string{"Observe", "Observe", "Observe", "Observe"}},
		"nudge":     {Nudge, []string{"Nudge", "NoTools", "Nudge", "Nudge"}},
		"directive": {Directive, []string{"Nudge", "NoTools", "Directive", "Directive"}},
		"surgery":   {Surgery, []string{"Nudge", "Surgery", "NoTools", "Directive"}},
		"hold":      {Hold, []string{"Nudge", "Surgery", "NoTools", "Hold"}},
		"block":     {Block, []string{"Nudge", "Surgery", "NoTools", "Hold", "Rollback", "Restart", "Block", "Directive"}},
	} {
		s := newSession(t)
		s.rules.CheckEvery, s.rules.Ladder = 1, tc.ladder
		for range 60 {
			// A tool that fails without ever bringing a stall: something else is learnt each time.
			n := s.turns[1]
			s.turn(1, call("Deploy", `{"to":"web"}`, "cannot", conversation.FailureTool), call("Read", string(rune('a'+n)), string(rune('a'+n)), conversation.FailureNone))
		}
		if got := s.climbed(); len(got) < len(tc.want) || !slices.Equal(got[:len(tc.want)], tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		s.steps = nil
		s.work(3)
		if got := s.climbed(); len(got) != 1 || !strings.HasSuffix(got[0], " over") {
			t.Errorf("%s: the end is %v", name, got)
		}
	}
}

// TestRequestsWithoutAPlace: what alters a request waits for one in which that can be said, and is done in the next one that can; an agent all of
// whose requests have no place climbs past it.
func TestRequestsWithoutAPlace(t *testing.T) {
	for _, tc := range []struct {
		checkEvery     int
		ladder, before Rung
		then           Rung
	}{
		{1, Surgery, Surgery, Surgery},
		{1, NoTools, NoTools, NoTools},
		{3, Surgery, Surgery, NoTools}, // one failure more, and it is the breaker's turn; nothing waits for the next look
	} {
		s := newSession(t)
		s.rules.CheckEvery, s.rules.Ladder = tc.checkEvery, tc.ladder
		for len(s.steps) == 0 || s.steps[len(s.steps)-1].Rung != tc.before {
			s.fail(1)
		}
		turns := s.turns[1]
		s = newSession(t)
		s.rules.CheckEvery, s.rules.Ladder = tc.checkEvery, tc.ladder
		s.fail(turns - 2)
		steps := len(s.steps)
		s.closed = true
		if s.fail(1); len(s.steps) > steps {
			t.Errorf("%s without a place: %v", tc.before, s.climbed())
		}
		s.closed = false
		if s.fail(1); len(s.steps) != steps+1 || s.steps[steps].Rung != tc.then {
			t.Errorf("%s, looked at every %d turns: %v", tc.before, tc.checkEvery, s.climbed())
		}
	}
	s := newSession(t)
	s.closed, s.rules.CheckEvery, s.rules.Ladder = true, 1, Block
	s.fail(80)
	for _, rung := range s.climbed() {
		if rung == string(Surgery) || rung == string(NoTools) {
			t.Errorf("climbed %v", s.climbed())
		}
	}
	if !slices.Contains(s.climbed(), string(Block)) {
		t.Errorf("climbed %v", s.climbed())
	}
}

// TestFalseRecovery goes straight to the turn without tools where surgery was tried on the same tool before.
func TestFalseRecovery(t *testing.T) {
	s := newSession(t)
	s.rules.CheckEvery, s.rules.Ladder = 1, Surgery
	s.fail(7)
	s.work(3)
	if want := []string{"Nudge", "Surgery", "Surgery over"}; !slices.Equal(s.climbed(), want) {
		t.Fatalf("%v, want %v", s.climbed(), want)
	}
	s.steps = nil
	s.fail(3)
	if want := []string{"NoTools"}; !slices.Equal(s.climbed(), want) {
		t.Errorf("%v, want %v", s.climbed(), want)
	}
}

// TestCalm says nothing to an agent that does something else already.
func TestCalm(t *testing.T) {
	s := newSession(t)
	s.fail(3) // turns 2 to 4; looked at in turn 3
	s.work(6)
	if want := []string{"Observe over"}; !slices.Equal(s.climbed(), want) {
		t.Errorf("%v, want %v", s.climbed(), want)
	}
}

// TestSubThreads are told what they do themselves; what stops the whole run is for the main thread alone.
func TestSubThreads(t *testing.T) {
	s := newSession(t)
	s.rules.CheckEvery, s.rules.Ladder, s.rules.Role = 1, Block, true
	for range 40 {
		s.turn(2, call("Deploy", `{"to":"web"}`, "cannot", conversation.FailureTool))
	}
	if steps := s.turn(1); len(steps) > 0 {
		t.Errorf("the main thread is told: %+v", steps)
	}
	for _, x := range s.steps {
		if x.Thread != 2 || above(x.Rung, NoTools) || x.Kind == anomaly.PaceEscalated {
			t.Errorf("%+v", x)
		}
	}
	if !slices.Contains(s.climbed(), "NoTools") {
		t.Errorf("%v", s.climbed())
	}
}

// TestUnheard is about an agent that hangs: it is noted once, and where the ladder goes as far it is started anew, and at last stopped.
func TestUnheard(t *testing.T) {
	for name, tc := range map[string]struct {
		ladder Rung
		want   []string
	}{
		"nudge":   {Nudge, []string{"Observe", "Observe over"}},
		"restart": {Restart, []string{"Restart", "Restart over"}},
		"block":   {Block, []string{"Restart", "Block", "Block over"}},
	} {
		s := newSession(t)
		s.rules.Ladder = tc.ladder
		for range 60 {
			s.now = s.now.Add(30 * time.Second)
			s.seen.Pulse(anomaly.Pulse{Processes: 3}, s.now)
			s.decide(TurnContext{Now: s.now, Clock: true})
		}
		s.turn(1)
		if !slices.Equal(s.climbed(), tc.want) {
			t.Errorf("%s: %v, want %v", name, s.climbed(), tc.want)
		}
	}
}

// TestProvider notes calls that are in vain, and tells the agent nothing: it is not at fault.
func TestProvider(t *testing.T) {
	s := newSession(t)
	s.rules.Ladder, s.rules.CheckEvery = Block, 1
	for range 100 {
		s.now = s.now.Add(8 * time.Second)
		s.seen.Failed(1, failures.Answer{Status: 429}, s.now)
		s.decide(TurnContext{Thread: 1, Kind: conversation.KindMain, Turn: 1, Now: s.now})
	}
	s.work(1) // the request that is answered at last
	s.work(1)
	if want := []string{"Observe", "Observe over"}; !slices.Equal(s.climbed(), want) {
		t.Errorf("%v, want %v", s.climbed(), want)
	}
}

// vain is a turn whose call the provider answers with an error. The client goes on by itself: it puts the error into the conversation.
func (s *session) vain(a failures.Answer) {
	s.t.Helper()
	s.now = s.now.Add(10 * time.Second)
	s.turns[1]++
	at := TurnContext{Thread: 1, Kind: conversation.KindMain, Turn: int64(s.turns[1]), Now: s.now}
	words := conversation.QuoteOf(fmt.Sprint("API Error, try ", s.turns[1]))
	s.seen.Turn(conversation.Turn{Thread: 1, Kind: at.Kind, Number: s.turns[1], Told: []conversation.Quote{words}, Said: []conversation.Quote{conversation.QuoteOf("API Error")}}, s.now)
	s.decide(at)
	s.seen.Failed(1, a, s.now)
	s.decide(TurnContext{Now: s.now, Clock: true})
}

// TestNobodyIsBlamedForTheProvider: while the provider or the gateway answers with errors, no rung is climbed, whatever the client makes of them
// and whatever was wrong before. When the model answers again, what was wrong before goes on where it was. Errors that are the agent's own excuse nothing.
func TestNobodyIsBlamedForTheProvider(t *testing.T) {
	for name, tc := range map[string]struct {
		answer failures.Answer
		role   bool
		idle   int
		climbs bool
	}{
		"an overloaded provider":           {answer: failures.Answer{Status: 529}},
		"a backend that is avoided":        {answer: failures.Answer{Status: 503, Reason: "BackendAvoided"}, role: true},
		"a gateway that is not there":      {answer: failures.Answer{Status: 503, Reason: failures.GatewayUnreachable}},
		"an agent that stalled before":     {answer: failures.Answer{Status: 529}, idle: 14},
		"one with a plan":                  {answer: failures.Answer{Status: 529}, idle: 14, role: true},
		"requests that are never answered": {answer: failures.Answer{Status: 400, Reason: failures.InvalidRequest}, climbs: true},
	} {
		s := newSession(t)
		s.rules.CheckEvery, s.rules.Cooldown, s.rules.Ladder, s.rules.Role = 1, 2, Block, tc.role
		idle := func(turns int) {
			for range turns {
				s.turn(1, call("TodoWrite", `{"todo":"it"}`, "ok", conversation.FailureNone))
			}
		}
		idle(tc.idle)
		for range 2 { // one failed call says nothing
			s.vain(tc.answer)
		}
		before := s.climbed()
		for range 60 {
			s.vain(tc.answer)
		}
		climbed := slices.DeleteFunc(s.climbed()[len(before):], func(rung string) bool { return rung == string(Observe) || strings.HasSuffix(rung, " over") })
		if (len(climbed) > 0) != tc.climbs {
			t.Errorf("%s: %v, and then %v", name, before, climbed)
		}
		if tc.climbs {
			continue
		}
		if f := s.found(); len(f) != 1 || f[0].Kind != anomaly.AgentStalled || f[0].Cause != protocol.CauseProvider {
			t.Errorf("%s: %+v", name, f)
		}
		s.work(1)
		for _, f := range s.found() {
			if f.Cause != "" {
				t.Errorf("%s: the model answers, and %+v", name, f)
			}
		}
		if idle(20); len(s.said()) == 0 {
			t.Errorf("%s: an agent that stalls with a model that answers is told nothing", name)
		}
	}
}

// TestNoExcuseOnRequest: an agent that a model answers and that repeats itself climbs the ladder, also where calls of its own choice fail between its
// turns (with a tool of the provider that the policy does not allow, or with more than the provider takes in a minute), and where it makes turns of them.
func TestNoExcuseOnRequest(t *testing.T) {
	forbidden, limited := failures.Answer{Status: 403, Reason: "ServerToolNotAllowed"}, failures.Answer{Status: 429}
	for name, tc := range map[string]struct {
		answer failures.Answer
		every  int
		vain   bool
	}{
		"a forbidden tool":                 {forbidden, 1, false},
		"a limit":                          {limited, 1, false},
		"turns of errors":                  {limited, 1, true},
		"turns of errors when it is asked": {forbidden, 4, true},
	} {
		s := newSession(t)
		s.rules.CheckEvery, s.rules.Cooldown, s.rules.Ladder = tc.every, 2, Block
		for range tc.every - 1 { // so that the last call in vain is due to be looked at
			s.turn(1)
		}
		for range 60 {
			s.turn(1, call("Bash", `{"command":"make"}`, "cannot", conversation.FailureTool))
			for range 3 {
				if tc.vain {
					s.vain(tc.answer)
					continue
				}
				at := TurnContext{Thread: 1, Kind: conversation.KindMain, Turn: int64(s.turns[1]), Now: s.now}
				s.seen.Turn(conversation.Turn{Thread: 1, Kind: at.Kind, Number: s.turns[1], Again: true}, s.now)
				s.decide(at)
				s.seen.Failed(1, tc.answer, s.now)
			}
		}
		if climbed := s.climbed(); !slices.Contains(climbed, string(Block)) {
			t.Errorf("%s: a loop of 60 turns climbs to %v %+v", name, climbed, s.found())
		}
	}
}

// TestSilenceAfterErrors: an agent that waits after calls that failed is not started anew for that. One that asks nothing for an hour hangs.
func TestSilenceAfterErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		answer  failures.Answer
		minutes int
		want    []string
	}{
		"it waits":        {failures.Answer{Status: 529}, 50, []string{"Observe"}},
		"it hangs":        {failures.Answer{Status: 529}, 80, []string{"Observe", "Restart"}},
		"its own mistake": {failures.Answer{Status: 400}, 50, []string{"Restart"}},
	} {
		s := newSession(t)
		s.rules.Ladder = Restart
		for range 3 {
			s.seen.Failed(1, tc.answer, s.now)
		}
		for range 2 * tc.minutes {
			s.now = s.now.Add(30 * time.Second)
			s.seen.Pulse(anomaly.Pulse{Processes: 3}, s.now)
			s.decide(TurnContext{Now: s.now, Clock: true})
		}
		if !slices.Equal(s.climbed(), tc.want) {
			t.Errorf("%s: %v, want %v", name, s.climbed(), tc.want)
		}
	}
}

func TestMessages(t *testing.T) {
	f := anomaly.Finding{
		Kind: anomaly.AgentLooping, Detector: anomaly.SameFailure, Thread: 1, Turn: 2, RunTurn: 12, Since: epoch, Tier: anomaly.Warn, Tool: "Bash",
		Evidence: "the same call of Bash has failed 4 times in the same way (ExitCode)",
	}
	turn := TurnContext{Thread: 1, Turn: 8, RunTurn: 18, Now: epoch.Add(4 * time.Minute)}
	got := []string{
		message(f, Nudge, 0, turn, Defaults()),
		message(f, Nudge, 12, turn, Defaults()),
		message(f, Directive, 12, turn, Defaults()),
		message(f, NoTools, 0, turn, Defaults()),
	}
	const seen = "[SUPERVISOR] Turn 18: the same call of Bash has failed 4 times in the same way (ExitCode) (first seen in turn 12, 4m ago). "
	const do = "Read the error, and check what the command assumes with a smaller one before you try a different approach."
	want := []string{
		seen + do,
		seen + "The supervisor told you so in turn 12. " + do,
		seen + "The supervisor told you so in turn 12; before anything else, do this and say what came of it: " + do,
		seen + "This turn has no tools: say what you tried, why it fails, and what you will do differently.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestWordsToANewAgent: it was told nothing itself, and has no turns yet. What is decided without a request is not said of a turn.
func TestWordsToANewAgent(t *testing.T) {
	f := anomaly.Finding{Kind: anomaly.AgentStalled, Detector: anomaly.Silence, Turn: 2, RunTurn: 12, Since: epoch, Tier: anomaly.Warn, Mute: true, Evidence: "for 10 minutes nothing has moved"}
	never := f // it has asked no model
	never.Turn = 0
	request, clock := TurnContext{Turn: 8, RunTurn: 18, Now: epoch.Add(4 * time.Minute)}, TurnContext{Now: epoch.Add(4 * time.Minute), Clock: true}
	told := &anomaly.Episode{Finding: never, Tried: []Rung{Nudge}, RunTurn: 14, At: epoch.Add(time.Minute)}
	const anew = " The supervisor ended an agent that worked on this task before you, for that reason. The workspace is as the last valid checkpoint has it: choose another approach."
	const ended = " The watchdog ended the agent: a user must decide how the work continues."
	for _, tc := range []struct{ got, want string }{
		{message(f, Restart, 14, request, Defaults()), "[SUPERVISOR] Turn 18: for 10 minutes nothing has moved (first seen in turn 12, 4m ago)." + anew},
		{message(f, Block, 14, request, Defaults()), "[SUPERVISOR] Turn 18: for 10 minutes nothing has moved (first seen in turn 12, 4m ago)." + ended},
		{message(f, Restart, 0, clock, Defaults()), "[SUPERVISOR] for 10 minutes nothing has moved (first seen in turn 12, 4m ago)." + anew},
		{message(f, Block, 0, clock, Defaults()), "[SUPERVISOR] for 10 minutes nothing has moved (first seen in turn 12, 4m ago)." + ended},
		{message(never, Block, 0, clock, Defaults()), "[SUPERVISOR] for 10 minutes nothing has moved (first seen 4m ago)." + ended},
		{words(told, Restart, clock, Defaults()), "[SUPERVISOR] for 10 minutes nothing has moved (first seen 4m ago)." + anew},
		{words(told, Block, clock, Defaults()), "[SUPERVISOR] for 10 minutes nothing has moved (first seen 4m ago)." + ended},
	} {
		if tc.got != tc.want {
			t.Errorf("%s\nwant %s", tc.got, tc.want)
		}
	}
	if got := words(told, Rollback, clock, Defaults()); !strings.Contains(got, "The supervisor told you so 3m ago.") {
		t.Errorf("an agent that goes on reads %q", got)
	}
}

// TestAnEmergencyIsNotedOnce: where the agent is told nothing, people read of an emergency once while its causes are the same.
func TestAnEmergencyIsNotedOnce(t *testing.T) {
	var state State
	rules, noted := Defaults(), 0
	rules.Role, rules.Ladder = true, Observe
	f := anomaly.Finding{Kind: anomaly.PaceEscalated, Level: anomaly.Emergency, Thread: 1, Main: true, Turn: 1, Since: epoch, Causes: anomaly.Stall, Evidence: "it is so"}
	wrong := episodes(f)
	for turn := range int64(60) {
		at := TurnContext{Thread: 1, Kind: conversation.KindMain, Turn: turn + 1, Now: epoch.Add(time.Duration(turn) * time.Minute)}
		for _, ok := state.Decide(wrong, at, rules); ok; _, ok = state.Decide(wrong, at, rules) {
			noted++
		}
	}
	if noted != 1 {
		t.Errorf("an emergency whose causes stay the same is noted %d times, want 1", noted)
	}
}

// TestAnyFindings holds for whatever is found: one injection in a check, none in a cooldown but for an emergency that has other causes and
// for what has become graver, each measure once in an episode, and nothing above the ladder.
func TestAnyFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := Defaults()
		rules.Role = true
		rules.CheckEvery = rapid.IntRange(1, 4).Draw(t, "every")
		rules.Cooldown = rapid.IntRange(0, 8).Draw(t, "cooldown")
		rules.Ladder = rapid.SampledFrom(policy.Ladder()).Draw(t, "ladder")
		if rapid.Bool().Draw(t, "plan") {
			rules.Plan.Alternate = "Another way."
		}
		w := &judgeOfSteps{t: t, rules: rules, told: map[string]Told{}, tried: map[string][]Rung{}, causes: map[string]string{}}
		for turn := range int64(rapid.IntRange(1, 60).Draw(t, "turns")) {
			w.request(turn+1, drawFindings(t))
		}
		if text, err := json.Marshal(remembered{w.state, w.wrong}); err != nil || len(text) > 64<<10 {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
	})
}

func drawFindings(t *rapid.T) (found []anomaly.Finding) {
	for _, kind := range []anomaly.Kind{anomaly.PaceEscalated, anomaly.CascadeFailure, anomaly.ContextPressure, anomaly.AgentStalled, anomaly.AgentLooping} {
		for thread := 1; thread <= 2; thread++ {
			if rapid.IntRange(0, 2).Draw(t, "there") == 0 || kind == anomaly.PaceEscalated && thread > 1 {
				continue
			}
			found = append(found, anomaly.Finding{
				Kind: kind, Thread: thread, Main: thread == 1, Turn: 1, Since: epoch, Evidence: "it is so", Tool: rapid.SampledFrom([]string{"", "Bash"}).Draw(t, "tool"),
				Tier: anomaly.Tier(rapid.IntRange(1, 3).Draw(t, "tier")), Level: anomaly.Level(rapid.IntRange(1, 3).Draw(t, "level")),
				Causes: rapid.SampledFrom([]string{"a", "a+b"}).Draw(t, "causes"), Calm: rapid.IntRange(0, 3).Draw(t, "calm") == 0, Mute: kind == anomaly.AgentStalled && rapid.Bool().Draw(t, "mute"),
			})
		}
	}
	return found
}

// judgeOfSteps follows what is done, by rules of its own.
type judgeOfSteps struct {
	t      *rapid.T
	rules  Rules
	state  State
	wrong  []anomaly.Episode
	looked int64
	told   map[string]Told
	tried  map[string][]Rung
	causes map[string]string
}

// follow what is found, as core/anomaly does.
func (w *judgeOfSteps) follow(found []anomaly.Finding) {
	var now []anomaly.Episode
	for _, f := range found {
		e := anomaly.Episode{}
		if i := slices.IndexFunc(w.wrong, func(e anomaly.Episode) bool { return e.Finding.Kind == f.Kind && e.Finding.Thread == f.Thread }); i >= 0 {
			e = w.wrong[i]
			w.wrong = slices.Delete(w.wrong, i, i+1)
		}
		e.Finding = f
		now = append(now, e)
	}
	for _, e := range w.wrong {
		key := string(e.Finding.Kind) + string(rune('0'+e.Finding.Thread))
		if s := w.state.Over(e); !s.Over || s.Message != "" || s.Halts() || above(s.Rung, w.rules.Ladder) && s.Rung != NoTools {
			w.t.Fatalf("the end of %s: %+v", key, s)
		}
		delete(w.tried, key)
		delete(w.causes, key)
	}
	w.wrong = now
}

func (w *judgeOfSteps) request(turn int64, found []anomaly.Finding) {
	w.follow(found)
	acts := 0
	for range 100 {
		s, ok := w.state.Decide(w.wrong, TurnContext{Thread: 1, Kind: conversation.KindMain, Turn: turn, Now: epoch.Add(time.Duration(turn) * time.Minute)}, w.rules)
		if !ok {
			return
		}
		key := string(s.Kind) + string(rune('0'+s.Thread))
		present := slices.ContainsFunc(found, func(f anomaly.Finding) bool { return f.Kind == s.Kind && f.Thread == s.Thread })
		switch {
		case !present || s.Over:
			w.t.Fatalf("turn %d: %s was not found", turn, key)
		case s.Finding.Mute:
			if s.Rung != Observe || len(w.tried[key]) > 0 {
				w.t.Fatalf("turn %d: %+v", turn, s)
			}
			w.tried[key] = append(w.tried[key], s.Rung)
			continue
		}
		acts++
		w.act(turn, key, s, acts)
	}
	w.t.Fatal("there is always more to do")
}

func (w *judgeOfSteps) act(turn int64, key string, s Step, acts int) {
	told, was := w.told[key]
	once := !slices.Contains([]Rung{Observe, Nudge, Directive}, s.Rung)
	emergency := s.Finding.Level == anomaly.Emergency && s.Kind == anomaly.PaceEscalated
	switch {
	case acts > 1 || w.looked > 0 && turn-w.looked < int64(w.rules.CheckEvery):
		w.t.Fatalf("turn %d: too often", turn)
	case s.Thread != 1, s.Finding.Calm:
		w.t.Fatalf("turn %d: to the wrong one: %+v", turn, s)
	case above(s.Rung, w.rules.Ladder) && (s.Rung != NoTools || w.rules.Ladder == Observe):
		w.t.Fatalf("turn %d: %s is above %s", turn, s.Rung, w.rules.Ladder)
	case once && slices.Contains(w.tried[key], s.Rung):
		w.t.Fatalf("turn %d: %s twice in an episode", turn, s.Rung)
	case emergency && w.causes[key] == s.Finding.Causes && !s.Halts():
		w.t.Fatalf("turn %d: an emergency again, though nothing has changed", turn)
	case was && s.Rung != Surgery && s.Rung != NoTools && !emergency && turn-told.Turn < int64(w.rules.Cooldown) && grade(s.Finding) <= told.Grade:
		w.t.Fatalf("turn %d: %s in the cooldown of turn %d", turn, s.Rung, told.Turn)
	case (s.Message == "") != (s.Rung == Observe), s.Message != "" && !strings.HasPrefix(s.Message, Tag+" Turn "), len(s.Message) > 1200:
		w.t.Fatalf("turn %d: %q", turn, s.Message)
	}
	if emergency {
		w.causes[key] = s.Finding.Causes
	}
	w.looked = turn
	w.told[key] = Told{Turn: turn, Grade: grade(s.Finding)}
	w.tried[key] = append(w.tried[key], s.Rung)
}
