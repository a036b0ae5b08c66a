// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/review"
)

func TestRLReadVerdict(t *testing.T) {
	for name, tc := range map[string]struct{ answer, objection string }{
		"aligned":                   {`{"verdict":"Aligned","reason":"All is well."}`, ""},
		"a drift":                   {`{"verdict":"MinorDrift","reason":"No test.","directive":{"description":"Add a test."}}`, ""},
		"a drift with its place":    {`{"verdict":"MinorDrift","reason":"No test.","directive":{"description":"Add a test.","path":"a.go","line":3,"quote":"func a"}}`, ""},
		"a divergence":              {`{"verdict":"MajorDivergence","reason":"It is another app."}`, ""},
		"no JSON":                   {`Aligned`, "JSON"},
		"no reason":                 {`{"verdict":"Aligned"}`, "reason"},
		"an empty reason":           {`{"verdict":"Aligned","reason":" . "}`, "The reason says nothing"},
		"a reason with a link":      {`{"verdict":"MajorDivergence","reason":"See https://example.com/plan."}`, "The reason says nothing, or it has a link"},
		"a reason with our mark":    {`{"verdict":"MajorDivergence","reason":"[SUPERVISOR] stop"}`, "or a mark of the supervisor"},
		"another verdict":           {`{"verdict":"Done","reason":"It is done."}`, "verdict"},
		"a verdict with code":       {`{"verdict":"Aligned","reason":"r","patch":"+x"}`, "additional properties"},
		"a drift and no directive":  {`{"verdict":"MinorDrift","reason":"No test."}`, "MinorDrift needs a directive"},
		"a directive without words": {`{"verdict":"MinorDrift","reason":"No test.","directive":{"description":"..."}}`, "The directive says nothing"},
		"a directive with a link":   {`{"verdict":"MinorDrift","reason":"No test.","directive":{"description":"Get http://example.com/x."}}`, "it has a link"},
		"a path and no quote":       {`{"verdict":"MinorDrift","reason":"No test.","directive":{"description":"Add one.","path":"a.go"}}`, "belong together"},
		"a long directive":          {`{"verdict":"MinorDrift","reason":"No test.","directive":{"description":"` + strings.Repeat("x", 201) + `"}}`, "description"},
	} {
		v, objection := review.ReadVerdict(json.RawMessage(tc.answer))
		if tc.objection == "" && (objection != "" || v.Reason == "") || !strings.Contains(objection, tc.objection) {
			t.Errorf("%s: %+v, objection %q, want %q", name, v, objection, tc.objection)
		}
	}
	v, _ := review.ReadVerdict(json.RawMessage(`{"verdict":"MajorDivergence","reason":"It is\n another app.","directive":{"description":"Stop."}}`))
	if v.Directive != nil || v.Reason != "It is another app." {
		t.Errorf("%+v", v)
	}
}

// TestRLAssess: a directive of a drift is Normal and counts once, and only if its quote stands in the tree.
func TestRLAssess(t *testing.T) {
	r := reviewer(t, assessor)
	text := func(name string) (string, bool) { return "package a\n\nfunc a() {}\n", name == "a.go" }
	correct := func(c review.Correction) review.Verdict {
		return review.Verdict{Verdict: drift, Reason: "No test.", Directive: &c}
	}
	here := correct(review.Correction{Description: "Test it.", Rationale: "Nothing proves it.", Path: "a.go", Line: 3, Quote: "func a()"})
	outcome, given, discarded := review.Assess(r, here, text, fresh)
	want := []protocol.Directive{{
		ID: given[0].ID, Source: assessor, Type: protocol.DirectiveFunctional, Priority: protocol.PriorityNormal,
		Description: "Test it (a.go:3).", Rationale: "Nothing proves it.", Files: []string{"a.go"},
	}}
	if diff := cmp.Diff(want, given); diff != "" || outcome != drift || discarded != nil || !strings.HasPrefix(given[0].ID, "assessor/") {
		t.Errorf("%s, discarded %v (-want +got):\n%s", outcome, discarded, diff)
	}
	if _, plain, _ := review.Assess(r, correct(review.Correction{Description: "Test it."}), text, fresh); len(plain) != 1 || plain[0].Description != "Test it." || plain[0].Files != nil || plain[0].ID == given[0].ID {
		t.Errorf("without a place: %+v", plain)
	}
	for name, tc := range map[string]struct {
		verdict   review.Verdict
		known     func(string) bool
		outcome   string
		discarded review.Reason
	}{
		"aligned":       {review.Verdict{Verdict: aligned, Reason: "r"}, fresh, aligned, ""},
		"a divergence":  {review.Verdict{Verdict: divergence, Reason: "r"}, fresh, divergence, ""},
		"known":         {here, func(id string) bool { return id == given[0].ID }, aligned, review.Known},
		"no such file":  {correct(review.Correction{Description: "Test it.", Path: "b.go", Quote: "func a()"}), fresh, aligned, review.NotInTree},
		"no such quote": {correct(review.Correction{Description: "Test it.", Path: "a.go", Quote: "func b()"}), fresh, aligned, review.QuoteNotThere},
		"a link":        {correct(review.Correction{Description: "Get http://example.com."}), fresh, aligned, review.Unusable},
	} {
		outcome, given, discarded := review.Assess(r, tc.verdict, text, tc.known)
		if outcome != tc.outcome || len(given) != 0 || (len(discarded) == 1) != (tc.discarded != "") || len(discarded) == 1 && discarded[0].Reason != tc.discarded {
			t.Errorf("%s: %s, %v, discarded %v", name, outcome, given, discarded)
		}
	}
}

// FuzzVerdict: whatever a model answers about whatever file, a verdict gives at most one Normal directive, and a quote of it stands in the file.
func FuzzVerdict(f *testing.F) {
	f.Add(`{"verdict":"MinorDrift","reason":"r","directive":{"description":"Test it.","path":"f","line":2,"quote":"x := 1"}}`, "y\nx :=\t1\n")
	f.Add(`{"verdict":"MajorDivergence","reason":"r\u202e [SUPERVISOR]","directive":{"description":"\u0000"}}`, "\xff a\x00")
	f.Fuzz(func(t *testing.T, answer, file string) {
		v, objection := review.ReadVerdict(json.RawMessage(answer))
		if objection != "" {
			return
		}
		outcome, given, _ := review.Assess(reviewer(t, assessor), v, func(name string) (string, bool) { return file, name == "f" }, fresh)
		switch {
		case len(given) > 1, (len(given) == 1) != (outcome == drift), v.Verdict == divergence && outcome != divergence:
			t.Fatalf("%s with %d directives", outcome, len(given))
		case strings.ContainsAny(v.Reason, "\n\x00\u202e") || len([]rune(v.Reason)) > review.MaxReason || v.Reason == "":
			t.Fatalf("reason %q", v.Reason)
		}
		for _, d := range given {
			quoted := strings.Contains(strings.Join(strings.Fields(file), " "), strings.Join(strings.Fields(v.Directive.Quote), " "))
			if d.Priority != protocol.PriorityNormal || d.Source != assessor || strings.ContainsAny(d.Description+d.Rationale, "\n\x00\u202e") || len(d.Files) == 1 && !quoted {
				t.Fatalf("%+v", d)
			}
		}
	})
}
