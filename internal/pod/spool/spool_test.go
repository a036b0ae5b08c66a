// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package spool_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/spool"
)

func status(state string) protocol.Report {
	return protocol.Report{Status: &protocol.StatusReport{State: state}}
}

func checkpoint(sequence int64) protocol.Report {
	return protocol.Report{Checkpoint: &protocol.CheckpointReport{Sequence: sequence}}
}

func open(t testing.TB, dir string, epoch int64) *spool.Spool {
	t.Helper()
	s, err := spool.Open(dir, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func add(t testing.TB, s *spool.Spool, reports ...protocol.Report) {
	t.Helper()
	for _, r := range reports {
		if _, err := s.Append(r); err != nil {
			t.Fatal(err)
		}
	}
}

// numbers writes what is pending as "epoch.sequence:kind".
func numbers(s *spool.Spool) []string {
	var out []string
	for _, r := range s.Batch(protocol.MaxReportBytes, 100) {
		kind := "request"
		switch {
		case r.Status != nil:
			kind = r.Status.State
		case r.Checkpoint != nil:
			kind = "checkpoint" + string(rune('0'+r.Checkpoint.Sequence))
		case r.Final != nil:
			kind = "final"
		}
		out = append(out, string(rune('0'+r.Epoch))+"."+string(rune('0'+r.Sequence))+":"+kind)
	}
	return out
}

func expect(t *testing.T, s *spool.Spool, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, numbers(s)); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
}

func TestReportsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	add(t, open(t, dir, 1), status("Active"), checkpoint(1), status("Idle"))
	expect(t, open(t, dir, 1), "1.1:Active", "1.2:checkpoint1", "1.3:Idle")
}

func TestNumbersAreNeverUsedTwice(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1)
	add(t, s, checkpoint(1), checkpoint(2))
	if err := s.Ack(protocol.ReportAck{Epoch: 1, Sequence: 2}); err != nil {
		t.Fatal(err)
	}
	expect(t, s)
	s = open(t, dir, 1)
	add(t, s, checkpoint(2), status("Idle"))
	expect(t, s, "1.3:Idle")
}

func TestStatusTakesThePlaceOfTheStatusBeforeIt(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1)
	add(t, s, status("Idle"), status("Active"), checkpoint(1), status("Idle"), status("Active"))
	expect(t, s, "1.2:Active", "1.3:checkpoint1", "1.5:Active")
	expect(t, open(t, dir, 1), "1.2:Active", "1.3:checkpoint1", "1.5:Active")
}

// TestTheLastWordIsSaidOnce: a watchdog that crashed after it says it again, whether intake has had it or not. Another attempt has one of its own.
func TestTheLastWordIsSaidOnce(t *testing.T) {
	for name, acknowledged := range map[string]bool{"it waits": false, "intake has it": true} {
		t.Run(name, func(t *testing.T) {
			final := protocol.Report{Final: &protocol.FinalReport{}}
			dir, want := t.TempDir(), []string{"1.1:final"}
			s := open(t, dir, 1)
			add(t, s, final)
			if acknowledged {
				want = nil
				if err := s.Ack(protocol.ReportAck{Epoch: 1, Sequence: 1}); err != nil {
					t.Fatal(err)
				}
			}
			add(t, s, final)
			expect(t, s, want...)
			s = open(t, dir, 1)
			add(t, s, final)
			expect(t, s, want...)
			s = open(t, dir, 2)
			add(t, s, final)
			expect(t, s, "2.1:final")
		})
	}
}

// TestFailuresDoNotFillTheDisk: while intake is absent, checkpoints may fail each minute, and each failure changes the status.
func TestFailuresDoNotFillTheDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1)
	for range 200 {
		add(t, s, protocol.Report{Failed: &protocol.CheckpointFailure{Trigger: protocol.TriggerInterval, Reason: protocol.ReasonVolumeFull}}, status("Idle"), status("Active"))
	}
	add(t, s, checkpoint(1))
	if n := s.Pending(); n != 2*64+1 { // a status after each failure, and the checkpoint
		t.Errorf("%d reports wait", n)
	}
	if n := open(t, dir, 2).Pending(); n != 1 {
		t.Errorf("%d reports of the attempt before wait, want the checkpoint", n)
	}
}

func TestAnotherAttemptSpeaksForItself(t *testing.T) {
	dir := t.TempDir()
	add(t, open(t, dir, 1), status("Active"), checkpoint(1), protocol.Report{Request: &protocol.RequestReport{ID: "r"}},
		protocol.Report{Final: &protocol.FinalReport{}})
	s := open(t, dir, 2)
	add(t, s, status("Idle"))
	expect(t, s, "1.2:checkpoint1", "1.3:request", "2.1:Idle")
	if err := s.Ack(protocol.ReportAck{Epoch: 1, Sequence: 3}); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "2.1:Idle")
}

func TestAnOldAcknowledgementTakesNothing(t *testing.T) {
	s := open(t, t.TempDir(), 3)
	add(t, s, checkpoint(1))
	if err := s.Ack(protocol.ReportAck{Epoch: 2, Sequence: 99}); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "3.1:checkpoint1")
}

func TestBatchesAreBounded(t *testing.T) {
	s := open(t, t.TempDir(), 1)
	add(t, s, checkpoint(1), checkpoint(2), checkpoint(3))
	if got := len(s.Batch(1, 100)); got != 1 {
		t.Errorf("%d reports in a batch of one byte, want the one that is due", got)
	}
	if got := len(s.Batch(protocol.MaxReportBytes, 100)); got != 3 {
		t.Errorf("%d reports in a large batch, want 3", got)
	}
	if got := len(s.Batch(protocol.MaxReportBytes, 2)); got != 2 {
		t.Errorf("%d reports in a batch of two", got)
	}
}

func TestARefusedReportIsSetAside(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1)
	add(t, s, checkpoint(1), checkpoint(2), checkpoint(3))
	if err := s.SetAside(protocol.ReportAck{Epoch: 1, Sequence: 2}, "wrong"); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "1.1:checkpoint1", "1.3:checkpoint3")
	expect(t, open(t, dir, 1), "1.1:checkpoint1", "1.3:checkpoint3")
	if kept, err := filepath.Glob(filepath.Join(dir, "refused", "*.json")); err != nil || len(kept) != 1 {
		t.Errorf("set aside: %v, %v", kept, err)
	}
	if err := s.SetAside(protocol.ReportAck{Epoch: 1, Sequence: 2}, "wrong"); err == nil {
		t.Error("a report that is not there was set aside")
	}
}

// TestRefusedReportsAreBounded: a manager that takes nothing does not fill the volume. The newest are kept, and all are counted.
func TestRefusedReportsAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1)
	for n := range int64(70) {
		add(t, s, checkpoint(n+1))
		if err := s.SetAside(protocol.ReportAck{Epoch: 1, Sequence: n + 1}, "wrong"); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := filepath.Glob(filepath.Join(dir, "refused", "*.json"))
	if err != nil || len(kept) != 64 || !strings.Contains(kept[0], "0007.report") || s.NewlyRefused() != 70 {
		t.Errorf("%d are kept, from %s on, %v", len(kept), kept[0], err)
	}
}

func TestDrainedWaitsForTheLast(t *testing.T) {
	s := open(t, t.TempDir(), 1)
	add(t, s, checkpoint(1), checkpoint(2))
	done := make(chan error, 1)
	go func() { done <- s.Drained(t.Context()) }()
	for n := range int64(2) {
		select {
		case err := <-done:
			t.Fatalf("drained with %d reports: %v", s.Pending(), err)
		default:
		}
		if err := s.Ack(protocol.ReportAck{Epoch: 1, Sequence: n + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWhatACrashLeftHalfWrittenIsRemoved(t *testing.T) {
	dir := t.TempDir()
	add(t, open(t, dir, 1), checkpoint(1))
	torn := filepath.Join(dir, strings.Repeat("0", 18)+"1-"+strings.Repeat("0", 18)+"2.report.json.tmp")
	if err := os.WriteFile(torn, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, open(t, dir, 1), "1.1:checkpoint1")
	if _, err := os.Stat(torn); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the torn file is still there: %v", err)
	}
}

func TestACorruptSpoolIsRefused(t *testing.T) {
	for name, file := range map[string]string{
		"a report": strings.Repeat("0", 19) + "-" + strings.Repeat("0", 19) + ".report.json",
		"the mark": "acknowledged.json",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, file), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := spool.Open(dir, 1); !errors.Is(err, spool.ErrCorrupt) || !strings.Contains(err.Error(), file) {
				t.Errorf("error %v, want ErrCorrupt that names %s", err, file)
			}
		})
	}
}

// Whatever is appended, acknowledged and restarted in whatever order: every checkpoint is handed out until it is
// acknowledged, exactly once by number, and numbers only rise.
func TestNothingIsLostOrRepeated(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "spool")
		if err != nil {
			rt.Fatal(err)
		}
		s := open(t, dir, 1)
		var next, highest int64
		wanted := map[int64]bool{}
		taken := map[int64]int64{} // checkpoint → report sequence
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"checkpoint", "again", "status", "ack", "restart"}).Draw(rt, "step") {
			case "checkpoint":
				next++
				wanted[next] = true
				add(t, s, checkpoint(next))
			case "again":
				if next > 0 {
					add(t, s, checkpoint(next))
				}
			case "status":
				add(t, s, status("Active"))
			case "restart":
				s = open(t, dir, 1)
			case "ack":
				batch := s.Batch(rapid.IntRange(1, 400).Draw(rt, "bytes"), 100)
				for _, r := range batch {
					if r.Sequence <= highest {
						rt.Fatalf("report %d after %d", r.Sequence, highest)
					}
					highest = r.Sequence
					if r.Checkpoint != nil {
						if was, ok := taken[r.Checkpoint.Sequence]; ok {
							rt.Fatalf("checkpoint %d reported as %d and %d", r.Checkpoint.Sequence, was, r.Sequence)
						}
						taken[r.Checkpoint.Sequence] = r.Sequence
					}
				}
				if len(batch) > 0 {
					if err := s.Ack(protocol.ReportAck{Epoch: 1, Sequence: highest}); err != nil {
						rt.Fatal(err)
					}
				}
			}
		}
		for _, r := range open(t, dir, 1).Batch(protocol.MaxReportBytes, 100) {
			if r.Checkpoint != nil {
				taken[r.Checkpoint.Sequence] = r.Sequence
			}
		}
		for n := range wanted {
			if taken[n] == 0 {
				rt.Fatalf("checkpoint %d is lost", n)
			}
		}
	})
}

// TestEveryTextOfAReportIsBounded: whatever an agent, a model or a repository has put into a report, intake takes it.
func TestEveryTextOfAReportIsBounded(t *testing.T) {
	huge := strings.Repeat("<h1>", 1<<19)
	for name, r := range map[string]protocol.Report{
		"status":     {Status: &protocol.StatusReport{}},
		"checkpoint": {Checkpoint: &protocol.CheckpointReport{Sequence: 1}},
		"request":    {Request: &protocol.RequestReport{}},
		"final":      {Final: &protocol.FinalReport{}},
	} {
		t.Run(name, func(t *testing.T) {
			fill(reflect.ValueOf(&r).Elem(), huge)
			q, err := spool.Open(t.TempDir(), 1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := q.Append(r); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(protocol.ReportBatch{Version: protocol.Version, Reports: q.Batch(1, 1)})
			if err != nil || len(text) > protocol.MaxReportBytes {
				t.Errorf("%d bytes, %v", len(text), err)
			}
			if !bytes.Contains(text, []byte("h1")) {
				t.Error("nothing is left of its texts")
			}
		})
	}
}

// fill every text of a value with one text, and every list with some entries.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		if v.IsNil() {
			if v.Type().Elem().PkgPath() == "github.com/tidewaiter/tidewaiter/internal/core/protocol" && !strings.HasSuffix(v.Type().Elem().Name(), "Report") {
				v.Set(reflect.New(v.Type().Elem()))
			} else {
				return
			}
		}
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(field, text)
			}
		}
	}
}
