// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// watched is a workspace that is watched and was captured once.
func watched(t *testing.T, files map[string]string) *bench {
	t.Helper()
	b := newBench(t, files)
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.capture()
	return b
}

// passing makes names and removes them again.
func passing(t *testing.T, root string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		put(t, root, path, path)
		if err := os.Remove(filepath.Join(root, path)); err != nil {
			t.Fatal(err)
		}
	}
}

func wantTransient(t *testing.T, what string, s workspace.Snapshot, want workspace.Transient) {
	t.Helper()
	if diff := cmp.Diff(want, s.Transient); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// came is a list of names that came and went, and no others.
func came(list ...string) workspace.Transient { return workspace.Transient{Names: list} }

// TestNamesThatCameAndWent: a name is told that neither of two captures has, once, and no other name.
func TestNamesThatCameAndWent(t *testing.T) {
	b := watched(t, map[string]string{".gitignore": "*.o\nout/\n", "web/a.html": "a", "web/kept.o": "tracked", "old": "old"})
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(path string) string { return filepath.Join(b.root, path) }
	passing(t, b.root, "evil.sh", "web/evil.js", "evil.sh", "a.o", ".git/index.lock")
	put(t, b.root, "draft", "x")
	do(os.Rename(at("draft"), at("final")))
	put(t, b.root, "tmp/deep/run", "x")
	do(os.RemoveAll(at("tmp")))
	put(t, b.root, "out/run", "x")
	do(os.RemoveAll(at("out")))
	do(os.MkdirAll(at("web/.git"), 0o755)) // no rule of the base hides it
	do(os.Remove(at("web/.git")))
	passing(t, b.root, "again")
	put(t, b.root, "again", "it is there")
	do(os.Remove(at("old")))
	wantTransient(t, "the first capture", b.capture(), came("draft", "evil.sh", "tmp", "web/.git", "web/evil.js"))
	passing(t, b.root, "late")
	wantTransient(t, "a capture after one that was not recorded", b.capture(), came("draft", "evil.sh", "tmp", "web/.git", "web/evil.js", "late"))
	b.engine.Recorded()
	do(os.Remove(at("web/kept.o")))
	wantTransient(t, "a capture after one that was recorded", b.capture(), came())
	b.engine.Recorded()
	passing(t, b.root, "web/kept.o")
	wantTransient(t, "a tracked file", b.capture(), came("web/kept.o"))
}

// TestADirectoryIsOneName: also where it was watched, so that there are events of what was in it.
func TestADirectoryIsOneName(t *testing.T) {
	b := watched(t, map[string]string{"a": "a"})
	put(t, b.root, "tmp/run", "x")
	for b.engine.Changed() < 2 { // the directory, and the file once the directory is watched
		time.Sleep(time.Millisecond)
	}
	if err := os.RemoveAll(filepath.Join(b.root, "tmp")); err != nil {
		t.Fatal(err)
	}
	wantTransient(t, "the directory", b.capture(), came("tmp"))
}

// TestWhatAnotherProcessKnewDidNotComeAndGo: a name that is recalled was there.
func TestWhatAnotherProcessKnewDidNotComeAndGo(t *testing.T) {
	b := newBench(t, map[string]string{"a": "a"})
	put(t, b.root, "captured", "x")
	b.capture()
	if err := b.engine.Remember(); err != nil {
		t.Fatal(err)
	}
	b.reopen(true)
	if err := b.engine.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.root, "captured")); err != nil {
		t.Fatal(err)
	}
	wantTransient(t, "the next process", b.capture(), came())
}

// TestACaptureThatIsNotRecordedHidesNoName: what only such a capture has seen came and went all the same, and what is back is not gone.
func TestACaptureThatIsNotRecordedHidesNoName(t *testing.T) {
	b := watched(t, map[string]string{"a": "a"})
	b.engine.Recorded()
	put(t, b.root, "seen", "x")
	passing(t, b.root, "back")
	wantTransient(t, "while it is there", b.capture(), came("back"))
	if err := os.Remove(filepath.Join(b.root, "seen")); err != nil {
		t.Fatal(err)
	}
	put(t, b.root, "back", "x")
	wantTransient(t, "when it is gone", b.capture(), came("seen"))
}

// TestAFailedCaptureLeavesNamesToTheNext: nothing that came and went is lost with it.
func TestAFailedCaptureLeavesNamesToTheNext(t *testing.T) {
	b := watched(t, map[string]string{"a": "a"})
	passing(t, b.root, "evil.sh")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.engine.Capture(gone, workspace.Still{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	wantTransient(t, "the next capture", b.capture(), came("evil.sh"))
}

// TestNamesOfTheFreezeAreTold: what goes while the agent is being frozen is told as well.
func TestNamesOfTheFreezeAreTold(t *testing.T) {
	b := watched(t, map[string]string{"other": "x\n"})
	open, err := os.OpenFile(filepath.Join(b.root, "other"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close() // a writer calls for a freeze
	if _, err := open.WriteString("more\n"); err != nil {
		t.Fatal(err)
	}
	put(t, b.root, "run", "x")
	passing(t, b.root, "before")
	s, err := b.engine.Capture(t.Context(), workspace.Still{Freezer: mover{func() {
		if err := os.Remove(filepath.Join(b.root, "run")); err != nil {
			t.Error(err)
		}
	}}})
	if err != nil || !s.Frozen {
		t.Fatalf("frozen %v, %v", s.Frozen, err)
	}
	wantTransient(t, "under the freeze", s, came("before", "run"))
}

// TestARestoreKeepsNames: what came and went before a restore is told by the next checkpoint, also where the one that is being recorded is forgotten after
// it, and no name of the restore's own is.
func TestARestoreKeepsNames(t *testing.T) {
	b := watched(t, map[string]string{"a": "a", "b": "b"})
	link := b.git([]byte("x"), "hash-object", "-w", "--stdin")
	impossible := parse(t, b.git([]byte("120000 blob "+link+"\t"+strings.Repeat("n", 300)+"\n"), "mktree"))
	put(t, b.root, "a", "changed")
	put(t, b.root, "new/deep/x", "x")
	put(t, b.root, "captured", "x")
	passing(t, b.root, "first")
	wantTransient(t, "before", b.capture(), came("first"))
	passing(t, b.root, "second")
	if err := os.Remove(filepath.Join(b.root, "captured")); err != nil { // the checkpoint that is being recorded has it
		t.Fatal(err)
	}
	if _, err := b.engine.Restore(t.Context(), impossible); err == nil {
		t.Fatal("a name of 300 characters was written")
	}
	passing(t, b.root, "third")
	if _, err := b.engine.Restore(t.Context(), b.base); err != nil {
		t.Fatal(err)
	}
	b.engine.Recorded()
	passing(t, b.root, "fourth")
	wantTransient(t, "after", b.capture(), came("second", "third", "fourth"))
}

// TestManyNamesAreBounded: an agent that makes more names than are kept is told of by a count, and where not all of them were followed the list says so.
func TestManyNamesAreBounded(t *testing.T) {
	b := watched(t, map[string]string{"a": "a"})
	for i := range 100 {
		passing(t, b.root, fmt.Sprintf("n%06d", i))
	}
	s := b.capture()
	if n := len(s.Transient.Names); n != 32 || s.Transient.More != 68 || s.Transient.Incomplete || s.Transient.Names[31] != "n000031" {
		t.Errorf("%d names, %d more, incomplete %v", n, s.Transient.More, s.Transient.Incomplete)
	}
	b.engine.Recorded()
	b.engine.Overflow()
	passing(t, b.root, "seen")
	wantTransient(t, "after lost events", b.capture(), workspace.Transient{Names: []string{"seen"}, Incomplete: true})
	b.engine.Recorded()
	before := heap()
	b.engine.Pass(1_000_000, func(i int) string { return fmt.Sprintf("%0240d", i) })
	if more := heap() - before; more > 48<<20 {
		t.Errorf("a million names take %d bytes", more)
	}
	if s = b.capture(); len(s.Transient.Names) != 32 || s.Transient.More != 64<<10-32 || !s.Transient.Incomplete {
		t.Errorf("%d names, %d more, incomplete %v", len(s.Transient.Names), s.Transient.More, s.Transient.Incomplete)
	}
	b.engine.Recorded()
	wantTransient(t, "when all is told", b.capture(), came())
}

// heap is what is in use, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestNamesBeyondTheLimitsAreNotCounted: where a workspace holds too much to be looked at, nobody knows what is gone.
func TestNamesBeyondTheLimitsAreNotCounted(t *testing.T) {
	b := watched(t, map[string]string{"a": "a"})
	passing(t, b.root, "gone")
	put(t, b.root, "b", "b")
	wantTransient(t, "over the limits", b.captureWith(workspace.Still{Limits: workspace.Limits{MaxFiles: 1}}), workspace.Transient{Incomplete: true})
}

// TestWhoDoesNotWatchTellsOfNoNames, and who begins to beside an agent that has been at work says that there may be more.
func TestWhoDoesNotWatchTellsOfNoNames(t *testing.T) {
	b := newBench(t, map[string]string{"a": "a"})
	passing(t, b.root, "unseen")
	wantTransient(t, "without a watcher", b.capture(), came())
	late := b.open()
	defer late.Close()
	if err := late.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := late.Capture(t.Context(), workspace.Still{})
	if err != nil {
		t.Fatal(err)
	}
	wantTransient(t, "a second process", s, workspace.Transient{Incomplete: true})
}

// TestNoNameStandsInTheWayOfOthers: an agent that knows how rules are asked about fails no capture by the names that it chooses.
func TestNoNameStandsInTheWayOfOthers(t *testing.T) {
	for name, comeAndGo := range map[string]bool{"names that come and go": true, "names that stay": false} {
		t.Run(name, func(t *testing.T) {
			b := watched(t, map[string]string{"a": "a"})
			for i := range 3 { // whatever the place among what is asked about is
				put(t, b.root, fmt.Sprintf(".tidewaiter-aside-%d/dir/f", i), "x")
			}
			put(t, b.root, "!turns/f", "x")
			b.capture()
			b.engine.Recorded()
			if err := os.RemoveAll(filepath.Join(b.root, "!turns")); err != nil {
				t.Fatal(err)
			}
			b.capture()
			b.engine.Recorded()
			put(t, b.root, "!turns", "x")
			if comeAndGo {
				if err := os.Remove(filepath.Join(b.root, "!turns")); err != nil {
					t.Fatal(err)
				}
				wantTransient(t, "the capture", b.capture(), came("!turns"))
				return
			}
			b.capture()
		})
	}
}

// TestDirectoriesThatCameAndWentAreBounded: git asks the disk about each of them, and how many there are is the agent's choice.
func TestDirectoriesThatCameAndWentAreBounded(t *testing.T) {
	b := watched(t, map[string]string{"a": "a"})
	for i := range 1100 {
		path := filepath.Join(b.root, fmt.Sprintf("dir%05d", i))
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	passing(t, b.root, "run.sh") // files cost nothing
	got := b.capture().Transient
	if len(got.Names) != 32 || got.More != 1024+1-32 || !got.Incomplete {
		t.Errorf("%d names, %d more, incomplete %v; want 32, 993 and true", len(got.Names), got.More, got.Incomplete)
	}
}
