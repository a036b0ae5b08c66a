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

// knowledgePlace stands for the knowledge of a team: the manager does not have the repository.
const knowledgePlace = "(Here the watchdog puts the rules of the documents in docs/knowledge of the repository that meet the task. features/history says which documents each task got.)"

// Facts for the agent of a Feature that begins a task now.
func Facts(f *v1alpha1.Feature, effective policy.Effective, task string) instructions.Facts {
	known, finished, polished := map[string]v1alpha1.TaskStatus{}, 0, 0
	var states []protocol.DirectiveStatus
	given := directives(f, effective)
	if run := f.Status.Run; run != nil {
		for _, t := range run.Tasks {
			known[t.Name] = t
			if !protocol.Directs(t.Name) && (t.State == protocol.TaskDone || t.State == protocol.TaskAborted) {
				finished++
			}
			if protocol.Polishes(t.Name) {
				polished++
			}
		}
		for _, d := range run.Directives {
			states = append(states, protocol.DirectiveStatus{ID: d.ID, Source: d.Source, State: d.State, Age: int(d.Age), Message: d.Message})
		}
		given = append(given, reviewed(run.Directives)...)
	}
	o := Added(f, Planned(f, Orders(f, effective, "", nil)))
	facts := instructions.Of(o, task, bounded(f, o.Plan, effective), func(name string) instructions.Task {
		t := known[name]
		is := instructions.Task{Done: t.State == protocol.TaskDone, Aborted: t.State == protocol.TaskAborted}
		if t.Work == nil || !is.Done && !is.Aborted {
			return is
		}
		is.Work = &protocol.TaskWork{Checkpoint: t.Work.CheckpointSequence, Promoted: t.Work.PromotedCheckpoints, Summary: t.Work.Summary}
		if is.Aborted {
			is.Message = t.Message
		}
		return is
	})
	if effective.Knowledge.Inject {
		facts.Knowledge = []string{knowledgePlace}
	}
	hold := polished < effective.Reviewers.PolishTasks && !protocol.Polishes(task)
	facts.Directives = directed.Reported(states, given, finished).Hold(hold).Instructions()
	return facts
}
