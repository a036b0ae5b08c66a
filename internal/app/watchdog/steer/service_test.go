// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
	"github.com/tidewaiter/tidewaiter/internal/pod/modelproxy"
)

// shelf keeps what is remembered, until the plug is pulled.
type shelf struct {
	data   []byte
	pulled bool
}

func (s *shelf) Load() ([]byte, error) { return s.data, nil }

func (s *shelf) Keep(data []byte) error {
	if !s.pulled {
		s.data = bytes.Clone(data)
	}
	return nil
}

// agent is one that repeats its conversation in each request, as the CLIs do.
type agent struct {
	t       *testing.T
	dialect dialect.Dialect
	service *Service
	shelf   *shelf
	book    *book
	reach   steering.Reach
	policy  policy.Effective
	task    string
	attempt int64
	now     time.Time
	// clock of the service; nil for now.
	clock   func() time.Time
	entries []string
	calls   int
	// directives of people; nil for none.
	directives Directives
	// ids of calls and of their results, in the dialect gemini; nil for the same one.
	ids func(call string) (called, result string)
	// acknowledged is what is kept of what the agent acknowledges; away keeps nothing.
	acknowledged []protocol.Acknowledgment
	away         error
	// client alters the conversation as it is sent; nil for one that does not.
	client func(entries []string) []string
}

func newAgent(t *testing.T, name string) *agent {
	t.Helper()
	d, ok := dialect.Find(name)
	if !ok {
		t.Fatal(name)
	}
	a := &agent{t: t, dialect: d, shelf: &shelf{}, book: &book{}, task: "form", attempt: 2, now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), policy: policy.Merge(policy.Sources{})}
	a.begin()
	a.entries = []string{a.says("user", "Add a form.")}
	return a
}

// begin a watchdog, or another one that remembers what the last one has kept.
func (a *agent) begin() {
	a.shelf.pulled = false
	clock := a.clock
	if clock == nil {
		clock = func() time.Time { return a.now }
	}
	a.service = New(Options{
		Terms: func() session.Terms { return session.NewTerms(a.task, &a.policy, "implementor", anomaly.Compaction{}) },
		Cache: a.shelf, Recorder: a.book, Attempt: a.attempt, Reach: a.reach, Directives: a.directives, Acknowledged: a.keeps, Now: clock, Log: slog.New(slog.DiscardHandler),
	})
}

func (a *agent) keeps(x protocol.Acknowledgment) error {
	if a.away == nil {
		a.acknowledged = append(a.acknowledged, x)
	}
	return a.away
}

func (a *agent) says(role, text string) string {
	switch a.dialect.Name {
	case "openai-responses":
		return fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":"input_text","text":%q}]}`, role, text)
	case "gemini":
		if role == "assistant" {
			role = "model"
		}
		return fmt.Sprintf(`{"role":%q,"parts":[{"text":%q}]}`, role, text)
	}
	return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text)
}

// called gives a call and its result as entries of the dialect.
func (a *agent) called(tool, arguments, result string) []string {
	a.calls++
	id := fmt.Sprintf("call_%d", a.calls)
	quoted := strconv.Quote(arguments)
	switch a.dialect.Name {
	case "anthropic":
		return []string{
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s%d"},{"type":"tool_use","id":%q,"name":%q,"input":%s}]}`, a.calls, id, tool, arguments),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, id, result),
		}
	case "openai-chat":
		return []string{
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`, id, tool, quoted),
			fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, result),
		}
	case "gemini":
		of, from := id, id
		if a.ids != nil {
			of, from = a.ids(id)
		}
		return []string{
			fmt.Sprintf(`{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"id":%q,"name":%q,"args":%s},"thoughtSignature":"s%d"}]}`, of, tool, arguments, a.calls),
			fmt.Sprintf(`{"role":"user","parts":[{"functionResponse":{"id":%q,"name":%q,"response":{"output":%q}}}]}`, from, tool, result),
		}
	}
	if a.dialect.Name != "openai-responses" {
		a.t.Fatalf("say here how a model calls a tool in %s, and in says how it says something", a.dialect.Name)
	}
	return []string{
		fmt.Sprintf(`{"type":"reasoning","id":"r%d","summary":[],"encrypted_content":"x"}`, a.calls),
		fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":%q,"arguments":%s}`, id, tool, quoted),
		fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%q}`, id, result),
	}
}

// tool is an entry of a request's list of tools.
func (a *agent) tool(name string) string {
	if a.dialect.Name == "gemini" {
		return fmt.Sprintf(`{"functionDeclarations":[{"name":%q}]}`, name)
	}
	return fmt.Sprintf(`{"name":%q}`, name)
}

// bare says that a request leaves its model no tools.
func (a *agent) bare(sent string) bool {
	a.t.Helper()
	r, err := a.dialect.ReadRequest([]byte(sent))
	if err != nil {
		a.t.Fatal(err)
	}
	return r.Bare()
}

// send the conversation, and give what is sent on, and who hears of the answer.
func (a *agent) send() (string, modelproxy.Exchange) {
	a.t.Helper()
	entries := a.entries
	if a.client != nil {
		entries = a.client(slices.Clone(entries))
	}
	body := fmt.Sprintf(`{"model":"m","%s":[%s],"tools":[%s],"stream":true}`, a.dialect.History, strings.Join(entries, ","), a.tool("Read"))
	r, err := a.dialect.ReadRequest([]byte(body))
	if err != nil {
		a.t.Fatal(err)
	}
	a.now = a.now.Add(5 * time.Second)
	sent, exchange := a.service.Asked(a.t.Context(), r)
	a.now = a.now.Add(5 * time.Second)
	if !json.Valid(sent) {
		a.t.Fatalf("not JSON: %s", sent)
	}
	return string(sent), exchange
}

// ask sends the conversation, and gives what is sent on. The model then calls a tool.
func (a *agent) ask() string {
	a.t.Helper()
	sent, exchange := a.send()
	answer := &conversation.Answer{Ended: true, Stop: conversation.StopTools, Model: "large", Counted: true, Usage: conversation.Usage{Input: int64(len(sent) / 4), Output: 10}}
	answer.Call(fmt.Sprintf("call_%d", a.calls+1), "Read")
	exchange.Answered(answer, 200_000)
	return sent
}

// loop reads the same file again and again, until something is said, and gives the requests.
func (a *agent) loop(most int) (requests []string) {
	a.t.Helper()
	for range most {
		requests = append(requests, a.ask())
		if strings.Contains(requests[len(requests)-1], supervisor) {
			return requests
		}
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
	}
	a.t.Fatalf("nothing was said in %d turns", most)
	return nil
}

const supervisor = "[SUPERVISOR]"

func each(t *testing.T, test func(t *testing.T, a *agent)) {
	t.Helper()
	for _, d := range dialect.All() {
		t.Run(d.Name, func(t *testing.T) { test(t, newAgent(t, d.Name)) })
	}
}

// TestALoopIsToldOfOnce: the model is told behind what the tools have answered, and the same words stand in the same place in every later
// request, so that each begins with all of the one before, up to the end of its conversation.
func TestALoopIsToldOfOnce(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		requests := a.loop(12)
		told := requests[len(requests)-1]
		if n := len(requests); n < 4 || strings.Count(told, supervisor) != 1 {
			t.Fatalf("told in turn %d: %s", n, told)
		}
		common := strings.TrimSuffix(told[:strings.LastIndex(told, `],"tools"`)], "]}")
		// Then it does something else.
		for i := range 6 {
			a.entries = append(a.entries, a.called("Edit", fmt.Sprintf(`{"file_path":"/workspace/%d.go","old_string":"a%d","new_string":"b%d"}`, i, i, i), fmt.Sprintf("done %d", i))...)
			a.service.Moved()
			next := a.ask()
			if !strings.HasPrefix(next, common) || strings.Count(next, supervisor) != 1 {
				t.Fatalf("the request after it:\n%s\nis to begin with\n%s", next, common)
			}
		}
		if c := a.service.Conversation(); len(c.Anomalies) != 0 || c.Health != protocol.HealthNominal {
			t.Errorf("the loop is over: %+v", c)
		}
	})
}

// TestAWatchdogThatBeginsAnew in the midst of an episode neither forgets what was said nor says it again.
func TestAWatchdogThatBeginsAnew(t *testing.T) {
	each(t, func(t *testing.T, a *agent) {
		requests := a.loop(12)
		told := requests[len(requests)-1]
		a.begin()
		again := a.ask() // the agent did not get its answer
		if again != told {
			t.Errorf("(-before +after):\n%s", cmp.Diff(told, again))
		}
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
		if next := a.ask(); strings.Count(next, supervisor) != 1 {
			t.Errorf("said %d times: %s", strings.Count(next, supervisor), next)
		}
		if c := a.service.Conversation(); len(c.Anomalies) == 0 || c.Anomalies[0].Type != "AgentLooping" || !strings.Contains(c.Anomalies[0].Message, "the watchdog told the model") {
			t.Errorf("%+v", c)
		}
	})
}

// TestARequestWithoutAPlace: a model is told with the next request what could not be said in one that ends with its own words.
func TestARequestWithoutAPlace(t *testing.T) {
	told := len(newAgent(t, "anthropic").loop(12)) // the turn in which it is told otherwise
	a := newAgent(t, "anthropic")
	for range told - 1 {
		a.ask()
		a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
	}
	a.entries = append(a.entries, `{"role":"assistant","content":"Well,"}`)
	if sent := a.ask(); strings.Contains(sent, supervisor) {
		t.Errorf("told behind the model's words: %s", sent)
	}
	if a.service.Told() {
		t.Error("told before there is a place for it")
	}
	a.begin()
	a.entries = append(a.entries, a.says("user", "Go on."))
	for range 2 {
		if sent := a.ask(); strings.Count(sent, supervisor) != 1 || !strings.Contains(sent, `{"type":"text","text":"Go on."},{"type":"text","text":"[SUPERVISOR]`) {
			t.Errorf("told %d times: %s", strings.Count(sent, supervisor), sent)
		}
		a.entries = append(a.entries, a.called("Edit", `{"file_path":"/workspace/a.go","old_string":"a","new_string":"b"}`, "done")...)
	}
}

// TestWhoIsNotTold: under Audit, at the first rung of the ladder and with supervision off only people are told.
func TestWhoIsNotTold(t *testing.T) {
	for name, change := range map[string]func(*policy.Effective){
		"Audit":   func(p *policy.Effective) { p.Enforcement = policy.Audit },
		"Observe": func(p *policy.Effective) { p.Anomalies.Ladder = policy.RungObserve },
		"off":     func(p *policy.Effective) { p.Supervision.Enabled = false },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, "anthropic")
			change(&a.policy)
			for range 12 {
				if sent := a.ask(); strings.Contains(sent, supervisor) || a.bare(sent) {
					t.Fatalf("told: %s", sent)
				}
				a.entries = append(a.entries, a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")...)
			}
			if c := a.service.Conversation(); len(c.Anomalies) == 0 || c.Anomalies[0].Type != "AgentLooping" || a.service.Told() {
				t.Errorf("people are not told: %+v", c)
			}
		})
	}
}

// TestPeopleAreToldOfBoth: what is seen is reported at once, and so is what was done about it.
func TestPeopleAreToldOfBoth(t *testing.T) {
	a := newAgent(t, "anthropic")
	var said []string
	for range 6 {
		a.ask()
		select {
		case <-a.service.Changed():
			for _, anomaly := range a.service.Conversation().Anomalies {
				said = append(said, anomaly.Message)
				if told := strings.Contains(anomaly.Message, "the watchdog told the model"); told != a.service.Told() {
					t.Errorf("told: %t: %s", a.service.Told(), anomaly.Message)
				}
			}
		default:
		}
		call := a.called("Bash", `{"command":"make lint"}`, "Error: no such file or directory")
		if a.calls == 1 { // so that it is not yet time to say something when it is seen
			call = a.called("Read", `{"file_path":"/workspace/a.go"}`, "package a")
		}
		a.entries = append(a.entries, call...)
	}
	if len(said) < 2 || strings.Contains(said[0], "the watchdog told the model") || !strings.Contains(said[1], "the watchdog told the model") {
		t.Errorf("reported %q", said)
	}
}

// TestAnotherTask begins another conversation; its turns are counted on.
func TestAnotherTask(t *testing.T) {
	a := newAgent(t, "openai-chat")
	turns := int64(len(a.loop(12)))
	a.task, a.entries = "tests", []string{a.says("user", "Add tests.")}
	a.ask()
	c := a.service.Conversation()
	if c.Turn != turns+1 || len(c.Anomalies) != 0 || c.ToolFailures != 0 || a.service.Told() {
		t.Errorf("after %d turns: %+v", turns, c)
	}
	if steps := a.book.steps; len(steps) != 2 || !steps[1].Over || steps[1].Task != "form" || steps[1].Rung != "Nudge" {
		t.Errorf("the end of the anomaly: %+v", steps)
	}
}

// TestReports: people are told at once of what is wrong, and otherwise every few turns, and not more often than managers can write.
func TestReports(t *testing.T) {
	a := newAgent(t, "anthropic")
	told := func() bool {
		select {
		case <-a.service.Changed():
			return true
		default:
			return false
		}
	}
	var turns []int
	for turn := 1; turn <= 16; turn++ {
		a.ask()
		if told() {
			turns = append(turns, turn)
		}
		a.entries = append(a.entries, a.called("Read", fmt.Sprintf(`{"file_path":"/workspace/%d.go"}`, turn), fmt.Sprintf("package p%d", turn))...)
	}
	if diff := cmp.Diff([]int{1, 6, 11, 16}, turns); diff != "" {
		t.Errorf("reports in turns %v", turns)
	}
	c := a.service.Conversation()
	if c.Turn != 16 || c.FilesRead != 15 || c.Model != "large" || c.Window != 200_000 || c.ContextTurns < 100 || c.Tool != "Read" || c.Pace != protocol.PacePrimary {
		t.Errorf("%+v", c)
	}
}
