// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/steering"
)

// operated leaves out of the conversation what repeats itself, and says there what it was. Where nothing does, the model is only told. Before is what
// was left out, and after what stands in its place.
func (r *record) operated(request dialect.Request, turn conversation.Turn, step steering.Step, said dialect.Steering) (operated dialect.Steering, before []byte, after string) {
	found := r.Book.Repeats(request.Conversation(), turn.Ends, func(tool string) bool {
		return step.Finding.Tool == "" || step.Finding.Tool == anomaly.Name(tool)
	})
	if len(found.Spans) == 0 {
		return said, nil, ""
	}
	list := request.Conversation().List()
	for _, span := range found.Spans {
		before = append(before, list[turn.Ends[span.From-1]:turn.Ends[span.To-1]]...)
	}
	after = steering.Summary(found)
	said.Cuts = dialect.Cutting(said.Cuts, found.Spans)
	at := found.Spans[0].From
	for _, c := range said.Cuts {
		if c.From < at && at <= c.To { // what stood before it was left out earlier
			at = c.From
		}
	}
	said.Notes = append(slices.Clip(said.Notes), dialect.Note{After: at, Text: after})
	return said, before, after
}
