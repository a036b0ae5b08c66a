// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/testkit/workroom"
)

// gateway keeps what it is given, each checkpoint once.
type gateway struct {
	t *testing.T

	mu    sync.Mutex
	taken map[int64]protocol.Changes
	order []int64
	times map[int64]int
	// steps of steering, as often as they came.
	steps   []protocol.SteeringStep
	history []protocol.HistoryEntry
	fail    error
}

func newGateway(t *testing.T) *gateway {
	return &gateway{t: t, taken: map[int64]protocol.Changes{}, times: map[int64]int{}}
}

func (g *gateway) send(_ context.Context, path string, packed []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fail != nil {
		return g.fail
	}
	var c protocol.Changes
	var step protocol.SteeringStep
	var entry protocol.HistoryEntry
	document := any(&c)
	switch path {
	case protocol.SteeringPath:
		document = &step
	case protocol.HistoryPath:
		document = &entry
	}
	in, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		err = json.NewDecoder(in).Decode(document)
	}
	if err != nil {
		g.t.Error(err)
	}
	switch path {
	case protocol.SteeringPath:
		g.steps = append(g.steps, step)
		return nil
	case protocol.HistoryPath:
		g.history = append(g.history, entry)
		return nil
	}
	if g.times[c.Checkpoint]++; g.times[c.Checkpoint] == 1 {
		g.order = append(g.order, c.Checkpoint)
		g.taken[c.Checkpoint] = c
	} else if diff := cmp.Diff(g.taken[c.Checkpoint], c); diff != "" {
		g.t.Errorf("given again, and different (-before +now):\n%s", diff)
	}
	return nil
}

// serve a room until the gateway has all, or a probe ends it, and give the error of that.
func serve(t *testing.T, r *workroom.Room, g *gateway, probe func(string) error) error {
	t.Helper()
	s := New(Options{Dir: r.Dir, Journal: r.Journal, Repository: r.Repository, Send: g.send, Log: slog.New(slog.DiscardHandler), Probe: probe})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	drained := make(chan struct{})
	go func() {
		s.Drained(ctx)
		close(drained)
	}()
	select {
	case err := <-done:
		return err
	case <-drained:
	}
	if ctx.Err() != nil {
		t.Fatal("not everything was handed over in a minute")
	}
	cancel()
	return <-done
}

// take a checkpoint.
func take(t *testing.T, r *workroom.Room) journal.Intent {
	t.Helper()
	taken, err := r.Checkpoint.Take(t.Context(), r.Occasion())
	if err != nil || taken.Intent == nil {
		t.Fatalf("%+v, %v", taken, err)
	}
	return *taken.Intent
}

// TestEachOnce: wherever the process ends, the gateway gets every checkpoint, in order, and not again what is noted.
func TestEachOnce(t *testing.T) {
	pulled := errors.New("pulled")
	for _, step := range []string{"handed over", "handover noted"} {
		r := workroom.New(t, map[string]string{"web/index.html": "<h1>Shop</h1>\n"})
		g := newGateway(t)
		for n := range 5 {
			r.Write("web/a.html", fmt.Sprintln("line", n))
			take(t, r)
		}
		for n := 0; ; n++ {
			err := serve(t, r, g, func(reached string) error {
				if reached == step {
					return pulled
				}
				return nil
			})
			if err == nil {
				break
			}
			if !errors.Is(err, pulled) || n > 20 {
				t.Fatal(err)
			}
			r.Open(nil)
			if step == "handed over" && n == 5 { // nothing is ever noted
				break
			}
		}
		if step == "handed over" {
			if g.times[1] < 5 || len(g.order) != 1 {
				t.Errorf("%v, %v", g.order, g.times)
			}
			if err := serve(t, r, g, nil); err != nil {
				t.Fatal(err)
			}
		} else if g.times[1] != 1 {
			t.Errorf("handed over again although that was noted: %v", g.times)
		}
		if !slices.Equal(g.order, []int64{1, 2, 3, 4, 5}) {
			t.Errorf("%s: %v", step, g.order)
		}
		before := g.times[5]
		if err := serve(t, r, g, nil); err != nil || g.times[5] != before {
			t.Errorf("%v; handed over %d times", err, g.times[5])
		}
		c := g.taken[2]
		if c.Previous != 1 || c.Verdict != "Valid" || c.Action != protocol.ActionPromoted || c.Task != "form" || c.Files != 1 || c.Missing != "" ||
			!strings.HasSuffix(c.Patch, "@@ -1 +1 @@\n-line 0\n+line 1\n") || c.Listed[0] != (protocol.FileChange{Type: protocol.ChangeChange, Path: "web/a.html", Size: 7, Mode: 0o100644}) {
			t.Errorf("%+v", c)
		}
		if c := g.taken[1]; c.Previous != 0 || c.Listed[0].Type != protocol.ChangeAdd || !strings.Contains(c.Patch, "+line 0\n") {
			t.Errorf("%+v", c)
		}
		// A mark that cannot be read costs that all is handed over again.
		if err := os.WriteFile(r.Dir.HandedOver(), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := serve(t, r, g, nil); err != nil || g.times[1] < 2 {
			t.Errorf("%v, %v", err, g.times)
		}
	}
}

// TestWhatIsTaken while the service is at work is handed over, also where there is more of it than fits into memory.
func TestWhatIsTaken(t *testing.T) {
	r := workroom.New(t, map[string]string{"web/index.html": "<h1>Shop</h1>\n"})
	q := newQueue(r.Dir, mark{History: 1 << 62})
	r.Write("web/a.html", "1\n")
	first := take(t, r)
	q.add(entryOf(first, r.Base.String()))
	if e, is, err := q.next(); err != nil || !is || e.sequence != 1 || e.from != r.Base.String() {
		t.Fatalf("%+v, %t, %v", e, is, err)
	}
	if err := q.taken(entry{sequence: 1}); err != nil {
		t.Fatal(err)
	}
	if _, is, err := q.next(); err != nil || is {
		t.Fatalf("%t, %v", is, err)
	}
	for n := range int64(2 * mostQueued) {
		q.add(entry{sequence: n + 2})
	}
	q.add(entry{sequence: 2}) // known
	if waiting, known := q.waiting(); !waiting || known != mostQueued || !q.behind {
		t.Errorf("%t, %d, %t", waiting, known, q.behind)
	}
	for n := int64(2); n < mostQueued+2; n++ {
		e, is, err := q.next()
		if err != nil || !is || e.sequence != n {
			t.Fatalf("%+v, %t, %v; want %d", e, is, err, n)
		}
		q.entries = q.entries[1:]
		q.mark.Checkpoint = n
	}
	// The others are not in this journal: nothing is left.
	if e, is, err := q.next(); err != nil || is {
		t.Errorf("%+v, %t, %v", e, is, err)
	}
}

// TestTrouble: what the gateway refuses for ever is passed over, what it cannot take now is tried again, and a repository without the
// content costs the diff and nothing else.
func TestTrouble(t *testing.T) {
	r := workroom.New(t, map[string]string{"web/index.html": "<h1>Shop</h1>\n"})
	r.Write("web/a.html", "1\n")
	take(t, r)
	r.Write("web/a.html", "2\n")
	second := take(t, r)
	g := newGateway(t)
	g.fail = ErrRefused
	if err := serve(t, r, g, nil); err != nil || len(g.order) > 0 {
		t.Fatalf("%v, %v", err, g.order)
	}
	if err := os.Remove(r.Dir.HandedOver()); err != nil {
		t.Fatal(err)
	}
	g.fail = errors.New("away")
	short, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	s := New(Options{Dir: r.Dir, Journal: r.Journal, Repository: r.Repository, Send: g.send, Log: slog.New(slog.DiscardHandler)})
	done := make(chan error, 1)
	go func() { done <- s.Serve(short) }()
	s.Drained(short)
	if err := <-done; err != nil || short.Err() == nil {
		t.Fatalf("%v", err)
	}
	g.fail = nil
	if err := serve(t, r, g, nil); err != nil || !slices.Equal(g.order, []int64{1, 2}) {
		t.Fatalf("%v, %v", err, g.order)
	}
	lost := entryOf(second, "")
	lost.sequence, lost.to = 3, strings.Repeat("1", 40)
	path, packed, err := s.pack(t.Context(), lost)
	if err == nil {
		err = g.send(t.Context(), path, packed)
	}
	if c := g.taken[3]; err != nil || !strings.HasPrefix(c.Missing, "cannot make the diff") || c.Patch != "" || c.Verdict != "Valid" {
		t.Errorf("%v, %+v", err, c)
	}
}

// TestNothingHasEverChanged: the chain has no commit then, and there is nothing to compare.
func TestNothingHasEverChanged(t *testing.T) {
	r := workroom.New(t, map[string]string{"web/index.html": "<h1>Shop</h1>\n"})
	o := r.Occasion()
	o.Trigger = protocol.TriggerFinal
	if taken, err := r.Checkpoint.Take(t.Context(), o); err != nil || taken.Intent == nil || taken.Intent.Commit != "" {
		t.Fatalf("%+v, %v", taken, err)
	}
	g := newGateway(t)
	if err := serve(t, r, g, nil); err != nil {
		t.Fatal(err)
	}
	if c := g.taken[1]; c.Checkpoint != 1 || c.Files != 0 || c.Missing != "" {
		t.Errorf("%+v", c)
	}
}

// spent is the CPU time of this process, and of the ones that it has started and that have ended. The work gives way to everything else on the machine, so
// that its wall time says nothing.
func spent(t *testing.T) (sum time.Duration) {
	t.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return sum
}

// TestHostileTrees: whatever a tree has, what is handed over is bounded, is text, has no secret, and takes seconds.
func TestHostileTrees(t *testing.T) {
	r := workroom.New(t, map[string]string{"web/index.html": "<h1>Shop</h1>\n"})
	token := "ghp_" + "x7Kq2mVw9TzR4bNc8LdY1sHf6JgPaE3uQ5oi"
	var edits []objects.Edit
	put := func(path string, mode uint32, content []byte) {
		t.Helper()
		id, err := r.Repository.Store().Write(objects.KindBlob, content)
		if err != nil {
			t.Fatal(err)
		}
		edits = append(edits, objects.Edit{Path: path, Entry: &objects.Entry{Mode: mode, ID: id, Size: int64(len(content))}})
	}
	put("a/large.txt", objects.ModeFile, bytes.Repeat([]byte("a line of text\n"), 100<<20/15))
	put("a/binary", objects.ModeFile, []byte("\x00\x01\x02"+token))
	put("a/escape\x1b[2J\nname", objects.ModeFile, []byte("one\x1b]0;title\a\ntwo\xff\n"))
	put("a/link", objects.ModeSymlink, []byte("/etc/"+token))
	put("a/secret.env", objects.ModeFile, []byte("GITHUB="+token+"\n"))
	put("a/\u202etxt.exe", objects.ModeExecutable, []byte("x"))
	submodule, err := objects.ParseID(strings.Repeat("5", 40))
	if err != nil {
		t.Fatal(err)
	}
	edits = append(edits, objects.Edit{Path: "a/submodule", Entry: &objects.Entry{Mode: objects.ModeGitlink, ID: submodule}})
	put("many/0/file-0", objects.ModeFile, []byte("x\n"))
	same := edits[len(edits)-1].Entry
	for n := 1; n < 100_000; n++ {
		edits = append(edits, objects.Edit{Path: fmt.Sprintf("many/%d/file-%d", n%100, n), Entry: same})
	}
	tree, err := (&objects.Tree{ID: objects.EmptyTree}).Apply(edits, func(_ objects.ID, content []byte) error {
		_, err := r.Repository.Store().Write(objects.KindTree, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	person := objects.Person{Name: "A", Email: "a@example.com", When: time.Unix(1, 0).UTC()}
	commit, err := r.Repository.WriteCommit(objects.Commit{Tree: tree.ID, Parents: []objects.ID{r.Base}, Author: person, Committer: person, Message: "Much"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Repository.UpdateRefs(t.Context(), []git.RefUpdate{{Name: "refs/heads/much", New: commit}}); err != nil {
		t.Fatal(err)
	}
	r.Open(nil)
	s := New(Options{Dir: r.Dir, Journal: r.Journal, Repository: r.Repository, Log: slog.New(slog.DiscardHandler)})
	before := spent(t)
	path, packed, err := s.pack(t.Context(), entry{sequence: 1, from: r.Base.String(), to: commit.String()})
	took := spent(t) - before
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t)
	if err := g.send(t.Context(), path, packed); err != nil {
		t.Fatal(err)
	}
	c := g.taken[1]
	names := 0
	for _, f := range c.Listed {
		names += len(f.Path)
		if strings.ContainsAny(f.Path, "\n\x1b\u202e") || strings.Contains(f.Path, token) {
			t.Errorf("path %q", f.Path)
		}
	}
	if c.Files != 100_008 || len(c.Listed) > protocol.MaxListed || len(c.Listed) < protocol.MaxListed/2 || names > protocol.MaxNames {
		t.Errorf("%d files, %d listed with %d bytes", c.Files, len(c.Listed), names)
	}
	if len(c.Patch) > protocol.MaxPatch || !utf8.ValidString(c.Patch) || strings.ContainsAny(c.Patch, "\x1b\x00\u202e\a") || strings.Contains(c.Patch, token) {
		t.Errorf("%d bytes of a patch:\n%.2000s", len(c.Patch), c.Patch)
	}
	for _, want := range []string{"Binary files /dev/null and b/a/large.txt differ", "Binary files /dev/null and b/a/binary differ", `one\u001b]0;title\u0007`, `two\xff`, "+GITHUB=[redacted: ", "+Subproject commit 5555"} {
		if !strings.Contains(c.Patch, want) {
			t.Errorf("the patch has no %q:\n%.2000s", want, c.Patch)
		}
	}
	for _, want := range []string{"the diff is longer than 1024 KiB", "1 files of more than 1024 KiB"} {
		if !strings.Contains(c.Missing, want) {
			t.Errorf("missing %q has no %q", c.Missing, want)
		}
	}
	t.Logf("%s of CPU time for %d bytes, %d files listed, %d bytes of a patch", took, len(packed), len(c.Listed), len(c.Patch))
	if took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, _, err := s.pack(ctx, entry{sequence: 2, from: r.Base.String(), to: commit.String()}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Minute {
		t.Errorf("cancelled: %v after %s", err, time.Since(began))
	}
}
