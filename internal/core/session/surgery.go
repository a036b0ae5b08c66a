// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/session/steering"
)

// operated leaves out of the conversation what repeats itself, and says there what it was. If nothing does, the model only gets a message.
func (d *decision) operated(p Pending, step steering.Step, said dialect.Edits) dialect.Edits {
	found := d.s.Book.Repeats(p.request.Conversation(), p.turn.Ends, func(tool string) bool {
		return step.Finding.Tool == "" || step.Finding.Tool == anomaly.Name(tool)
	})
	if len(found.Spans) == 0 {
		return said
	}
	list := p.request.Conversation().List()
	var before []byte
	for _, span := range found.Spans {
		before = append(before, list[p.turn.Ends[span.From-1]:p.turn.Ends[span.To-1]]...)
	}
	after := steering.Summary(found)
	said.Cuts = dialect.Cutting(said.Cuts, found.Spans)
	at := found.Spans[0].From
	for _, c := range said.Cuts {
		if c.From < at && at <= c.To { // what stood before it was left out earlier
			at = c.From
		}
	}
	said.Notes = append(slices.Clip(said.Notes), dialect.Note{After: at, Text: after})
	d.leftOut(before, after)
	return said
}
