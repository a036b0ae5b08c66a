// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

// results of tools that are new in a request, as far as they are recorded, and how many more there are.
type results struct {
	list []ledger.ToolResult
	more int64
}

// read them, where the policy has them recorded. The call holds their memory until its end.
func (r *results) read(c *call) *failure {
	kept, texts := c.caller.ToolResults.Kept()
	if !kept || c.endpoint.Kind != dialect.Generate {
		return nil
	}
	bounds := conversation.GivenBounds{Results: ledger.MaxResults}
	if texts {
		bounds.Text, bounds.Texts, bounds.Beyond = ledger.MaxResult, ledger.MaxResultTexts, ledger.MaxSecret
	}
	size := len(c.request.Bytes())
	most := int64(bounds.Most(size))
	if f := c.always.take(c.r.Context(), most); f != nil {
		return f
	}
	var given []conversation.Given
	if gone := c.work(c.r.Context(), size, func() { given, r.more = c.request.Results(bounds) }); gone != nil {
		return gone
	}
	used := int64(0)
	for _, g := range given {
		r.list = append(r.list, ledger.ToolResult(g))
		used += int64(g.Size())
	}
	c.always.give(most - used)
	return nil
}
