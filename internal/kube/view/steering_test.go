// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestSteering: what was done about an agent, for programs and for people.
func TestSteering(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	steps := []protocol.SteeringStep{
		{
			Sequence: 3, Time: at, Attempt: 1, Task: "form", Thread: 1, Turn: 7, Request: "ab", Call: 12, Anomaly: "AgentLooping", Detector: "same-failure",
			Evidence: "it has failed\n3 times", Rung: "Surgery", Message: "[SUPERVISOR] Stop.", Channel: protocol.ChannelRequest,
		},
		{Sequence: 4, Time: at, Attempt: 1, Task: "form", Thread: 1, Anomaly: "AgentLooping", Evidence: "it has failed 3 times", Rung: "Surgery", Over: true},
	}
	r := newHarness(t)
	ledger := &record{steps: steps}
	r.options.Live, r.options.Ledger = shop{}, ledger
	got := r.do(r.request(http.MethodGet, ofFeature+"steering?after=2&limit=2"))
	var list protocol.SteeringSteps
	if err := json.Unmarshal(got.Body.Bytes(), &list); err != nil || got.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%v %v %s", err, got.Header(), got.Body)
	}
	if diff := cmp.Diff(steps, list.Steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(url.Values{"feature": {"uid"}, "after": {"2"}, "limit": {"2"}}, ledger.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	const table = `STEP  TIME                  ATTEMPT  TASK  THREAD  TURN  CALL  ANOMALY       DONE     TOLD     EVIDENCE
3     2026-02-03T04:05:06Z  1        form  1       7     12    AgentLooping  Surgery  Request  it has failed 3 times
`
	if diff := cmp.Diff(table+`4     2026-02-03T04:05:06Z  1        form  1       0     -     AgentLooping  Over     -        it has failed 3 times
`, r.do(r.request(http.MethodGet, ofFeature+"steering?output=text")).Body.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	steps[0].Before, steps[0].After, steps[0].Missing = "[1,2]", "Two things were tried.", "half of it"
	ledger.steps = steps[:1]
	if diff := cmp.Diff(table+`
 [SUPERVISOR] Stop.

[taken out of the conversation]
 [1,2]

[put in instead]
Two things were tried.

tidewaiter: this record is not complete: half of it
`, r.do(r.request(http.MethodGet, ofFeature+"steering?step=3&output=text")).Body.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ledger.err = ErrNotRecorded
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"steering?step=9")), 404, metav1.StatusReasonNotFound, "the Feature add-login has no step 9 of steering")
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"steering?turn=9")), 400, metav1.StatusReasonBadRequest, `"turn" is not known here: use after, limit, step, output`)
}
