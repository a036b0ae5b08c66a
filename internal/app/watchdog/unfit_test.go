// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// A repository that cannot be worked on ends the attempt before its agent runs, and is asked for once.
func TestARepositoryThatCannotBeWorkedOn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(*world)
		want  string
		words string
	}{
		"SHA-256 names": {
			spoil: func(w *world) {
				w.write("long/a", "a\n")
				long := filepath.Join(w.dir, "long")
				w.git("init", "-q", "-b", "main", "--object-format=sha256", long)
				w.commitAll(long, "Begin")
				if err := os.RemoveAll(w.origin); err != nil {
					w.t.Fatal(err)
				}
				w.git("clone", "-q", "--bare", long, w.origin)
			},
			want: protocol.ReasonObjectFormatUnsupported, words: "SHA-256",
		},
		"a tree that Git refuses": {
			spoil: func(w *world) {
				w.odd("100644 README.md", "100644 README.md")
			},
			want: protocol.ReasonRepositoryDamaged, words: "duplicateEntries",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			tc.spoil(w)
			if err := w.prepare(1); err == nil {
				t.Fatal("prepare succeeded: the agent would start")
			}
			f := *w.intake.Final(1)
			wantFinal(t, f, protocol.OutcomeBlocked, tc.want)
			if !strings.Contains(f.Message, tc.words) || strings.Contains(f.Message, secretPassword) {
				t.Errorf("message %q, want it to say %q", f.Message, tc.words)
			}
		})
	}
}

// commitAll commits everything of a work tree.
func (w *world) commitAll(dir, subject string) {
	w.t.Helper()
	w.git("-C", dir, "add", "-A")
	w.git("-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", subject)
}

// odd makes a tree of entries that stock Git would not write the newest commit of the branch main: each "<mode> <name>" names the
// file README.md, or the root of the commit before where the mode is a directory's.
func (w *world) odd(entries ...string) {
	w.t.Helper()
	var tree strings.Builder
	for _, e := range entries {
		name := "main:README.md"
		if mode, _, _ := strings.Cut(e, " "); strings.TrimLeft(mode, "0")[0] == '4' {
			name = "main^{tree}"
		}
		tree.WriteString(e + "\x00" + string(w.rawID(name)))
	}
	w.write("tree", tree.String())
	id := w.git("-C", w.origin, "hash-object", "-w", "--literally", "-t", "tree", filepath.Join(w.dir, "tree"))
	commit := w.git("-C", w.origin, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit-tree", "-m", "Odd", "-p", "main", id)
	w.git("-C", w.origin, "update-ref", "refs/heads/main", commit)
}

// rawID is the binary id of an object on the server.
func (w *world) rawID(name string) []byte {
	w.t.Helper()
	id, err := hex.DecodeString(w.git("-C", w.origin, "rev-parse", name))
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// A server that lacks the older part of its history is worked on as any other, and the agent's repository is as shallow.
func TestAShallowServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `git log --format=%s > web/log && git fsck --full > web/fsck 2>&1 && git status --short > web/status`)
	seed := w.seed()
	for _, subject := range []string{"Second", "Third"} {
		w.write("seed/web/"+subject, subject)
		w.commitAll(seed, subject)
	}
	if err := os.RemoveAll(w.origin); err != nil {
		t.Fatal(err)
	}
	w.git("clone", "-q", "--bare", "--depth", "2", "file://"+seed, w.origin)
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if w.branch() != f.Head || w.delivered("web/log") != "Third\nSecond" {
		t.Errorf("branch %s, the agent's log:\n%s", w.branch(), w.delivered("web/log"))
	}
	if got := w.delivered("web/fsck"); strings.Contains(got, "missing") || strings.Contains(got, "broken") {
		t.Errorf("the agent's repository:\n%s", got)
	}
	w.git("-C", w.origin, "fsck", "--full")
	w.trusted("fsck", "--full")
}

// Modes that old versions of Git wrote are no change: what the agent does not touch stays the object that it was, no
// difference shows the modes, and a directory that changes is written as Git writes it.
func TestOddModesOfTheBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo new > web/new.html; git status --short > web/status`, func(o *protocol.Orders) {
		o.Plan.Allowed = []string{"web/**"}
	})
	w.odd("100664 README.md", "100600 a", "100775 b", "040000 old", "40000 web", "100666 x")
	before := w.git("-C", w.origin, "rev-parse", "main:old")
	if fsck := w.git("-C", w.origin, "fsck", "--full"); !strings.Contains(fsck, "zeroPaddedFilemode") || !strings.Contains(fsck, "badFilemode") {
		t.Fatalf("the modes are not odd: %s", fsck)
	}
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if got := w.git("-C", w.origin, "diff", "--name-status", "main", f.Head); got != "A\tweb/new.html\nA\tweb/status" {
		t.Errorf("delivered:\n%s", got)
	}
	if got := w.delivered("web/status"); got != "?? web/new.html\n?? web/status" {
		t.Errorf("the agent's git status:\n%s", got)
	}
	if after := w.git("-C", w.origin, "rev-parse", f.Head+":old"); after != before {
		t.Errorf("the directory that nobody touched is %s and was %s", after, before)
	}
}

// An agent that changes nothing changes no mode either.
func TestOddModesAndNoChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `true`)
	w.odd("100664 README.md", "040000 old", "100600 x")
	f := w.start(1, nil).finish()
	wantFinal(t, f, protocol.OutcomeDelivered, protocol.ReasonNothingChanged)
	if w.branch() != "" {
		t.Errorf("pushed %s", w.branch())
	}
}

// Work that goes back leaves the odd modes of the base as they were.
func TestOddModesAndWorkThatGoesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo bad > README.md; rm -r old/web; echo good > web/new.html`, seldom, incremental)
	w.odd("100664 README.md", "040000 old", "40000 web", "100600 x")
	f := w.start(1, nil).finish()
	t.Logf("%+v", f)
	if got := w.git("-C", filepath.Join(w.paths.Trusted, "repo.git"), "diff", "--name-status", protocol.RefBase, f.Head); got != "A\tweb/new.html" {
		t.Errorf("promoted:\n%s", got)
	}
	for _, id := range []string{protocol.RefBase, f.Head} {
		t.Log(w.trusted("ls-tree", id))
	}
	if code, out := verify(t, w.paths.Trusted, "--history"); code != 0 {
		t.Errorf("verify: %d\n%s", code, out)
	}
}
