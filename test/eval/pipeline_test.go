// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steer"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/core/session"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// kind of what can be wrong.
type kind = string

// Signals are what a watchdog sees of an agent beside its conversation.
type Signals struct {
	// Tree of the files that was captured last, whether paths have changed since the last signals, and what was decided about the last checkpoint.
	Tree    string
	Changed bool
	Verdict string
	// Pulse says that processes were looked at: CPU time that they have used, how many they are, and how many bytes the agent has printed,
	// which no watchdog hears, and whether it has ended its turn.
	Pulse     bool
	CPU       time.Duration
	Processes int
	Output    int64
	Idle      bool
}

// Finding is what is wrong as far as a pipeline says.
type Finding struct {
	Kind     kind
	Evidence string
}

// reply of the provider.
type reply struct {
	status int
	// kind of its content, as HTTP names it.
	kind string
	body []byte
	// half says that the connection breaks off after it.
	half bool
	// more says that the rest of the answer follows.
	more bool
}

// refusal of the provider.
func refusal(c client, status int) reply {
	return reply{status: status, kind: "application/json", body: c.wire().Error(dialect.Failure{Status: status, Message: "Not now."})}
}

func (c client) wire() dialect.Dialect {
	d, _ := dialect.Find(c.dialect)
	return d
}

// Pipeline is what is tried: the supervision of one run.
type Pipeline interface {
	// Request of the agent, byte by byte. It gives the number of its conversation, and what the agent is told that it was not told before.
	Request(body []byte, now time.Time) (thread int, told []string)
	// Answer of the provider to the last request.
	Answer(r reply, now time.Time)
	// Signals that have come.
	Signals(s Signals, now time.Time)
	// Findings of now.
	Findings(now time.Time) []Finding
	// Close says that the run is over.
	Close()
}

// configuration is what a policy says of the agents that are supervised.
type configuration struct {
	// name is a heading of the page.
	name string
	// plan says that the policy names the agent's role, so that the work is held to a plan.
	plan bool
}

// configurations that are tried: the one that holds where nobody configures anything, and the one of an agent with a role. The role sets nothing, so
// that all figures are the built-in ones in both.
func configurations() []configuration {
	return []configuration{{name: "Without a policy"}, {name: "With a policy that names the agent's role", plan: true}}
}

// terms of all runs with a client.
func (c configuration) terms(of client) session.Terms {
	p := policy.Merge(policy.Sources{})
	if c.plan {
		p.Roles = []policy.Role{{Name: role}}
	}
	r, _ := runtimes.Find(of.name)
	return session.NewTerms("form", &p, role, r.Compaction())
}

// role of all agents.
const role = "implementor"

// kinds that may be reported of a run, the one that says best what is wrong first: without a plan, nothing falls off it.
func (c configuration) kinds(all []kind) []kind {
	return slices.DeleteFunc(slices.Clone(all), func(k kind) bool { return k == escalated && !c.plan })
}

// supervisor is the watchdog's own, on the clock of a run.
type supervisor struct {
	*steer.Service

	mu   sync.Mutex
	now  time.Time
	kept []byte
}

func newSupervisor(c configuration, of client) *supervisor {
	s, terms := &supervisor{now: began}, c.terms(of)
	s.Service = steer.New(steer.Options{Terms: func() session.Terms { return terms }, Cache: s, Recorder: unwritten{}, Now: s.clock, Log: slog.New(slog.DiscardHandler)})
	return s
}

// unwritten is a record that nobody reads: what was done is found in the requests.
type unwritten struct{}

// Recorded implements steer.Recorder.
func (unwritten) Recorded() journal.Steered { return journal.Steered{} }

// Steered implements steer.Recorder.
func (unwritten) Steered(protocol.SteeringStep) error { return nil }

func (s *supervisor) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *supervisor) set(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// Load implements steer.Cache.
func (s *supervisor) Load() ([]byte, error) { return nil, nil }

// Keep implements steer.Cache.
func (s *supervisor) Keep(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = data
	return nil
}

// thread of the last request, as the supervisor remembers it when it ends.
func (s *supervisor) thread() int {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	s.Follow(over, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	var memory struct {
		Book struct {
			Threads []struct {
				ID   int
				Last int64
			}
		}
	}
	if err := json.Unmarshal(s.kept, &memory); err != nil {
		panic(err)
	}
	id, last := 0, int64(0)
	for _, t := range memory.Book.Threads {
		if t.Last > last {
			id, last = t.ID, t.Last
		}
	}
	return id
}

// notes of the supervisor in a request, as the model reads them.
func notes(body []byte) []string {
	var list []string
	for text := string(body); ; {
		at := strings.Index(text, steering.Tag)
		if at < 0 {
			return list
		}
		text = text[at:]
		end := 0
		for text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		var note string
		if err := json.Unmarshal([]byte(`"`+text[:end+1]), &note); err != nil {
			panic(err)
		}
		list, text = append(list, note), text[end:]
	}
}
