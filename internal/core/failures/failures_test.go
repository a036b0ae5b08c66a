// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

var start = time.Unix(1000, 0)

func good() failures.Answer                { return failures.Answer{Status: 200} }
func status(code int) failures.Answer      { return failures.Answer{Status: code} }
func reason(reason string) failures.Answer { return failures.Answer{Status: 503, Reason: reason} }
func heard(a ...failures.Answer) (s failures.Streak) {
	for _, x := range a {
		s = s.Hear(x, start)
	}
	return s
}

// TestWhoIsToBlame: for each kind of answer.
func TestWhoIsToBlame(t *testing.T) {
	for class, answers := range map[string][]failures.Answer{
		protocol.FailurePolicy:         {reason("ModelNotAvailable"), reason("KeyNotAccepted"), reason("ServerToolNotAllowed"), status(401), status(403), status(404)},
		protocol.FailureProvider:       {reason("BackendSilent"), reason("AnswerCutOff"), status(402), status(408), status(425), status(429), status(500), status(503), status(529)},
		protocol.FailureInfrastructure: {reason("GatewayUnreachable"), reason("LedgerUnavailable"), reason("Unavailable"), reason("AnswerBroken"), reason("BackendFull"), reason("GatewayFull"), reason("MemoryFull")},
		protocol.FailureBudget:         {reason("BudgetExceeded"), reason("BudgetReserved")},
		// What the agent can provoke, and what nobody has thought about, is its own.
		protocol.FailureAgent: {status(400), status(413), status(422), status(418), reason("InvalidRequest"), reason("RequestTooLarge"), reason("TooManyCalls"), reason("MemoryShare"), reason("CallRateExceeded"), reason("Strange"), {}},
	} {
		for _, a := range answers {
			if got := failures.Of(a); got.Class != class || got.Meaning == "" || got.Fix == "" {
				t.Errorf("%+v: %+v, want %s", a, got, class)
			}
		}
	}
	for _, r := range failures.Rows() {
		if !slices.Contains(protocol.FailureClasses(), r.Class) || len(r.Reason) > protocol.MaxCause || (r.Reason == "") != (r.First > 0) || r.First > r.Last {
			t.Errorf("%+v", r)
		}
		if got := failures.Of(failures.Answer{Status: r.Last, Reason: r.Reason}); got != r {
			t.Errorf("%+v is hidden behind %+v", r, got)
		}
	}
}

// TestWhatAnAgentFailedOf: only the calls since the last good answer count, one of the agent's own among them is enough, and an agent that goes
// on for a while has not ended because of them.
func TestWhatAnAgentFailedOf(t *testing.T) {
	for name, test := range map[string]struct {
		calls []failures.Answer
		after time.Duration
		want  *protocol.Failure
	}{
		"no call":                  {nil, 0, nil},
		"a good one":               {[]failures.Answer{good()}, 0, nil},
		"no model":                 {[]failures.Answer{reason("ModelNotAvailable"), reason("ModelNotAvailable")}, 0, &protocol.Failure{Class: protocol.FailurePolicy, Cause: "ModelNotAvailable", Status: 503, Calls: 2}},
		"the provider fails":       {[]failures.Answer{good(), status(500), status(529)}, time.Minute, &protocol.Failure{Class: protocol.FailureProvider, Cause: "Status529", Status: 529, Calls: 2}},
		"it answers again":         {[]failures.Answer{status(500), status(529), good()}, 0, nil},
		"an invalid request":       {[]failures.Answer{good(), status(400)}, 0, nil},
		"an invalid one before":    {[]failures.Answer{status(400), status(503)}, 0, nil},
		"an invalid one behind":    {[]failures.Answer{status(503), status(400)}, 0, nil},
		"an invalid one long ago":  {[]failures.Answer{status(400), good(), status(503)}, 0, &protocol.Failure{Class: protocol.FailureProvider, Cause: "Status503", Status: 503, Calls: 1}},
		"a budget":                 {[]failures.Answer{reason("BudgetExceeded")}, 0, nil},
		"a budget behind a fault":  {[]failures.Answer{status(503), reason("BudgetReserved")}, 0, &protocol.Failure{Class: protocol.FailureProvider, Cause: "Status503", Status: 503, Calls: 1}},
		"it works on for a while":  {[]failures.Answer{status(503)}, failures.Recent + time.Second, nil},
		"it ends soon afterwards":  {[]failures.Answer{status(503)}, failures.Recent, &protocol.Failure{Class: protocol.FailureProvider, Cause: "Status503", Status: 503, Calls: 1}},
		"the gateway is not there": {[]failures.Answer{reason(failures.GatewayUnreachable)}, 0, &protocol.Failure{Class: protocol.FailureInfrastructure, Cause: "GatewayUnreachable", Status: 503, Calls: 1}},
	} {
		if diff := cmp.Diff(test.want, heard(test.calls...).Ended(start.Add(test.after))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoExcuseForTheAgent: whatever calls a hostile agent makes, it is excused only where each call since the last good answer failed for a reason
// that is not its own, and there is one.
func TestNoExcuseForTheAgent(t *testing.T) {
	reasons := []string{"", "", ""}
	for _, r := range failures.Rows() {
		reasons = append(reasons, r.Reason)
	}
	rapid.Check(t, func(t *rapid.T) {
		var s failures.Streak
		var since []string
		for range rapid.IntRange(0, 30).Draw(t, "calls") {
			a := failures.Answer{Status: rapid.SampledFrom([]int{200, 400, 401, 404, 413, 429, 500, 503, 529, 0}).Draw(t, "status"), Reason: rapid.SampledFrom(append(reasons, "Made up")).Draw(t, "reason")}
			s = s.Hear(a, start)
			switch class := failures.Of(a).Class; {
			case a.Good():
				since = nil
			case class != protocol.FailureBudget:
				since = append(since, class)
			}
		}
		f := s.Ended(start)
		if want := len(since) > 0 && !slices.Contains(since, protocol.FailureAgent); (f != nil) != want {
			t.Fatalf("excused: %+v after %v", f, since)
		}
		if f != nil && (f.Class != since[len(since)-1] || f.Calls != len(since) || len(f.Cause) > protocol.MaxCause) {
			t.Fatalf("%+v after %v", f, since)
		}
	})
}

// TestSay: what people read names the cause and what to do.
func TestSay(t *testing.T) {
	for _, test := range []struct {
		answer failures.Answer
		want   []string
	}{
		{reason("ModelNotAvailable"), []string{"its last model call failed (ModelNotAvailable, Policy)", "ConfigMap tidewaiter-backends"}},
		{status(429), []string{"(Status429, Provider)", "raise the limit at the provider"}},
	} {
		got := failures.Say(*heard(test.answer).Failure)
		for _, part := range test.want {
			if !strings.Contains(got, part) {
				t.Errorf("%q is not in %s", part, got)
			}
		}
	}
}
