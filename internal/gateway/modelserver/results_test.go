// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// TestResultsAreInTheAccount: what is kept of results until the call ends is memory of its Feature, and a Feature that has none for it waits and is
// refused.
func TestResultsAreInTheAccount(t *testing.T) {
	result := `{"type":"tool_result","tool_use_id":"a","content":"` + strings.Repeat("x", ledger.MaxResult+ledger.MaxSecret) + `"}`
	body := `{"model":"m","messages":[{"role":"user","content":[` + strings.Repeat(result+",", 99) + result + `]}]}`
	for memory, refused := range map[int64]bool{64 << 20: false, 64 << 10: true} {
		s := New(Options{Limits: Limits{Memory: memory, Wait: 1}})
		c := s.called(t, "login", 1<<10)
		c.always, c.caller.ToolResults = holding{server: s, feature: "login"}, policy.ToolResultsRedacted
		var err error
		if c.request, err = c.dialect.ReadRequest([]byte(body)); err != nil {
			t.Fatal(err)
		}
		f := c.results.read(c)
		kept := int64(0)
		for _, r := range c.results.list {
			kept += int64(len(r.Text))
		}
		if refused {
			if f == nil || f.Status != http.StatusServiceUnavailable || kept > 0 {
				t.Errorf("%d bytes are kept without memory: %v", kept, f)
			}
			continue
		}
		if f != nil || len(c.results.list) != ledger.MaxResults || c.results.more != 100-ledger.MaxResults || kept < ledger.MaxResultTexts || c.always.amount < kept || c.always.amount > kept+64<<10 {
			t.Errorf("%d results and %d more with %d bytes, for which %d are held: %v", len(c.results.list), c.results.more, kept, c.always.amount, f)
		}
		if c.always.end(); s.memory.Try("login", memory/2) != nil {
			t.Error("memory is still held")
		}
	}
	// Nothing is read where nothing is recorded.
	for name, c := range map[string]*call{
		"the policy":  {endpoint: dialect.Endpoint{Kind: dialect.Generate}, caller: Caller{ToolResults: policy.ToolResultsOff}},
		"no policy":   {endpoint: dialect.Endpoint{Kind: dialect.Generate}},
		"a newer one": {endpoint: dialect.Endpoint{Kind: dialect.Generate}, caller: Caller{ToolResults: "Everything"}},
		"a count":     {endpoint: dialect.Endpoint{Kind: dialect.Measure}, caller: Caller{ToolResults: policy.ToolResultsRedacted}},
	} {
		if f := c.results.read(c); f != nil || c.results.list != nil {
			t.Error(fmt.Sprint(name, c.results.list, f))
		}
	}
}
