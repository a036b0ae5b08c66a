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
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
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
				s.Failed(id, failures.Answer{Status: rapid.SampledFrom([]int{0, 400, 401, 429, 500}).Draw(t, "status"), Reason: rapid.SampledFrom([]string{"", "", "BackendAvoided", "MemoryShare"}).Draw(t, "reason")}, now)
			case "work":
				tree := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "tree")
				s.Work(Work{Tree: tree, Changed: rapid.IntRange(0, 3).Draw(t, "changed") == 0}, now)
			case "pulse":
				s.Pulse(Pulse{CPU: time.Duration(rapid.Int64().Draw(t, "cpu")), Processes: rapid.IntRange(0, 2).Draw(t, "processes")}, now)
			}
			found := findings(&s, rules, now)
			check(t, found)
			if diff := cmp.Diff(found, findings(&s, rules, now), cmpopts.IgnoreUnexported(Finding{})); diff != "" {
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
		if diff := cmp.Diff(findings(&s, rules, now), findings(&again, rules, now), cmpopts.IgnoreUnexported(Finding{})); diff != "" {
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
				if found := findings(&p.state, p.rules, p.now); len(found) > 0 {
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
		"processes":       {"worker started [pid 4711]", "worker started [pid 815]", true},
		"ports":           {"listening on port 49152", "listening on port 50001", true},
		"seeds":           {"random seed: 42", "random seed: 7", true},
		"temporary paths": {"wrote /tmp/x1a9/out.txt", "wrote /tmp/k3b7/out.txt", true},
		"other paths":     {"wrote /srv/x1/out.txt", "wrote /srv/k3/out.txt", false},
		"progress":        {"12% of 30 MB, 3.1 MB/s\ndone", "57% of 30 MB, 2.2 MB/s\ndone", true},
		"lines rewritten": {"1 of 9\r4 of 9\r9 of 9", "2 of 9\r9 of 9", true},
		"order":           {"a passes\nb passes", "b passes\na passes", true},
	} {
		if got := outcomeOf(conversation.QuoteOf(tc.a), "", false).sum == outcomeOf(conversation.QuoteOf(tc.b), "", false).sum; got != tc.want {
			t.Errorf("%s: %q and %q are the same: %t", name, steady(tc.a), steady(tc.b), got)
		}
	}
}

// runLines are lines of a run of tests; what stands between braces differs from run to run.
var runLines = []string{
	"{2026-11-02T09:00:00.123Z} DEBUG [pid {4711}] lease taken at {0xc000010a00}", "--- PASS: TestPrice ({0.03s})", "=== RUN   TestPrice", "random seed: {123456}",
	"listening on port {49152}", "goroutine {17} [running]:", "wrote {/tmp/shop-1a2b3c}/state.sock", "TMPDIR={/var/folders/zz/x1y2/T/go-build77}",
	"ok  \tshop/internal/order\t{1.204s}", "Done in {3 ms}.", "worker {12}: started", "commit {4f2a91bc03}", "0 errors, 12 warnings",
}

// run draws a run, in which what differs is what the function gives.
func runOf(lines []string, differs func(kind string) string) string {
	var b strings.Builder
	for _, line := range lines {
		for {
			before, rest, found := strings.Cut(line, "{")
			b.WriteString(before)
			if !found {
				break
			}
			kind, after, _ := strings.Cut(rest, "}")
			b.WriteString(differs(kind))
			line = after
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestLogsOfOneRun holds for logs of any size: two runs of the same are the same, whatever stands in what differs, in whichever order lines come and
// however often one comes; and they are no longer the same when one line says something else, wherever it stands.
func TestLogsOfOneRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom(runLines), 1, 40).Draw(t, "lines")
		for i := range rapid.SampledFrom([]int{0, 0, 900}).Draw(t, "more") { // up to some 100 KB
			lines = append(lines, fmt.Sprintf("case %d: ok, as it was in {2026-11-02} at {09:00:00.1}, and what it says beside that is long enough", i))
		}
		other := func(kind string) string {
			return strings.Map(func(r rune) rune {
				if r >= '1' && r <= '9' {
					return rune('1' + rapid.IntRange(0, 8).Draw(t, "digit"))
				}
				return r
			}, kind)
		}
		same := func(kind string) string { return kind }
		shuffled := rapid.Permutation(lines[:min(len(lines), 40)]).Draw(t, "order")
		one, two := runOf(lines, same), runOf(append(append(shuffled, lines[min(len(lines), 40):]...), shuffled[0]), other)
		if one, two := outcomeOf(conversation.WholeOf(one), "", false), outcomeOf(conversation.WholeOf(two), "", false); one.sum != two.sum {
			t.Fatal("two runs of the same differ")
		}
		at := rapid.IntRange(0, len(lines)).Draw(t, "at")
		three := runOf(append(append(append([]string{}, lines[:at]...), "case x: 3 of 7 rows are wrong"), lines[at:]...), other)
		if one, three := outcomeOf(conversation.WholeOf(one), "", false), outcomeOf(conversation.WholeOf(three), "", false); one.sum == three.sum {
			t.Fatalf("a line at %d of %d makes no difference", at, len(lines))
		}
	})
}

// TestNamesOfFailures: what a failure names is found wherever it stands in a log of 200 KB, and numbers of lines are no names.
func TestNamesOfFailures(t *testing.T) {
	noise := strings.Repeat("=== RUN   TestPrice\n--- PASS: TestPrice (0.03s)\n", 4000)
	fails := func(text string) step {
		o := outcomeOf(conversation.WholeOf(text), conversation.FailureExit, false)
		return step{Result: o.sum, Failing: o.failing, Fails: o.all, Failure: conversation.FailureExit}
	}
	many := ""
	for i := range 40 {
		many += fmt.Sprintf("--- FAIL: TestCase%d (0.%02ds)\n", i, i)
	}
	for name, tc := range map[string]struct {
		before, now   string
		alike, better bool
	}{
		"the same test":          {noise + "--- FAIL: TestA (0.1s)\n" + noise, "--- FAIL: TestA (0.2s)\n", true, false},
		"another test":           {noise + "--- FAIL: TestA (0.1s)\n" + noise, noise + "--- FAIL: TestB (0.1s)\n" + noise, false, true},
		"one less":               {"--- FAIL: TestA (0.1s)\n--- FAIL: TestB (0.1s)\n", "--- FAIL: TestB (0.1s)\n", false, true},
		"one more":               {"--- FAIL: TestB (0.1s)\n", "--- FAIL: TestA (0.1s)\n--- FAIL: TestB (0.1s)\n" + noise, true, false},
		"one less of many":       {many, strings.Replace(many, "TestCase7 ", "TestOther ", 1), true, false},
		"half of many":           {many, many[:len(many)/2], false, true},
		"pytest gets further":    {"FAILED tests/a.py::test_a - TypeError", "....\nFAILED tests/b.py::test_b - TypeError", false, true},
		"a compiler goes on":     {"a.go:3:8: undefined: x\n", "b.go:9:1: undefined: y\nb.go:10:1: undefined: z\n", false, true},
		"a line further down":    {"a.go:3:8: undefined: x\nmake: *** [b] Error 1", "a.go:5:8: undefined: x\nmake: *** [b] Error 1", true, false},
		"how it ended":           {"one thing\nmake: *** [b] Error 1", "another thing\nmake: *** [b] Error 1", false, true},
		"a count of failures":    {"error: no such table: a\n3 errors", "error: no such table: a\n4 errors", true, false},
		"a random number before": {"4711\ncannot find x", "815\ncannot find x", true, false},
	} {
		before, now := fails(tc.before), fails(tc.now)
		if got := better(now, before); got != tc.better && name != "one less of many" {
			t.Errorf("%s: better %t", name, got)
		}
		if got := alike(now, before); got != tc.alike {
			t.Errorf("%s: alike %t", name, got)
		}
	}
}

// FuzzOutcome never fails, gives the same again, does not mind the time that is told, and sees each line that says something.
func FuzzOutcome(f *testing.F) {
	for _, line := range runLines {
		f.Add(line)
	}
	f.Add("\r\r\n\x00\xff/tmp/1:2:3: 1m2s 0x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, failure := range []conversation.Failure{conversation.FailureNone, conversation.FailureExit} {
			o := outcomeOf(conversation.WholeOf(text), failure, true)
			if again := outcomeOf(conversation.WholeOf(text), failure, true); !cmp.Equal(o, again, cmp.AllowUnexported(outcome{})) {
				t.Fatal("another look sees something else")
			}
			if len(o.failing) > maxFailing || o.all < len(o.failing) {
				t.Fatalf("%d names of %d", len(o.failing), o.all)
			}
			if more := outcomeOf(conversation.WholeOf(text+"\nzq zr zq"), failure, true); more.sum == o.sum && !strings.Contains(text, "zq zr zq") {
				t.Fatal("the last line makes no difference")
			}
		}
	})
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
		`{"command":"sleep 300; gh run view"}`:                                   5 * time.Minute,
		`{"command":"sleep 5m && ls"}`:                                           5 * time.Minute,
		`{"command":["sleep","30"]}`:                                             30 * time.Second,
		`{"command":"Start-Sleep -Seconds 30"}`:                                  30 * time.Second,
		`{"seconds":90}`:                                                         90 * time.Second,
		`{"delaySeconds": 270}`:                                                  270 * time.Second,
		`{"command":"kubectl rollout status deploy/web"}`:                        pause,
		`{"command":"sleep 999999d"}`:                                            longestSleep,
		`{"command":"grep -r asleep ."}`:                                         0,
		`{"file_path":"sleep.go"}`:                                               0,
		`{"command":"kubectl wait --for=condition=complete job/x --timeout=2h"}`: 2 * time.Hour,
	} {
		if got := sleeps(text); got != want {
			t.Errorf("%s waits %s, want %s", text, got, want)
		}
	}
}

// TestTakes reads how long a call may take.
func TestTakes(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{"command":"kubectl wait job/x --timeout=2h"}`:        2 * time.Hour,
		`{"command":"helm upgrade x --wait --timeout 45m"}`:    45 * time.Minute,
		`{"command":"curl --max-time 900 ci/wait"}`:            15 * time.Minute,
		`{"id":7,"timeout":"3h"}`:                              3 * time.Hour,
		`{"id":7,"timeout_seconds":7200}`:                      2 * time.Hour,
		`{"id":7,"timeout_minutes": 90}`:                       90 * time.Minute,
		`{"command":"make e2e","timeout":600000}`:              10 * time.Minute,
		`{"command":"make e2e","timeout_ms":600000}`:           10 * time.Minute,
		`{"command":"go test -timeout 0 ./..."}`:               0,
		`{"command":"kubectl wait job/x --timeout=99999999h"}`: longestSleep,
		`{"command":"grep -rn timeout internal"}`:              0,
		`{"command":"sleep 300; hack/pipeline.sh"}`:            5 * time.Minute,
		`{"command":"make build"}`:                             0,
	} {
		if got := takes(text); got != want {
			t.Errorf("%s takes %s, want %s", text, got, want)
		}
	}
}

// TestForms are the same for commands that do the same.
func TestForms(t *testing.T) {
	form := func(command string) sum {
		return argumentsOf(conversation.Call{Name: "Bash", Arguments: conversation.QuoteOf(fmt.Sprintf(`{"command":%q}`, command))}).form()
	}
	want := form("make test")
	for _, command := range []string{
		"make test 2>&1 | tail -n 20", "cd /workspace && make test", "sleep 60 && make test", "echo 4711; make test", "make -j 4 test", "FOO=1 make test > out.txt", "make test | grep FAIL",
	} {
		if command != "make -j 4 test" && form(command) != want {
			t.Errorf("%s has another form", command)
		}
	}
	for _, command := range []string{"make build", "make tests", "go test", "tail make"} {
		if form(command) == want {
			t.Errorf("%s has the same form", command)
		}
	}
	if form("python scratch_1.py") != form("python scratch_27.py") || form("psql -c 'select a'") == form("psql -c 'select b'") || form("echo 1") != 0 {
		t.Error("forms of other commands")
	}
}

// BenchmarkOutcome is a log of 200 KB.
func BenchmarkOutcome(b *testing.B) {
	q := conversation.WholeOf(strings.Repeat("09:00:00.123 DEBUG [pid 4711] lease of /tmp/shop-1a2b/x.sock taken\n--- PASS: TestPrice (0.03s)\n", 2000))
	b.SetBytes(int64(q.Size))
	for b.Loop() {
		outcomeOf(q, conversation.FailureExit, false)
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
		findings(&s, Defaults(), now)
	}
}
