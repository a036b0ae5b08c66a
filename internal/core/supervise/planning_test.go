// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// planned is a Feature whose user edits planning and requests at any moment, while the planner proposes or fails.
type planned struct {
	state    supervise.State
	planning string
	requests []protocol.Request
	// journaled are the requests of an earlier moment.
	journaled []protocol.Request
	answered  map[string]int
	made      supervise.Made
	asked     bool
	tasks     []string
	done      map[string]bool
	plans     int
}

func (p *planned) ordered() { p.follow(p.requests, false) }

func (p *planned) follow(requests []protocol.Request, journaled bool) {
	o := protocol.Orders{Planning: p.planning}
	tasks := []string{"login"}
	if p.planning != "" && p.made.Hash != "" {
		tasks = p.tasks
	}
	for _, name := range tasks {
		o.Tasks = append(o.Tasks, protocol.Task{Name: name})
	}
	o.Requests = append(o.Requests, requests...)
	p.state = p.state.Apply(supervise.Ordered{Orders: o, Journaled: journaled, Answered: func(id string) bool { return p.answered[id] > 0 }, Done: func(name string) bool { return p.done[name] }, Made: p.made, Planned: p.asked}, epoch)
}

// attempt begins with orders of the manager, which are journaled.
func (p *planned) attempt() {
	p.state, p.journaled = supervise.State{}, slices.Clone(p.requests)
	p.ordered()
	p.state = p.state.Apply(supervise.Connected{}, epoch)
}

// crash continues with the journaled orders until the manager sends others.
func (p *planned) crash() {
	p.state = supervise.State{}
	p.follow(p.journaled, true)
	p.state = p.state.Apply(supervise.Connected{}, epoch)
}

// act carries out what is wanted. The result is false if the watchdog waits.
func (p *planned) act(t *rapid.T) bool {
	a := supervise.Next(p.state, epoch)
	for _, id := range []string{a.Request.ID, a.Answer.ID} {
		if id != "" && !slices.ContainsFunc(p.requests, func(r protocol.Request) bool { return r.ID == id }) {
			t.Fatalf("request %s was withdrawn, and the watchdog wants %+v", id, a)
		}
	}
	if a.Kind == supervise.Wait {
		return false
	}
	p.state = p.state.Begin(a)
	switch a.Kind {
	case supervise.Plan:
		p.plan(t, a)
	case supervise.ApprovePlan:
		if a.Request.Hash != p.made.Hash {
			t.Fatalf("the approval of %s counts for %s", a.Request.Hash, p.made.Hash)
		}
		p.made.Approved = true
		p.answered[a.Answer.ID]++
		p.state = p.state.Apply(supervise.PlanApproved{Answer: a.Answer}, epoch)
	case supervise.Answer:
		p.answered[a.Answer.ID]++
		p.state = p.state.Apply(supervise.Answered{Answer: a.Answer}, epoch)
	case supervise.Start:
		if p.planning == protocol.PlanningApprove && p.made.Hash != "" && !p.made.Approved {
			t.Fatalf("task %s starts, and nobody has approved the plan %s", a.Task, p.made.Hash)
		}
		p.state = p.state.Apply(supervise.Started{}, epoch).Apply(supervise.AgentExited{}, epoch)
	case supervise.Kill:
		p.state = p.state.Apply(supervise.Killed{}, epoch)
	case supervise.Checkpoint:
		if a.Closes {
			p.done[a.Task] = true
		}
		p.state = p.state.Apply(supervise.Taken{Action: a, Settled: true, Completes: a.Closes}, epoch)
	case supervise.Drop:
		p.state = p.state.Apply(supervise.Dropped{Task: a.Task}, epoch)
	case supervise.Finish:
		p.state = p.state.Apply(supervise.Finished{Final: &a.Final}, epoch)
	default:
		t.Fatalf("%+v", a)
	}
	return true
}

func (p *planned) plan(t *rapid.T, a supervise.Action) {
	p.asked = true
	e := supervise.Planned{Request: a.Request.ID}
	if rapid.Bool().Draw(t, "no plan") {
		e.Missing = "503"
	} else {
		p.plans++
		p.made = supervise.Made{Hash: fmt.Sprint("plan-", p.plans), Request: a.Request.ID}
		p.tasks = slices.DeleteFunc(p.tasks, func(name string) bool { return !p.done[name] })
		p.tasks = append(p.tasks, fmt.Sprintf("m/t%d", p.plans))
	}
	p.state = p.state.Apply(e, epoch)
	p.ordered()
}

// TestPlanningConverges: whatever a user edits, no agent works by a plan that waits for an approval, each request gets one answer while an agent's
// pod runs, and the watchdog neither waits for nothing nor acts for ever.
func TestPlanningConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &planned{answered: map[string]int{}, done: map[string]bool{}, planning: rapid.SampledFrom([]string{"", protocol.PlanningAuto, protocol.PlanningApprove}).Draw(t, "planning")}
		p.attempt()
		ids := 0
		for range rapid.IntRange(1, 30).Draw(t, "edits") {
			switch rapid.SampledFrom([]string{"planning", "replan", "approve", "withdraw", "crash", "answer", "work", "work"}).Draw(t, "edit") {
			case "planning":
				p.planning = rapid.SampledFrom([]string{"", protocol.PlanningAuto, protocol.PlanningApprove}).Draw(t, "planning")
				p.ordered()
			case "replan":
				ids++
				p.requests = append(p.requests, protocol.Request{ID: fmt.Sprint("r", ids), Kind: protocol.RequestReplan})
				p.ordered()
			case "approve":
				ids++
				hash := rapid.SampledFrom([]string{p.made.Hash, "other"}).Draw(t, "hash")
				p.requests = append(p.requests, protocol.Request{ID: fmt.Sprint("r", ids), Kind: protocol.RequestApprovePlan, Hash: hash})
				p.ordered()
			case "withdraw":
				p.requests = nil
				p.ordered()
			case "crash":
				p.crash()
			case "answer":
				p.ordered()
			case "work":
				if p.state.Over() {
					p.attempt()
				}
				p.act(t)
			}
		}
		p.requests = slices.DeleteFunc(p.requests, func(r protocol.Request) bool { return p.answered[r.ID] > 0 })
		if p.state.Over() {
			p.attempt()
		}
		p.ordered() // the manager is back
		for n := 0; !p.state.Over(); n++ {
			if !p.act(t) || n > 400 {
				t.Fatalf("after %d acts the watchdog wants %+v: %+v", n, supervise.Next(p.state, epoch), p.state)
			}
		}
		for id, n := range p.answered {
			if n != 1 {
				t.Fatalf("request %s has %d answers", id, n)
			}
		}
		for _, r := range p.requests {
			if p.answered[r.ID] == 0 {
				t.Fatalf("request %+v has no answer, and the attempt has ended with %+v", r, p.state.Final)
			}
		}
	})
}
