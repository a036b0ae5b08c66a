// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/failures"
)

var update = flag.Bool("update", false, "write the findings into the transcripts")

// TestTranscripts replays testdata/*.txt. Each line is a duration since the one before and what was seen then; "=>" lines say what is wrong
// from then on. A line is one of
//
//	10s turn CALL | CALL | say WORDS | told WORDS | @2 | again | compacted | took 5m
//	10s answer 80/100            tokens of the window, of Main or of @2; "asks CALL" for tools that it calls
//	10s failed 429 BackendAvoided    the gateway's reason, where it is its own answer
//	10s work tree=T changed Valid
//	rules compacts 100 33000     a client that does so by itself, as in Compaction; "rules role" for an agent with a role
//	10s pulse cpu=12s processes=3 output=100 idle answers lives
//
// A call is Name(arguments)!Failure=result; Edit(path: old -> new) is an edit, and
// Write(path: content) writes a whole file. "x5" before a word repeats the line; # in its calls, words and
// figures counts then, and ~ is another word each time. Before each turn the model answers and calls the tools, as long before it as the turn took (1s).
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
			got := replay(t, string(want), false)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want), got); diff != "" && !*update {
				t.Errorf("transcript (-want +got), -update accepts it:\n%s", diff)
			}
			if again := replay(t, string(want), true); again != got {
				t.Errorf("a watchdog that begins anew before each line sees other things:\n%s", cmp.Diff(got, again))
			}
		})
	}
}

// TestDetectorsHaveTranscripts demands of each detector that it finds something in its own transcript, and nothing in the one in which it must
// not.
func TestDetectorsHaveTranscripts(t *testing.T) {
	names := []string{"pace"}
	for _, d := range detectors() {
		names = append(names, d.name)
	}
	for _, name := range names {
		for file, want := range map[string]bool{name: true, name + "-not": false} {
			text, err := os.ReadFile("testdata/" + file + ".txt")
			if err != nil {
				t.Error(err)
				continue
			}
			if got := regexp.MustCompile(`(?m)^=> .*(: |[(+])` + name + `[ (+)]`).Match(text); got != want {
				t.Errorf("%s finds something in %s.txt: %t, want %t", name, file, got, want)
			}
		}
	}
}

// TestHealthyRunsAreSilent holds what must never raise anything, whatever -update wrote.
func TestHealthyRunsAreSilent(t *testing.T) {
	files, err := filepath.Glob("testdata/healthy-*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("transcripts of healthy runs: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(replay(t, string(text), false), "\n=>") {
			t.Errorf("%s raises something", file)
		}
	}
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type player struct {
	t       *testing.T
	state   State
	rules   Thresholds
	now     time.Time
	turns   map[int]int
	last    map[int]time.Time // of each thread, its last turn or answer
	said    string
	restart bool
	out     strings.Builder
}

func replay(t *testing.T, transcript string, restart bool) string {
	p := &player{t: t, rules: Defaults(), now: epoch, turns: map[int]int{}, last: map[int]time.Time{}, restart: restart}
	for line := range strings.Lines(transcript) {
		line = strings.TrimSuffix(line, "\n")
		fields := strings.Fields(line)
		switch {
		case len(fields) > 0 && fields[0] == "=>":
		case len(fields) == 0, strings.HasPrefix(line, "#"):
			p.out.WriteString(line + "\n")
		case fields[0] == "rules":
			p.out.WriteString(line + "\n")
			p.rules.Role = fields[1] == "role"
			if fields[1] == "compacts" {
				if _, err := fmt.Sscan(strings.Join(fields[2:], " "), &p.rules.Compaction.Percent, &p.rules.Compaction.Free); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
			}
		default:
			p.out.WriteString(line + "\n")
			p.line(line, fields)
		}
	}
	return p.out.String()
}

var repeated = regexp.MustCompile(`^(\S+) x(\d+) `)

func (p *player) line(line string, fields []string) {
	times := 1
	if m := repeated.FindStringSubmatch(line); m != nil {
		times, _ = strconv.Atoi(m[2])
		line, fields = repeated.ReplaceAllString(line, "$1 "), append(fields[:1:1], fields[2:]...)
	}
	for i := range times {
		after, err := time.ParseDuration(fields[0])
		if err != nil {
			p.t.Fatalf("%q: %v", line, err)
		}
		if p.restart {
			p.begin()
		}
		p.now = p.now.Add(after)
		_, rest, _ := strings.Cut(line, fields[1])
		p.event(fields[1], strings.NewReplacer("#", strconv.Itoa(i+1), "~", strings.Repeat("x", i+1)).Replace(strings.TrimSpace(rest)))
		p.look()
	}
}

// begin anew, with what was written down.
func (p *player) begin() {
	text, err := json.Marshal(p.state)
	if err != nil {
		p.t.Fatal(err)
	}
	p.state = State{}
	if err := json.Unmarshal(text, &p.state); err != nil {
		p.t.Fatal(err)
	}
}

// look writes what is wrong where that is something else than before.
func (p *player) look() {
	var said, full strings.Builder
	for _, f := range findings(&p.state, p.rules, p.now) {
		if f.Causes != "" {
			f.Detector += "(" + f.Causes + ")"
		}
		words := fmt.Sprintf("%s T%d %s", f.Kind, f.Thread, f.Detector)
		tier := map[Tier]string{Warn: "warn", Surgery: "surgery", Breaker: "breaker"}[f.Tier]
		if f.Kind == PaceEscalated {
			tier = f.Level.String()
		}
		if f.Mute {
			tier += " mute"
		}
		if f.Calm {
			tier = "calm"
		}
		if f.Cause != "" {
			tier += " caused by " + f.Cause
		}
		fmt.Fprintf(&said, "%s %s\n", words, tier)
		fmt.Fprintf(&full, "=> %s turn %d: %s T%d: %s %s, since %d, %s\n", p.now.Sub(epoch), p.turns[f.Thread], f.Kind, f.Thread, f.Detector, tier, f.Turn, f.Evidence)
	}
	if said.String() == p.said {
		return
	}
	p.said = said.String()
	if full.Len() == 0 {
		fmt.Fprintf(&full, "=> %s nothing\n", p.now.Sub(epoch))
	}
	p.out.WriteString(full.String())
}

func (p *player) event(name, rest string) {
	switch name {
	case "turn":
		p.turn(rest)
	case "answer":
		p.answer(rest)
	case "failed":
		words := strings.Fields(rest)
		var a failures.Answer
		if a.Status, _ = strconv.Atoi(words[0]); len(words) > 1 && !strings.HasPrefix(words[1], "@") {
			a.Reason = words[1]
		}
		p.state.Failed(threadOf(rest), a, p.now)
	case "work":
		var w Work
		for f := range strings.FieldsSeq(rest) {
			if tree, is := strings.CutPrefix(f, "tree="); is {
				w.Tree = tree
			} else if f == "changed" {
				w.Changed = true
			} else {
				w.Verdict = f
			}
		}
		p.state.Work(w, p.now)
	case "pulse":
		pulse := Pulse{CPU: p.state.Used.CPU, Processes: 3, Output: p.state.Used.Output}
		for f := range strings.FieldsSeq(rest) {
			key, value, _ := strings.Cut(f, "=")
			n, _ := strconv.Atoi(value)
			d, _ := time.ParseDuration(value)
			switch key {
			case "cpu":
				pulse.CPU += d
			case "processes":
				pulse.Processes = n
			case "output":
				pulse.Output += int64(n)
			case "answers":
				pulse.Answers = true
			case "lives":
				pulse.Lives = true
			case "idle":
				pulse.Idle = true
			}
		}
		p.state.Pulse(pulse, p.now)
	default:
		p.t.Fatalf("unknown event %q", name)
	}
}

func threadOf(text string) int {
	if _, number, is := strings.Cut(text, "@"); is {
		n, _ := strconv.Atoi(number[:1])
		return n
	}
	return 1
}

func (p *player) turn(text string) {
	c := conversation.Turn{Thread: 1, Kind: conversation.KindMain}
	took := time.Second
	var tools []conversation.Tool
	for part := range strings.SplitSeq(text, " | ") {
		word, rest, _ := strings.Cut(part, " ")
		switch {
		case part == "again":
			c.Again = true
		case part == "compacted":
			c.Compacted = true
		case word == "say":
			c.Said = append(c.Said, conversation.QuoteOf(strings.ReplaceAll(rest, `\n`, "\n")))
		case word == "told":
			c.Told = append(c.Told, conversation.QuoteOf(rest))
		case word == "took":
			took, _ = time.ParseDuration(rest)
		case strings.HasPrefix(part, "@"):
			c.Thread, c.Kind = threadOf(part), conversation.KindSub
		case part != "":
			s := p.step(part)
			c.Steps = append(c.Steps, s)
			tools = append(tools, conversation.Tool{Name: s.Call.Name, Arguments: []byte(s.Call.Arguments.Text)})
		}
	}
	if !c.Again {
		p.turns[c.Thread]++
	}
	c.Number = p.turns[c.Thread]
	if answered := p.now.Add(-took); c.Number > 1 && !c.Again {
		if answered.Before(p.last[c.Thread]) {
			answered = p.last[c.Thread]
		}
		p.state.Answer(c.Thread, conversation.Answer{Tools: tools, Ended: true}, 0, answered)
	}
	p.last[c.Thread] = p.now
	p.state.Turn(c, p.now)
}

func (p *player) answer(text string) {
	a := conversation.Answer{Ended: true, Counted: true}
	head, asks, _ := strings.Cut(text, "asks ")
	if asks != "" {
		s := p.step(asks)
		a.Tools = []conversation.Tool{{Name: s.Call.Name, Arguments: []byte(s.Call.Arguments.Text)}}
	}
	used, window, _ := strings.Cut(strings.Fields(head)[0], "/")
	a.Usage.Input, _ = strconv.ParseInt(used, 10, 64)
	size, _ := strconv.ParseInt(window, 10, 64)
	thread := threadOf(head)
	p.last[thread] = p.now
	p.state.Answer(thread, a, size, p.now)
}

var call = regexp.MustCompile(`(?s)^(\w+)\((.*?)\)(?:!(\w+))?(?:=(.*))?$`)

func (p *player) step(text string) conversation.Step {
	m := call.FindStringSubmatch(text)
	if m == nil {
		p.t.Fatalf("%q is no call", text)
	}
	arguments := map[string]string{"file_path": m[2]}
	if path, change, is := strings.Cut(m[2], ": "); is && m[1] == "Edit" {
		before, after, _ := strings.Cut(change, " -> ")
		arguments = map[string]string{"file_path": path, "old_string": before, "new_string": after}
	} else if is && m[1] == "Write" {
		arguments = map[string]string{"file_path": path, "content": strings.ReplaceAll(change, `\n`, "\n")}
	} else if m[1] == "Bash" {
		arguments = map[string]string{"command": m[2]}
	}
	encoded, err := json.Marshal(arguments)
	if err != nil {
		p.t.Fatal(err)
	}
	return conversation.Step{
		Call:    conversation.Call{Name: m[1], Arguments: conversation.QuoteOf(string(encoded)), Edit: conversation.EditOf(encoded)},
		Result:  conversation.QuoteOf(strings.ReplaceAll(m[4], `\n`, "\n")),
		Failure: conversation.Failure(m[3]),
	}
}
