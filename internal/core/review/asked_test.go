// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
	"github.com/tidewaiter/tidewaiter/internal/core/speech"
)

// TestAskedIsWhatTheModelGets: the text has every part of the question, its digest is the one that sha256sum gives, and a scene of any size keeps the bound.
func TestAskedIsWhatTheModelGets(t *testing.T) {
	for _, name := range []string{"CodeStyle", "Assessor"} {
		r, _ := review.Find(name, policy.Effective{})
		for _, request := range []string{"Add a form.", strings.Repeat("Add a form.\n", 10_000)} {
			q := review.Question(review.Scene{Reviewer: r, Team: strings.Repeat("Use tabs.\n", 1000), Request: request, Nonce: "abcdefgh"})
			a := review.NewAsked(q)
			for _, part := range []string{q.System, q.Text, q.Tool.Name, q.Tool.Description, string(q.Tool.Schema)} {
				if !strings.Contains(a.Question, part) {
					t.Errorf("%s: the question does not have %.40q", name, part)
				}
			}
			if sum := sha256.Sum256([]byte(a.Question)); a.SHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("%s: another digest", name)
			}
			if len(a.Question) > review.MaxAsked {
				t.Errorf("%s: %d bytes", name, len(a.Question))
			}
		}
	}
}

// TestTheLargestQuestionKeepsItsBound: one of MaxQuestion bytes has at most MaxAsked as a text.
func TestTheLargestQuestionKeepsItsBound(t *testing.T) {
	a := review.NewAsked(speech.Question{Text: strings.Repeat("a", review.MaxQuestion)})
	if len(a.Question) > review.MaxAsked {
		t.Errorf("%d bytes, and MaxAsked is %d", len(a.Question), review.MaxAsked)
	}
}

// TestDiscardedOfEarlierVersions: a journal of an earlier version has only the reasons.
func TestDiscardedOfEarlierVersions(t *testing.T) {
	var got []review.Discarded
	if err := json.Unmarshal([]byte(`["Known",{"path":"a.go","rule":"naming","reason":"TooMany"}]`), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]review.Discarded{{Reason: review.Known}, {Path: "a.go", Rule: "naming", Reason: review.TooMany}}, got); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`[7]`), &got); err == nil {
		t.Error("a number is a finding")
	}
}

// TestReasonsAreThoseOfTheProtocol: metrics have them as a label.
func TestReasonsAreThoseOfTheProtocol(t *testing.T) {
	var names []string
	for _, r := range review.Reasons() {
		names = append(names, string(r))
	}
	if diff := cmp.Diff(protocol.FindingReasons(), names); diff != "" {
		t.Error(diff)
	}
}
