// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestBudget: a real agent that is over its budget is frozen in the middle of its work, and the Feature says why. When the budget
// is raised it goes on where it was: the same attempt delivers, and the status has what all of its calls have used.
func TestBudget(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	p.feature("page", "", func(s *v1alpha1.FeatureSpec) {
		s.Agent = v1alpha1.Agent{Runtime: "claude-code", Image: agentImage(t, "claude-code")}
		s.Workspace.Size = ptr.To(resource.MustParse("256Mi"))
		// An answer is taken to have 1,024 tokens: there is room for the first call alone.
		s.Budget = &v1alpha1.Budget{MaxOutputTokens: ptr.To[int64](1025)}
		s.Prompt = scripted("Write a page about money.", `turns:
- text: I look around first.
  run: ls
- text: Now I write the page.
  run: mkdir -p web && echo '<h1>Money</h1>' > web/money.html
- text: The page is written.`)
	})
	f := p.phase("page", v1alpha1.PhaseBlocked, v1alpha1.ReasonBudgetExceeded)
	within := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionWithinBudget)
	if within == nil || within.Status != metav1.ConditionFalse || within.Reason != v1alpha1.ReasonBudgetExceeded {
		t.Errorf("condition %+v", within)
	} else {
		t.Log(within.Message)
	}
	if f.Status.Run == nil || f.Status.Run.Report == nil || f.Status.Run.Report.State != protocol.StateFrozen {
		t.Errorf("run %+v", f.Status.Run)
	}
	p.change("page", func(s *v1alpha1.FeatureSpec) { s.Budget.MaxOutputTokens = ptr.To[int64](1_000_000) })
	f = p.phase("page", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)
	if f.Status.Attempt != 1 {
		t.Errorf("it took %d attempts", f.Status.Attempt)
	}
	var list protocol.Turns
	p.must(json.Unmarshal([]byte(p.view("features/page/turns", "output", "json")), &list), "read the turns")
	want := v1alpha1.Usage{}
	refused := false
	for _, turn := range list.Turns {
		if turn.Reason == protocol.ReasonBudgetExceeded { // no backend was asked: the call is in the list, and counts in no total
			refused = refused || turn.Count > 0
			continue
		}
		want.Calls += turn.Count
		want.InputTokens += turn.InputTokens + turn.CachedInputTokens + turn.CacheWriteTokens + turn.CacheWriteHourTokens
		want.CachedInputTokens += turn.CachedInputTokens
		want.OutputTokens += turn.OutputTokens
	}
	if !refused {
		t.Error("the refused call is not in the list of turns")
	}
	got := f.Status.Run.Usage
	if got == nil || got.Cost == "" || got.Cost == "0" {
		t.Fatalf("usage %+v", got)
	}
	want.Cost = got.Cost
	if *got != want {
		t.Errorf("usage %+v, want that of the turns, %+v", *got, want)
	}
}
