// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
)

// TestAReviewMovesTheHead: a commit with documents of reviewers is what is approved and delivered, and the report has what was said of the history of the work
// before it.
func TestAReviewMovesTheHead(t *testing.T) {
	s := supervise.State{Seal: true, PolicyHash: "p"}
	s.Tasks = []supervise.Task{{Name: "form", Phase: supervise.Done, Listed: true}}
	s.AnyDone = true
	s.Delivery = supervise.Delivery{Push: true, RequireApproval: true, Head: "c1", Tree: "t1", Changed: true, Squashed: "an earlier commit breaks a rule"}
	if a := supervise.Next(s, time.Unix(1_000_000, 0)); a.Kind != supervise.Review {
		t.Fatalf("%+v", a)
	}
	reviewed := s.Begin(supervise.Action{Kind: supervise.Review}).Apply(supervise.Reviewed{PolicyHash: "p", Head: "c2", Tree: "t2", Knowledge: "; its last commit has a document"}, time.Unix(1_000_000, 0))
	a := supervise.Next(reviewed, time.Unix(1_000_000, 0))
	if a.Kind != supervise.Finish || a.Final.Outcome != protocol.OutcomeReadyToMerge || a.Final.Head != "c2" || reviewed.Delivery.Tree != "t2" {
		t.Fatalf("%+v", a)
	}
	_, more, _ := strings.Cut(a.Final.Message, "approvedCommit to c2")
	if want := "; its last commit has a document; " + protocol.HistorySquashed + "an earlier commit breaks a rule"; more != want {
		t.Errorf("the report ends with %q, want %q", more, want)
	}
	again := reviewed.Begin(supervise.Action{Kind: supervise.Review}).Apply(supervise.Reviewed{PolicyHash: "p", Head: "c1", Tree: "t1"}, time.Unix(1_000_000, 0))
	if d := again.Delivery; d.Head != "c1" || d.Tree != "t1" || d.Knowledge != "" || d.Squashed == "" {
		t.Errorf("taken back: %+v", d)
	}
}
