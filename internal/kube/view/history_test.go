// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestHistory: what happened in a Feature, for programs and for people.
func TestHistory(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	entries := []protocol.HistoryEntry{
		{Sequence: 7000, Time: at, Attempt: 1, Kind: protocol.HistoryGate, Event: "Failed", Task: "form", Name: "unit", Tree: "t1", Duration: 1500, ExitCode: 1, Message: "exited with code 1\nafter 2s"},
		{Sequence: 8000, Time: at, Attempt: 1, Kind: protocol.HistoryTask, Event: protocol.HistoryCorrected, Cause: protocol.CauseGate, Task: "form"},
	}
	r := newHarness(t)
	ledger := &record{entries: entries}
	r.options.Live, r.options.Ledger = shop{}, ledger
	got := r.do(r.request(http.MethodGet, ofFeature+"history?after=2&limit=2&task=one/form"))
	var list protocol.History
	if err := json.Unmarshal(got.Body.Bytes(), &list); err != nil || got.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%v %v %s", err, got.Header(), got.Body)
	}
	if diff := cmp.Diff(entries, list.Entries); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(url.Values{"feature": {"uid"}, "after": {"2"}, "limit": {"2"}, "task": {"one/form"}}, ledger.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	const table = `ENTRY  TIME                  ATTEMPT  KIND  EVENT      TASK  NAME  CAUSE  SECONDS  MESSAGE
7000   2026-02-03T04:05:06Z  1        Gate  Failed     form  unit  -      1.5      exited with code 1 after 2s
8000   2026-02-03T04:05:06Z  1        Task  Corrected  form  -     Gate   -        
`
	if diff := cmp.Diff(table, r.do(r.request(http.MethodGet, ofFeature+"history?output=text")).Body.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	entries[0].Text, entries[0].Missing = "--- FAIL\n[a heading]\n", "half of it"
	ledger.entries = entries[:1]
	if diff := cmp.Diff(`ENTRY  TIME                  ATTEMPT  KIND  EVENT   TASK  NAME  CAUSE  SECONDS  MESSAGE
7000   2026-02-03T04:05:06Z  1        Gate  Failed  form  unit  -      1.5      exited with code 1 after 2s

--- FAIL
 [a heading]

tidewaiter: this text is not complete: half of it
`, r.do(r.request(http.MethodGet, ofFeature+"history?entry=7000&output=text")).Body.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ledger.err = ErrNotRecorded
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"history?entry=9")), 404, metav1.StatusReasonNotFound, "the history of the Feature add-login has no entry 9")
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"history?gate=unit")), 400, metav1.StatusReasonBadRequest, `"gate" is not known here: use after, limit, entry, task, output`)
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"history?task="+strings.Repeat("x", 200))), 400, metav1.StatusReasonBadRequest, "task has at most 127 characters")
}

// TestInstructionsOfAnAddedTask are read from the ledger; the error says where else they are.
func TestInstructionsOfAnAddedTask(t *testing.T) {
	added := protocol.HistoryEntry{Sequence: 7000, Kind: protocol.HistoryTask, Event: protocol.HistoryAdded, Task: protocol.GatesPrefix + "1", Text: "Correct it."}
	part := added
	part.Missing = "there is no room"
	for name, tc := range map[string]struct {
		entries []protocol.HistoryEntry
		err     error
		want    string
		missing bool
	}{
		"in the ledger":       {[]protocol.HistoryEntry{added}, nil, "Correct it.", false},
		"not in the ledger":   {nil, nil, "", true},
		"not whole":           {[]protocol.HistoryEntry{part}, nil, "", true},
		"the ledger is away":  {nil, errors.New("away"), "", false},
		"the ledger lacks it": {nil, ErrNotRecorded, "", true},
	} {
		r := newHarness(t)
		r.options.Live, r.options.Ledger = shop{}, &record{entries: tc.entries, err: tc.err}
		got, err := New(r.options).added(t.Context(), &v1alpha1.Feature{}, added.Task)
		if got != tc.want || errors.Is(err, ErrNotRecorded) != tc.missing || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestReview shows the newest question for a reviewer, and names the reviewers if there is no such one.
func TestReview(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	entries := []protocol.HistoryEntry{{Sequence: 9001, Time: at, Attempt: 1, Kind: protocol.HistoryReviewQuestion, Event: protocol.HistoryAsked, Task: "form", Name: "Design", Message: "SHA-256 5a1e, bytes: 16", Text: "What is\x1b[2J wrong?"}}
	r := newHarness(t)
	ledger := &record{entries: entries}
	r.options.Live, r.options.Ledger = shop{}, ledger
	var list protocol.History
	if err := json.Unmarshal(r.do(r.request(http.MethodGet, ofFeature+"review?reviewer=Design")).Body.Bytes(), &list); err != nil || !cmp.Equal(entries, list.Entries) {
		t.Errorf("%v %+v", err, list)
	}
	if diff := cmp.Diff(url.Values{"feature": {"uid"}, "reviewer": {"Design"}}, ledger.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	text := r.do(r.request(http.MethodGet, ofFeature+"review?reviewer=Design&output=text")).Body.String()
	if !strings.Contains(text, "ReviewQuestion  Asked  form  Design") || !strings.Contains(text, "What is") || strings.Contains(text, "\x1b") {
		t.Errorf("for people:\n%s", text)
	}
	ledger.err = ErrNotRecorded
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"review?reviewer=Assessor")), 404, metav1.StatusReasonNotFound, "the ledger has no question for the reviewer Assessor of the Feature add-login")
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"review?reviewer=custom/licenses")), 404, metav1.StatusReasonNotFound, "no question for the reviewer custom/licenses")
	for _, query := range []string{"", "?reviewer=design", "?output=text", "?reviewer=custom/", "?reviewer=custom/Licenses"} {
		wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"review"+query)), 400, metav1.StatusReasonBadRequest, ": use CodeStyle, Design, Knowledge, Assessor, or custom/ with the name")
	}
}
