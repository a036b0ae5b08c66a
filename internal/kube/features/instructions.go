// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package features

import (
	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/instructions"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// Facts for the agent of a Feature that begins a task now.
func Facts(f *v1alpha1.Feature, effective policy.Effective, task string) instructions.Facts {
	known := map[string]v1alpha1.TaskStatus{}
	if f.Status.Run != nil {
		for _, t := range f.Status.Run.Tasks {
			known[t.Name] = t
		}
	}
	return instructions.Of(Orders(f, effective, "", nil), task, Bounds(f, effective), func(name string) (bool, *protocol.TaskWork) {
		t := known[name]
		if t.State != protocol.TaskDone || t.Work == nil {
			return t.State == protocol.TaskDone, nil
		}
		return true, &protocol.TaskWork{Checkpoint: t.Work.CheckpointSequence, Promoted: t.Work.PromotedCheckpoints, Summary: t.Work.Summary}
	})
}
