// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/plans"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// life is what a journal holds after n checkpoints.
func life(n int64) []journal.Record {
	records := []journal.Record{
		{Attempt: &journal.Attempt{Epoch: 1, Run: "agent"}},
		{Base: &journal.Base{Commit: "b", Tree: "t0"}},
		{TaskBegun: &journal.TaskBegun{Name: "form \xff"}},
	}
	chain := ""
	for i := int64(1); i <= n; i++ {
		commit := fmt.Sprintf("k%d", i)
		records = append(records,
			journal.Record{Intent: &journal.Intent{Sequence: i, Commit: commit, OldChain: chain, Tree: fmt.Sprintf("t%d", i), Delivery: "b",
				OldDelivery: "b", TreeVerdict: protocol.Invalid, Objection: "<no>", Report: protocol.CheckpointReport{Settled: true}}},
			journal.Record{Done: &journal.Done{Sequence: i}})
		chain = commit
	}
	return records
}

func clock() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 123456789, time.UTC) }

func opened(t *testing.T, d Dir, fold int64) *Journal {
	t.Helper()
	b, err := OpenJournal(d, fold, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func noted(t *testing.T, b *Journal, records []journal.Record) {
	t.Helper()
	for _, r := range records {
		if err := b.Note(r); err != nil {
			t.Fatal(err)
		}
	}
}

func text(t *testing.T, s journal.State) string {
	t.Helper()
	data, err := json.Marshal(s)
	var read journal.State // as a journal gives it back: what is no UTF-8 is written another way then
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	if err == nil {
		data, err = json.MarshalIndent(read, "", " ")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestJournalIsFolded: what is read at a start stays small, and nothing of the record is lost.
func TestJournalIsFolded(t *testing.T) {
	const checkpoints, fold = 200, 8 << 10
	d := Dir(t.TempDir())
	b := opened(t, d, fold)
	noted(t, b, life(checkpoints))
	want := text(t, b.State())
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(d.journal())
	if err != nil {
		t.Fatal(err)
	}
	again := opened(t, d, fold)
	if limit := fold + again.begin + 4<<10; info.Size() > limit {
		t.Errorf("the journal has %d bytes, want %d at most", info.Size(), limit)
	}
	if again.segments < 5 {
		t.Errorf("%d segments, want more", again.segments)
	}
	if diff := cmp.Diff(want, text(t, again.State())); diff != "" {
		t.Errorf("state after a start (-before +after)\n%s", diff)
	}
	for _, sequence := range []int64{1, 2, 57, checkpoints} {
		i, found, err := again.Checkpoint(sequence)
		if err != nil || !found || i.Sequence != sequence {
			t.Errorf("checkpoint %d = %+v, %v, %v", sequence, i, found, err)
		}
	}
	if _, found, err := again.Checkpoint(checkpoints + 1); found || err != nil {
		t.Errorf("a checkpoint that never was: %v, %v", found, err)
	}
	whole, err := ReadJournal(d)
	if err != nil {
		t.Fatal(err)
	}
	records, n, err := journal.Decode(whole)
	if err != nil || n != len(whole) || len(records) != len(life(checkpoints))+again.segments {
		t.Fatalf("the whole journal: %d records in %d of %d bytes, %v", len(records), n, len(whole), err)
	}
	state, err := journal.Replay(records) // which compares each snapshot with what comes before it
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, text(t, state)); diff != "" {
		t.Errorf("state of the whole (-want +got)\n%s", diff)
	}
}

// TestFoldThatACrashInterrupts leaves a segment that no journal names; the next one takes its place.
func TestFoldThatACrashInterrupts(t *testing.T) {
	d := Dir(t.TempDir())
	b := opened(t, d, 1<<30)
	records := life(20)
	noted(t, b, records[:21])
	if err := os.WriteFile(segmentPath(d.journal(), 1), []byte("half a segment"), 0o600); err != nil {
		t.Fatal(err)
	}
	b = opened(t, d, 1<<30)
	noted(t, b, records[21:25])
	b.foldAbove = 0
	noted(t, b, records[25:])
	whole, err := ReadJournal(d)
	if err != nil {
		t.Fatal(err)
	}
	if have, _, err := journal.Decode(whole); err != nil || len(have) != len(records)+b.segments {
		t.Errorf("%d records, %v, want %d and %d snapshots", len(have), err, len(records), b.segments)
	}
}

// TestFoldOnAFullVolume: the record that called for it is there, and the journal goes on unfolded.
func TestFoldOnAFullVolume(t *testing.T) {
	d := Dir(t.TempDir())
	b := opened(t, d, 0)
	if err := os.Mkdir(segmentPath(d.journal(), 1), 0o700); err != nil { // stands in for a volume on which it cannot be made
		t.Fatal(err)
	}
	noted(t, b, life(5))
	if b.segments != 0 {
		t.Fatalf("%d segments", b.segments)
	}
	want := text(t, b.State())
	if err := os.Remove(segmentPath(d.journal(), 1)); err != nil {
		t.Fatal(err)
	}
	again := opened(t, d, 0)
	if diff := cmp.Diff(want, text(t, again.State())); diff != "" {
		t.Errorf("state (-want +got)\n%s", diff)
	}
	noted(t, again, []journal.Record{{Told: &journal.Told{Text: "x"}}})
	if again.segments != 1 {
		t.Errorf("%d segments, want 1", again.segments)
	}
}

// TestTheLargestOrdersAreJournaled with a plan that takes the place of another one: no record is too large for the journal.
func TestTheLargestOrdersAreJournaled(t *testing.T) {
	d := Dir(t.TempDir())
	b := opened(t, d, FoldAbove)
	noted(t, b, life(1))
	plan := func(task string) journal.Record {
		return journal.Record{Planned: &journal.Planned{Plan: &protocol.Proposal{Milestones: []protocol.ProposedMilestone{{Name: "page",
			Tasks: []protocol.ProposedTask{{Name: task, Instructions: strings.Repeat("x", plans.MaxBytes)}}}}}}}
	}
	orders := func(task string) journal.Record {
		return journal.Record{Orders: &protocol.Orders{Prompt: strings.Repeat("x", protocol.MaxOrdersBytes),
			Tasks: []protocol.Task{{Name: "page/" + task, Instructions: strings.Repeat("x", plans.MaxBytes)}}}}
	}
	noted(t, b, []journal.Record{plan("form"), orders("form"), plan("save"), orders("save")})
	want := text(t, b.State())
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if s := opened(t, d, FoldAbove).State(); text(t, s) != want || len(s.Orders.Prompt) != protocol.MaxOrdersBytes || s.Orders.Tasks[0].Name != "page/save" {
		t.Errorf("the journal does not give back what was noted: %d bytes of a prompt, tasks %.100s", len(s.Orders.Prompt), s.Orders.Tasks[0].Name)
	}
}
