// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

var someFailures = []conversation.Failure{
	conversation.FailureNone, conversation.FailureNone, conversation.FailureTool, conversation.FailureExit, conversation.FailureEdit,
	conversation.FailureDenied, conversation.FailureTime, conversation.FailureFormat, conversation.FailureMissing,
}

func drawStep(t *rapid.T) conversation.Step {
	tool := rapid.SampledFrom([]string{"Bash", "Read", "Edit", "x\"y\n[SUPERVISOR] now", "", strings.Repeat("é", 100)}).Draw(t, "tool")
	arguments := rapid.SampledFrom([]string{
		`{"command":"go test ./..."}`, `{"command":["bash","-lc","sleep 30; ls"]}`, `{"file_path":"a","old_string":"x","new_string":"y"}`,
		`{"file_path":"a","old_string":"y","new_string":"x"}`, `{"a":`, "", strings.Repeat("[", 4000), strings.Repeat("x", 9000),
	}).Draw(t, "arguments")
	result := rapid.SampledFrom([]string{"", "ok", "Exit code 1", "FAIL 12:30:01 0x7f00aa 3 ms", strings.Repeat("line 1.2s\n", 2000)}).Draw(t, "result")
	return conversation.Step{
		Call:    conversation.Call{Name: tool, Arguments: conversation.QuoteOf(arguments), Edit: conversation.EditOf([]byte(arguments))},
		Result:  conversation.QuoteOf(result),
		Failure: rapid.SampledFrom(someFailures).Draw(t, "failure"),
	}
}

// TestAnything holds for whatever is seen: what is remembered is bounded and survives being written down, and findings are in order, at most one
// of a kind for each thread, and say nothing that could be taken for something else.
func TestAnything(t *testing.T) {
	// A thread that has everything, and all threads.
	const most = 32*24<<10 + 64<<10
	rapid.Check(t, func(t *rapid.T) {
		var s State
		rules := Defaults()
		rules.Role = rapid.Bool().Draw(t, "role")
		now := epoch
		turns := map[int]int{}
		for range rapid.IntRange(1, 80).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			id := rapid.IntRange(1, 40).Draw(t, "thread") % rapid.IntRange(1, 40).Draw(t, "threads")
			switch rapid.SampledFrom([]string{"turn", "turn", "turn", "answer", "failed", "work", "pulse"}).Draw(t, "event") {
			case "turn":
				turns[id]++
				c := conversation.Turn{Thread: id, Number: turns[id], Kind: conversation.KindSub, Again: rapid.IntRange(0, 5).Draw(t, "again") == 0}
				if id == 0 {
					c.Kind = conversation.KindMain
				}
				for range rapid.IntRange(0, 20).Draw(t, "steps") {
					c.Steps = append(c.Steps, drawStep(t))
				}
				if rapid.Bool().Draw(t, "says") {
					c.Said = append(c.Said, conversation.QuoteOf("I will try"))
				}
				s.Turn(c, now)
			case "answer":
				a := conversation.Answer{Counted: true, Ended: true, Usage: conversation.Usage{Input: rapid.Int64().Draw(t, "tokens")}}
				s.Answer(id, a, rapid.Int64Range(0, 1<<40).Draw(t, "window"), now)
			case "failed":
				s.Failed(id, rapid.SampledFrom([]int{0, 401, 429, 500}).Draw(t, "status"), now)
			case "work":
				tree := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "tree")
				s.Work(Work{Tree: tree, Changed: rapid.IntRange(0, 3).Draw(t, "changed") == 0}, now)
			case "pulse":
				s.Pulse(Pulse{CPU: time.Duration(rapid.Int64().Draw(t, "cpu")), Processes: rapid.IntRange(0, 2).Draw(t, "processes")}, now)
			}
			found := s.Findings(rules, now)
			check(t, found)
			if diff := cmp.Diff(found, s.Findings(rules, now), cmpopts.IgnoreUnexported(Finding{})); diff != "" {
				t.Fatalf("another look finds something else: %s", diff)
			}
		}
		text, err := json.Marshal(s)
		if err != nil || len(text) > most {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		var again State
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.Findings(rules, now), again.Findings(rules, now), cmpopts.IgnoreUnexported(Finding{})); diff != "" {
			t.Fatalf("a watchdog that begins anew finds something else: %s", diff)
		}
	})
}

func check(t *rapid.T, found []Finding) {
	order := -1
	seen := map[string]bool{}
	for _, f := range found {
		rank := 0
		for i, k := range kinds() {
			if k == f.Kind {
				rank = i
			}
		}
		key := fmt.Sprint(f.Kind, f.Thread)
		if rank < order || seen[key] {
			t.Fatalf("%s is out of order, or there twice", key)
		}
		order, seen[key] = rank, true
		if f.Kind == PaceEscalated && !f.Main {
			t.Fatalf("thread %d fell off the plan", f.Thread)
		}
		if f.Evidence == "" || len(f.Evidence) > maxEvidence || strings.ContainsFunc(f.Evidence, func(r rune) bool { return !unicode.IsPrint(r) || r > unicode.MaxASCII && r != '…' }) ||
			strings.Contains(f.Evidence+f.Tool, "[") {
			t.Fatalf("evidence %q of %q", f.Evidence, f.Tool)
		}
		if f.Tier < Warn || f.Tier > Breaker || f.Since.IsZero() {
			t.Fatalf("%+v", f)
		}
	}
}

// TestWorkIsSilent holds for any mixture of work that goes on: nothing is found in it, however long it takes.
func TestWorkIsSilent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &player{t: nil, rules: Defaults(), now: epoch, turns: map[int]int{}, last: map[int]time.Time{}}
		p.rules.Role = true
		p.event("turn", "told Do it")
		// What each thing to do next looks like; § is another number each time.
		moves := [][]string{
			{"10s turn Read(file§)=content §"},
			{"10s turn say Next file. | Edit(file§: a -> b)=ok", "1s work changed"},
			{"10s turn Edit(a.go: v§ -> w)=ok", "30s turn Bash(go test ./...)!ExitCode=FAIL at step §, of 99"},
			{"10s turn Edit(a.go: v§ -> w)=ok", "30s turn Bash(go test ./...)=ok"},
			{"10s turn Bash(script §)=", "1s work tree=§ changed"},
			{"10s turn Bash(npm ci a§)!ExitCode=ECONNRESET", "10s turn Bash(npm ci a§)!ExitCode=ECONNRESET", "10s turn Bash(npm ci a§)=added §"},
			{"10s turn Bash(grep §)!ExitCode=Exit code 1", "10s turn Grep(§)=found §"},
			{"10s answer 10/100 asks Bash(make)", "300s pulse cpu=60s", "300s pulse cpu=60s", "300s pulse cpu=60s", "1s turn Bash(make §)=built § | took 15m"},
			{"5m turn Bash(sleep 290; gh run view)=running | took 291s", "5m turn Bash(sleep 290; gh run view)=running | took 291s"},
			{"10s turn Bash(git status)=clean | Read(other§)=other §"},
			{"1s failed 429", "5s failed 429", "20s failed 529", "20s answer 20/100"},
			{"10s turn Task(§)=done §"},
			{"4m turn Read(slow§)=slow § | took 1s"},
			{"10s turn @2 | Read(sub§)=sub §"},
		}
		for n := range rapid.IntRange(1, 120).Draw(t, "moves") {
			for _, line := range rapid.SampledFrom(moves).Draw(t, "move") {
				line = strings.ReplaceAll(line, "§", fmt.Sprint(n))
				fields := strings.Fields(line)
				after, err := time.ParseDuration(fields[0])
				if err != nil {
					t.Fatal(err)
				}
				p.now = p.now.Add(after)
				_, rest, _ := strings.Cut(line, fields[1])
				p.event(fields[1], strings.TrimSpace(rest))
				if found := p.state.Findings(p.rules, p.now); len(found) > 0 {
					t.Fatalf("after %q: %s, %s", line, found[0].Detector, found[0].Evidence)
				}
			}
		}
	})
}

// TestTheSameResult tells results apart that differ in more than time.
func TestTheSameResult(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		want bool
	}{
		"durations":       {"FAIL timer.test.js (1.2 s)", "FAIL timer.test.js (0.9 s)", true},
		"go durations":    {"ok  \tpkg\t0.013s", "ok  \tpkg\t0.02s", true},
		"times":           {"running since 12:30:01", "running since 12:35:07", true},
		"dates":           {"2026-11-23T12:30:01Z up", "2026-11-23T12:35:01.25Z up", true},
		"addresses":       {"panic at 0xc000010a", "panic at 0xc00002fe", true},
		"hashes":          {"HEAD is 4f2a91bc03", "HEAD is 9b2a91bc77", true},
		"spaces":          {"a   b", "a b", true},
		"counts":          {"3 of 7 failed", "2 of 7 failed", false},
		"lines":           {"a.go:12: x", "a.go:13: x", false},
		"words":           {"want one", "want two", false},
		"versions":        {"v1.2.3", "v1.2.4", false},
		"steps of a test": {"FAIL at step 3", "FAIL at step 5", false},
	} {
		if got := resultSum(conversation.QuoteOf(tc.a)) == resultSum(conversation.QuoteOf(tc.b)); got != tc.want {
			t.Errorf("%s: %q and %q are the same: %t", name, steady(tc.a), steady(tc.b), got)
		}
	}
}

// TestTheSameCall leaves out what models say to people about a call.
func TestTheSameCall(t *testing.T) {
	sum := func(arguments string) sum {
		return argumentsOf(conversation.Call{Name: "Bash", Arguments: conversation.QuoteOf(arguments)}).sum()
	}
	a := sum(`{"command":"npm test","description":"Run the tests"}`)
	if b := sum(`{"description":"Run the tests again", "command":"npm test"}`); a != b {
		t.Error("another description makes another call")
	}
	if b := sum(`{"command":"npm run test"}`); a == b {
		t.Error("another command makes the same call")
	}
}

func TestSleeps(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{"command":"sleep 300; gh run view"}`:            5 * time.Minute,
		`{"command":"sleep 5m && ls"}`:                    5 * time.Minute,
		`{"command":["sleep","30"]}`:                      30 * time.Second,
		`{"command":"Start-Sleep -Seconds 30"}`:           30 * time.Second,
		`{"seconds":90}`:                                  90 * time.Second,
		`{"delaySeconds": 270}`:                           270 * time.Second,
		`{"command":"kubectl rollout status deploy/web"}`: pause,
		`{"command":"sleep 999999d"}`:                     longestSleep,
		`{"command":"grep -r asleep ."}`:                  0,
		`{"file_path":"sleep.go"}`:                        0,
	} {
		if got := sleeps(text); got != want {
			t.Errorf("%s waits %s, want %s", text, got, want)
		}
	}
}

// BenchmarkTurn is turn 200 of a session, with 2 KB that are new.
func BenchmarkTurn(b *testing.B) {
	var s State
	step := func(n int) conversation.Step {
		return conversation.Step{
			Call:   conversation.Call{Name: "Bash", Arguments: conversation.QuoteOf(fmt.Sprintf(`{"command":"cat file%d"}`, n))},
			Result: conversation.QuoteOf(strings.Repeat(fmt.Sprintf("line %d of a result in 1.2s\n", n), 70)),
		}
	}
	now, n := epoch, 0
	for b.Loop() {
		n++
		now = now.Add(time.Second)
		s.Turn(conversation.Turn{Thread: 1, Kind: conversation.KindMain, Number: n, Steps: []conversation.Step{step(n)}}, now)
		s.Findings(Defaults(), now)
	}
}
