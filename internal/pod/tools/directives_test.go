// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/session/directives"
)

func (d deskStub) Open() []directives.Directive {
	return []directives.Directive{
		{Directive: protocol.Directive{ID: "use-dict", Priority: protocol.PriorityCritical, Description: "Take the labels from the dictionary.", Files: slices.Repeat([]string{"f"}, 64)}},
		{Directive: protocol.Directive{ID: "answer/q1", Inform: true, Description: "Blue."}},
	}
}

func (d deskStub) Settle(w directives.Word) error {
	if w != (directives.Word{ID: "use-dict", Outcome: directives.Cannot, Reason: "there is none"}) {
		return errors.New("it was not told")
	}
	return nil
}

// TestDirectives: an agent reads what it is to address, within bounds, and says what became of it.
func TestDirectives(t *testing.T) {
	s := connect(t, serve(t, map[string]string{"a": "b"}))
	got, failure := call[Context](t, s, "feature_get_context", map[string]any{})
	if failure != "" || len(got.Directives) != 1 || got.Directives[0].ID != "use-dict" || len(got.Directives[0].Files) >= 64 {
		t.Errorf("%q, %+v", failure, got.Directives)
	}
	settle := func(id, outcome, reason string) string {
		_, failure := call[settleOutput](t, s, "directive_settle", map[string]any{"directive_id": id, "outcome": outcome, "reason": reason})
		return failure
	}
	if failure := settle("use-dict", "CANNOT", " there is\nnone "); failure != "" {
		t.Error(failure)
	}
	if failure := settle("use-dict", "done", ""); !strings.Contains(failure, "ALREADY HANDLED") {
		t.Errorf("%q", failure)
	}
	if failure := settle("other", "ADDRESSED", "so"); !strings.Contains(failure, "not told") {
		t.Errorf("%q", failure)
	}
}
