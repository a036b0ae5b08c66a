// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intakeclient

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/spool"
)

// TestOrdinaryStatusesWait for what follows within a second, and what people wait for does not.
func TestOrdinaryStatusesWait(t *testing.T) {
	status := func(change func(*protocol.StatusReport)) protocol.Report {
		s := protocol.StatusReport{State: protocol.StateActive}
		if change != nil {
			change(&s)
		}
		return protocol.Report{Status: &s}
	}
	asked := func(id string) protocol.Report {
		return status(func(s *protocol.StatusReport) { s.Question = &protocol.Question{ID: id, Text: "Which?"} })
	}
	checkpoint := func(sequence int64, v protocol.Verdict) protocol.Report {
		return protocol.Report{Checkpoint: &protocol.CheckpointReport{Sequence: sequence, Verdict: v}}
	}
	faulty := status(func(s *protocol.StatusReport) { s.Fault = &protocol.Fault{Reason: "DiskFull"} })
	troubled := status(func(s *protocol.StatusReport) { s.Problems = []string{"workspace: it was full"} })
	tests := map[string]struct {
		// told before; then the first comes at once, and the others 300 ms apart.
		told    []protocol.Report
		reports []protocol.Report
		after   time.Duration
		want    int
	}{
		"a status alone":                       {reports: []protocol.Report{status(nil)}, after: gatherTime, want: 1},
		"statuses, of which the last counts":   {reports: []protocol.Report{status(nil), status(nil), status(nil)}, after: gatherTime, want: 1},
		"a valid checkpoint":                   {reports: []protocol.Report{checkpoint(1, protocol.Valid)}, after: gatherTime, want: 1},
		"a valid checkpoint and the last word": {reports: []protocol.Report{checkpoint(1, protocol.Valid), {Final: &protocol.FinalReport{}}}, after: 300 * time.Millisecond, want: 2},
		"an invalid checkpoint":                {reports: []protocol.Report{checkpoint(1, protocol.Invalid)}, want: 1},
		"a checkpoint that was not judged":     {reports: []protocol.Report{checkpoint(1, protocol.Skipped)}, want: 1},
		"an invalid one takes what waits":      {reports: []protocol.Report{status(nil), checkpoint(1, protocol.Valid), checkpoint(2, protocol.Invalid)}, after: 600 * time.Millisecond, want: 3},
		"the last word":                        {reports: []protocol.Report{status(nil), {Final: &protocol.FinalReport{}}}, after: 300 * time.Millisecond, want: 2},
		"an answer to a request":               {reports: []protocol.Report{{Request: &protocol.RequestReport{ID: "a"}}}, want: 1},
		"a question":                           {reports: []protocol.Report{asked("a")}, want: 1},
		"a question that is known":             {told: []protocol.Report{asked("a")}, reports: []protocol.Report{asked("a")}, after: gatherTime, want: 1},
		"another question":                     {told: []protocol.Report{asked("a")}, reports: []protocol.Report{asked("b")}, want: 1},
		"a problem":                            {reports: []protocol.Report{troubled}, want: 1},
		"a problem that is known":              {told: []protocol.Report{troubled}, reports: []protocol.Report{troubled}, after: gatherTime, want: 1},
		"a fault":                              {reports: []protocol.Report{faulty}, want: 1},
		"a fault that comes again":             {told: []protocol.Report{faulty, status(nil)}, reports: []protocol.Report{faulty}, want: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, err := spool.Open(t.TempDir(), 1)
				if err != nil {
					t.Fatal(err)
				}
				var g gatherer
				for _, r := range tc.told {
					g.tell([]protocol.Report{r})
				}
				go func() {
					for i, r := range tc.reports {
						if i > 0 {
							time.Sleep(300 * time.Millisecond)
						}
						if _, err := q.Append(r); err != nil {
							t.Error(err)
						}
					}
				}()
				began := time.Now()
				if got := g.gather(t.Context(), q, batchReports); len(got) != tc.want {
					t.Errorf("gathered %d reports, want %d", len(got), tc.want)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("gathered for %s, want %s", took, tc.after)
				}
			})
		})
	}
}
