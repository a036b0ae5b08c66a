// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	directed "github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

// Facts for the agent of a Feature that begins a task now.
func Facts(f *v1alpha1.Feature, effective policy.Effective, task string) instructions.Facts {
	known, finished := map[string]v1alpha1.TaskStatus{}, 0
	var states []protocol.DirectiveStatus
	if run := f.Status.Run; run != nil {
		for _, t := range run.Tasks {
			known[t.Name] = t
			if t.State == protocol.TaskDone {
				finished++
			}
		}
		for _, d := range run.Directives {
			states = append(states, protocol.DirectiveStatus{ID: d.ID, Source: d.Source, State: d.State, Age: int(d.Age), Message: d.Message})
		}
	}
	o := Added(f, Planned(f, Orders(f, effective, "", nil)))
	facts := instructions.Of(o, task, bounded(f, o.Plan, effective), func(name string) (bool, *protocol.TaskWork) {
		t := known[name]
		if t.State != protocol.TaskDone || t.Work == nil {
			return t.State == protocol.TaskDone, nil
		}
		return true, &protocol.TaskWork{Checkpoint: t.Work.CheckpointSequence, Promoted: t.Work.PromotedCheckpoints, Summary: t.Work.Summary}
	})
	facts.Directives = directed.Reported(states, directives(f, effective), finished).Instructions()
	return facts
}
