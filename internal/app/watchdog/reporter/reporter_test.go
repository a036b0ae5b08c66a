// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package reporter_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/health"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/reporter"
	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/steps"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/trusted"
)

// testReporter is a reporter with a journal of its own, and what it spooled.
type testReporter struct {
	*reporter.Reporter
	t       *testing.T
	reports []protocol.Report
	health  health.Health
}

// Append implements reporter.Spool.
func (d *testReporter) Append(r protocol.Report) (protocol.Report, error) {
	d.reports = append(d.reports, r)
	return r, nil
}

func newTestReporter(t *testing.T, dir trusted.Dir, probe steps.Probe) *testReporter {
	t.Helper()
	j, err := trusted.OpenJournal(dir, trusted.FoldAbove, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	must(t, j.Note(journal.Record{Attempt: &journal.Attempt{Epoch: j.State().Epoch + 1, Run: "agent"}}))
	d := &testReporter{t: t}
	d.Reporter = reporter.New(reporter.Options{Spool: d, Health: &d.health, Now: time.Now, Log: slog.New(slog.DiscardHandler), Probe: probe})
	d.Opened(j)
	return d
}

// reported is what was spooled, in a word each.
func (d *testReporter) reported() (words []string) {
	for _, r := range d.reports {
		switch {
		case r.Status != nil:
			words = append(words, "status "+r.Status.State)
		case r.Request != nil:
			words = append(words, "request "+r.Request.ID)
		case r.Final != nil:
			words = append(words, "final "+r.Final.Outcome)
		}
	}
	return words
}

func (d *testReporter) want(words ...string) {
	d.t.Helper()
	if diff := cmp.Diff(words, d.reported()); diff != "" {
		d.t.Errorf("reported (-want +got):\n%s", diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A status is reported when something about it is new; a problem is something new.
func TestStatusIsReportedWhenItChanges(t *testing.T) {
	d := newTestReporter(t, trusted.Dir(t.TempDir()), nil)
	running := protocol.StatusReport{State: protocol.StateActive}
	d.Status(t.Context(), running)
	d.Status(t.Context(), running)
	d.want("status " + protocol.StateActive)
	d.health.Tell(health.Watcher, "gone")
	d.Status(t.Context(), running)
	d.want("status "+protocol.StateActive, "status "+protocol.StateActive)
}

// A request is answered once, also in the next attempt.
func TestARequestIsAnsweredOnce(t *testing.T) {
	dir := trusted.Dir(t.TempDir())
	d := newTestReporter(t, dir, nil)
	must(t, d.Answer(protocol.RequestReport{ID: "r1", OK: true}))
	must(t, d.Answer(protocol.RequestReport{ID: "r1", OK: false}))
	d.want("request r1")
	d = newTestReporter(t, dir, nil)
	must(t, d.Answer(protocol.RequestReport{ID: "r1"}))
	d.want()
}

// The last word is in the journal before it is reported, and is reported after a crash between the two.
func TestTheLastWordSurvivesACrash(t *testing.T) {
	dir := trusted.Dir(t.TempDir())
	pulled := errors.New("pulled")
	d := newTestReporter(t, dir, func(step string) error { return map[string]error{"final journaled": pulled}[step] })
	final := protocol.FinalReport{Outcome: protocol.OutcomeDelivered}
	if err := d.Conclude(t.Context(), final); !errors.Is(err, pulled) {
		t.Fatal(err)
	}
	d.want()
	d = newTestReporter(t, dir, nil)
	must(t, d.Conclude(t.Context(), final))
	d.want("final " + protocol.OutcomeDelivered)
}
