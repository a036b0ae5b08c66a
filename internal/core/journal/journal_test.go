// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

var (
	attempt1 = journal.Record{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}}
	attempt2 = journal.Record{Attempt: &journal.Attempt{Epoch: 2, Run: "agent"}}
	base     = journal.Record{Base: &journal.Base{Commit: "b", Tree: "bt"}}
	begun    = journal.Record{TaskBegun: &journal.TaskBegun{Name: "form", Policy: policy.Effective{Hash: "p"}}}
	started  = journal.Record{TaskStarted: &journal.TaskStarted{Name: "form", Start: 7}}
	ended    = journal.Record{TaskEnded: &journal.TaskEnded{Name: "form", ExitCode: 3}}
	held     = journal.Record{Intent: &journal.Intent{Sequence: 1, Commit: "k1", Tree: "t1", Delivery: "b", OldDelivery: "b",
		Judgement: "j1", TreeVerdict: protocol.Invalid, Objection: "no", Report: protocol.CheckpointReport{Settled: true}}}
	heldDone = journal.Record{Done: &journal.Done{Sequence: 1}}
	good     = journal.Record{Intent: &journal.Intent{Sequence: 4, Commit: "k4", OldChain: "k1", Tree: "t4", Delivery: "d4",
		OldDelivery: "b", Completes: "form", TreeVerdict: protocol.Valid, Report: protocol.CheckpointReport{Settled: true}}}
	goodDone = journal.Record{Done: &journal.Done{Sequence: 4}}
)

func write(t *testing.T, records ...journal.Record) []byte {
	t.Helper()
	var b bytes.Buffer
	head := ""
	for _, r := range records {
		line, sum, err := journal.Encode(r, head)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
		head = sum
	}
	return b.Bytes()
}

// sealed gives a text, which need not be a record, the sum that a first line has.
func sealed(body string) []byte {
	sum := sha256.Sum256([]byte(body))
	return []byte(strings.TrimSuffix(body, "}") + `,"sum":"` + hex.EncodeToString(sum[:]) + "\"}\n")
}

func read(t *testing.T, data []byte) journal.State {
	t.Helper()
	records, _, err := journal.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	s, err := journal.Replay(records)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReplayAddsUp(t *testing.T) {
	final := &protocol.FinalReport{Outcome: protocol.OutcomeDelivered}
	s := read(t, write(t, attempt1, base, begun, started, held, heldDone, ended, good, goodDone,
		journal.Record{Request: &protocol.RequestReport{ID: "r1", OK: true}},
		journal.Record{Delivered: &journal.Delivered{Commit: "d4", Branch: "x"}},
		journal.Record{Final: final}))
	want := journal.State{
		Epoch: 1, Run: "agent",
		Base:      &journal.Base{Commit: "b", Tree: "bt"},
		Tasks:     map[string]journal.Task{"form": {Policy: policy.Effective{Hash: "p"}, Begun: true, Ended: true, Start: 7, ExitCode: 3, Done: true, Work: protocol.TaskWork{Checkpoint: 4}}},
		Sequence:  4,
		Chain:     journal.Checkpoint{Sequence: 4, Commit: "k4"},
		Workspace: journal.Workspace{Tree: "t4", TreeVerdict: protocol.Valid, Settled: true},
		Promoted:  journal.Promoted{Commit: "d4", Tree: "t4"},
		Start:     "t4",
		Requests:  map[string]protocol.RequestReport{"r1": {ID: "r1", OK: true}},
		Pushed:    "d4", Final: final, Finished: true,
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestAnotherAttemptKeepsWhatIsDone(t *testing.T) {
	s := read(t, write(t, attempt1, base, begun, started, ended, attempt2))
	if got := s.Tasks["form"]; got.Begun || got.Ended || got.Done || got.Start != 0 {
		t.Errorf("a task that was not done begins anew, got %+v", got)
	}
	s = read(t, write(t, attempt1, base, begun, held, heldDone, good, goodDone, attempt2))
	if !s.Tasks["form"].Done || s.Promoted.Commit != "d4" || s.Epoch != 2 {
		t.Errorf("what was done is lost: %+v", s)
	}
}

func TestWorkspaceAfterARestore(t *testing.T) {
	reverted := *held.Intent
	reverted.Restore = "bt"
	s := read(t, write(t, attempt1, base, journal.Record{Intent: &reverted}, heldDone))
	if diff := cmp.Diff(journal.Workspace{Tree: "bt", TreeVerdict: protocol.Valid, Settled: true}, s.Workspace); diff != "" {
		t.Errorf("after a whole restore (-want +got):\n%s", diff)
	}
	reverted.RestorePaths = [][]byte{{0xff}}
	s = read(t, write(t, attempt1, base, journal.Record{Intent: &reverted}, heldDone))
	if diff := cmp.Diff(journal.Workspace{Tree: "bt", TreeVerdict: protocol.Valid, Settled: true}, s.Workspace); diff != "" {
		t.Errorf("after some paths went back, so that all is as promoted (-want +got):\n%s", diff)
	}
	reverted.Restore = "part"
	s = read(t, write(t, attempt1, base, journal.Record{Intent: &reverted}, heldDone))
	if diff := cmp.Diff(journal.Workspace{Tree: "part"}, s.Workspace); diff != "" || s.Start != "bt" {
		t.Errorf("a tree put together is still to be judged (-want +got):\n%s\nand attempts start from %q", diff, s.Start)
	}
}

// TestWithheld: an intent that the workspace could not follow moves the chain, and neither delivery nor workspace.
func TestWithheld(t *testing.T) {
	withheld := journal.Record{Withheld: &journal.Withheld{Sequence: 4, Reason: "no space left"}}
	patch := *good.Intent
	patch.Operation = &journal.Operation{ID: "op1", Task: "form", Patch: "sum", Answer: "applied"}
	refused := journal.Record{Withheld: &journal.Withheld{Sequence: 4, Reason: "no space left",
		Operation: &journal.Operation{ID: "op1", Task: "form", Patch: "sum", Answer: "refused"}}}
	before := journal.Workspace{Tree: "t1", Judgement: "j1", TreeVerdict: protocol.Invalid, Objection: "no", Settled: true}
	for name, tc := range map[string]struct {
		intent, withheld journal.Record
		want             journal.Workspace
	}{
		"a restore": {good, withheld, journal.Workspace{Tree: "t4"}},
		"a patch":   {journal.Record{Intent: &patch}, refused, before},
	} {
		s := read(t, write(t, attempt1, base, begun, held, heldDone, tc.intent, tc.withheld, goodDone))
		if s.Chain.Commit != "k4" || s.Promoted.Commit != "b" || s.Start != "bt" || s.Tasks["form"].Done || s.Pending != nil {
			t.Errorf("%s: %+v", name, s)
		}
		if diff := cmp.Diff(tc.want, s.Workspace); diff != "" {
			t.Errorf("%s, the workspace (-want +got):\n%s", name, diff)
		}
	}
}

func TestAttemptsStartFromWhatAPersonChose(t *testing.T) {
	chosen := *held.Intent
	chosen.Restore, chosen.Chosen = "older", true
	s := read(t, write(t, attempt1, base, journal.Record{Intent: &chosen}, heldDone, attempt2))
	if s.Start != "older" || s.Promoted.Tree != "bt" || s.Workspace.Settled {
		t.Errorf("after a rollback: %+v", s)
	}
	s = read(t, write(t, attempt1, base, begun, journal.Record{Intent: &chosen}, heldDone, good, goodDone))
	if s.Start != "t4" {
		t.Errorf("after a promotion attempts start from %q", s.Start)
	}
}

func TestTornLastLineIsLeftOut(t *testing.T) {
	whole := write(t, attempt1, base)
	torn := append(bytes.Clone(whole), write(t, begun)...)
	for cut := len(whole); cut < len(torn); cut++ {
		records, n, err := journal.Decode(torn[:cut])
		if err != nil || n != len(whole) || len(records) != 2 {
			t.Fatalf("cut at %d: %d records, %d bytes, %v", cut, len(records), n, err)
		}
	}
}

func TestCorruptJournalsAreRefused(t *testing.T) {
	late := *good.Intent
	late.OldChain = "k9"
	moved := *good.Intent
	moved.OldDelivery = "d9"
	for name, tc := range map[string]struct {
		data     []byte
		wantLine int
		want     string
		later    bool
	}{
		"not JSON":                {data: append(write(t, attempt1), "{\n"...), wantLine: 2, want: "cut short or overwritten"},
		"an empty line":           {data: append(write(t, attempt1), '\n'), wantLine: 2, want: "cut short or overwritten"},
		"zeros":                   {data: append(write(t, attempt1), 0, 0, '\n'), wantLine: 2, want: "cut short or overwritten"},
		"not JSON, well sealed":   {data: sealed(`{"version":1,}`), wantLine: 1, want: "invalid character"},
		"a sum without a line":    {data: sealed(`}`), wantLine: 1, want: "cut short or overwritten"},
		"a later version":         {data: sealed(`{"version":2,"done":{"sequence":1}}`), wantLine: 1, want: "version 2", later: true},
		"no version":              {data: sealed(`{"done":{"sequence":1}}`), wantLine: 1, want: "version 0"},
		"an unknown kind":         {data: sealed(`{"version":1,"dance":{}}`), wantLine: 1, want: "does not know the kind", later: true},
		"two kinds":               {data: sealed(`{"version":1,"done":{"sequence":1},"base":{"commit":"b","tree":"t"}}`), wantLine: 1, want: "2 kinds"},
		"no attempt":              {data: write(t, base), wantLine: 1, want: "before the first attempt"},
		"an older attempt":        {data: write(t, attempt2, attempt1), wantLine: 2, want: "attempt 1 after attempt 2"},
		"another base":            {data: write(t, attempt1, base, journal.Record{Base: &journal.Base{Commit: "c", Tree: "t"}}), wantLine: 3, want: "never moves"},
		"a task without base":     {data: write(t, attempt1, begun), wantLine: 2, want: "before there is a base"},
		"an exit from nowhere":    {data: write(t, attempt1, base, ended), wantLine: 3, want: "was not begun"},
		"done without intent":     {data: write(t, attempt1, base, heldDone), wantLine: 3, want: "without its intent"},
		"withheld without intent": {data: write(t, attempt1, base, journal.Record{Withheld: &journal.Withheld{Sequence: 1, Reason: "x"}}), wantLine: 3, want: "without its intent"},
		"two intents":             {data: write(t, attempt1, base, held, good), wantLine: 4, want: "while checkpoint 1"},
		"a sequence twice":        {data: write(t, attempt1, base, held, heldDone, held), wantLine: 5, want: "checkpoint 1 after checkpoint 1"},
		"a gap in the chain":      {data: write(t, attempt1, base, held, heldDone, journal.Record{Intent: &late}), wantLine: 5, want: "in the chain"},
		"a gap in delivery":       {data: write(t, attempt1, base, held, heldDone, journal.Record{Intent: &moved}), wantLine: 5, want: "follows delivery"},
		"done twice over":         {data: write(t, attempt1, base, begun, held, heldDone, good, goodDone, begun), wantLine: 8, want: "after it was done"},
	} {
		t.Run(name, func(t *testing.T) {
			records, _, err := journal.Decode(tc.data)
			if err == nil {
				_, err = journal.Replay(records)
			}
			var corrupt *journal.CorruptError
			if !errors.As(err, &corrupt) {
				t.Fatalf("error %v, want a CorruptError", err)
			}
			if corrupt.Line != tc.wantLine || !strings.Contains(corrupt.Reason, tc.want) || corrupt.Later != tc.later {
				t.Errorf("line %d %q, of a later version: %v; want line %d with %q: %v", corrupt.Line, corrupt.Reason, corrupt.Later, tc.wantLine, tc.want, tc.later)
			}
		})
	}
}

// TestTamperingIsFound: no line can be edited, cut, moved, repeated or inserted without breaking the journal there.
func TestTamperingIsFound(t *testing.T) {
	whole := write(t, attempt1, base, begun, started, held, heldDone, ended, good, goodDone)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	wantBroken := func(what string, data []byte, wantLine int) {
		t.Helper()
		records, _, err := journal.Decode(data)
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) {
			t.Fatalf("%s: %v, want a CorruptError", what, err)
		}
		if corrupt.Line != wantLine || len(records) != wantLine-1 {
			t.Errorf("%s: line %d and %d records before it, want line %d", what, corrupt.Line, len(records), wantLine)
		}
	}
	at := 0
	for i, line := range lines {
		for k := range len(line) - 1 {
			for bit := range 8 {
				flipped := bytes.Clone(whole)
				flipped[at+k] ^= 1 << bit
				wantBroken("a flipped bit", flipped, i+1)
			}
		}
		at += len(line)
		if i+1 == len(lines) {
			break // what is cut off at the end is for the chain to find
		}
		wantBroken("a line cut", bytes.Join(slices.Delete(slices.Clone(lines), i, i+1), nil), i+1)
		wantBroken("a line repeated", bytes.Join(slices.Insert(slices.Clone(lines), i, line), nil), i+2)
		moved := slices.Clone(lines)
		moved[i], moved[i+1] = moved[i+1], moved[i]
		wantBroken("two lines exchanged", bytes.Join(moved, nil), i+1)
	}
	wantBroken("a line of another journal", append(bytes.Clone(whole), write(t, attempt2)...), len(lines)+1)
}

// FuzzDecode: whatever is on the disk, reading it neither panics nor guesses. What is read can be written and read again,
// and adding up a prefix record by record is the same as adding up the whole. No bytes that a fuzzer makes have the right
// sums, so that each line is also read as if it had.
func FuzzDecode(f *testing.F) {
	t := &testing.T{}
	f.Add(write(t, attempt1, base, begun, started, held, heldDone, ended, good, goodDone, attempt2))
	f.Add(write(t, attempt1, base, held)[:80])
	f.Add(sealed(`{"version":1,"final":{}}`))
	f.Add([]byte("\x00\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, whole, _ := journal.Decode(data); whole > len(data) || whole > 0 && data[whole-1] != '\n' {
			t.Fatalf("%d of %d bytes are whole", whole, len(data))
		}
		var bodies []journal.Record
		for body := range bytes.SplitSeq(data, []byte("\n")) {
			var r journal.Record
			if json.Unmarshal(body, &r) == nil {
				bodies = append(bodies, r)
			}
		}
		records, _, err := journal.Decode(write(t, bodies...))
		if err != nil {
			return
		}
		want, err := journal.Replay(records)
		if err != nil {
			return
		}
		again, _, err := journal.Decode(write(t, records...))
		if err != nil {
			t.Fatalf("written records cannot be read: %v", err)
		}
		var got journal.State
		for _, r := range again {
			if got, err = got.Apply(r); err != nil {
				t.Fatalf("adding up record by record: %v", err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("states differ:\n%s", diff)
		}
	})
}
