// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plans decides about plans that a model, the planner, proposes: the question, which proposals the watchdog takes, and what a plan makes of
// orders. A plan divides the work and narrows where it may go. It cannot widen anything that a user or a policy says.
package plans

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Bounds of a plan, with what is done of an earlier one.
const (
	// MaxBytes of its JSON. The status of a run and a record of the journal have room for it.
	MaxBytes      = 80 << 10
	MaxMilestones = 8
	// MaxTasks of all milestones.
	MaxTasks = 32
	// MaxInstructions of a task, in characters.
	MaxInstructions = 2000
	// MaxReasons of a plan, in characters. What is longer is cut: no plan fails because of it.
	MaxReasons = 600
	// MaxGates of a task.
	MaxGates = 8
	// MaxAreas of each list, and MaxArea, the length of a pattern in bytes.
	MaxAreas = 32
	MaxArea  = 256
)

// Hash identifies a plan.
func Hash(p protocol.Proposal) string {
	text, err := json.Marshal(p)
	if err != nil { // texts and lists of texts
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Size of a plan as JSON, in bytes. A character can take six of them.
func Size(p protocol.Proposal) int {
	text, err := json.Marshal(p)
	if err != nil { // texts and lists of texts
		return 0
	}
	return len(text)
}

// Tasks is how many tasks a plan has.
func Tasks(p protocol.Proposal) int {
	n := 0
	for _, m := range p.Milestones {
		n += len(m.Tasks)
	}
	return n
}

// Apply gives the orders with the tasks of a plan. Tasks that a user has listed come first, and a milestone of a user takes the place of a
// planned one with its name. Areas only become narrower. Gates that the user names nowhere run after the last planned task, also if the plan names
// them earlier. Orders that have a plan stay as they are.
func Apply(o protocol.Orders, p protocol.Proposal) protocol.Orders {
	if o.Planned != "" {
		return o
	}
	o.Planned = Hash(p)
	listed := slices.DeleteFunc(slices.Clone(o.Tasks), func(t protocol.Task) bool { return milestone(t.Name) == "" })
	taken := map[string]bool{}
	for _, t := range listed {
		taken[milestone(t.Name)] = true
	}
	var planned []protocol.Task
	for _, m := range p.Milestones {
		if taken[m.Name] {
			continue
		}
		for _, t := range m.Tasks {
			task := protocol.Task{Name: m.Name + "/" + t.Name, Instructions: t.Instructions}
			for _, g := range t.Gates {
				if slices.ContainsFunc(o.Gates, func(have protocol.Gate) bool { return have.Name == g }) { // a user may have removed it since
					task.Gates = append(task.Gates, g)
				}
			}
			planned = append(planned, task)
		}
	}
	if len(planned) == 0 {
		return o
	}
	if n := len(listed); n > 0 { // its last task is not the last one any more
		listed[n-1].Gates = slices.DeleteFunc(slices.Clone(listed[n-1].Gates), func(g string) bool { return slices.Contains(o.Unnamed, g) })
	}
	o.Tasks = withUnnamed(slices.Concat(listed, planned), o.Unnamed)
	o.Plan.Proposed = p.Allowed
	o.Plan.Forbidden = slices.Concat(o.Plan.Forbidden, p.Forbidden)
	return o
}

// withUnnamed adds to the last task the gates that a user names nowhere.
func withUnnamed(tasks []protocol.Task, gates []string) []protocol.Task {
	last := &tasks[len(tasks)-1]
	last.Gates = slices.Clone(last.Gates)
	for _, g := range gates {
		if !slices.Contains(last.Gates, g) {
			last.Gates = append(last.Gates, g)
		}
	}
	return tasks
}

// milestone of a task by the task's name; empty for the task that the prompt is.
func milestone(task string) string {
	name, _, divided := strings.Cut(task, "/")
	if !divided {
		return ""
	}
	return name
}
