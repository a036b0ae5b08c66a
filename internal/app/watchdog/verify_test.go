// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// verify runs `watchdog verify` on a trusted volume.
func verify(t *testing.T, trusted string, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	code := command(append([]string{"verify", "--trusted", trusted}, args...), &out, &out)
	return code, out.String()
}

// copyOf copies a directory, for one test to damage.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestVerifyALivingRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `for i in 1 2 3 4 5 6; do echo $i > web/$i.html; sleep 0.1; done; `, keen)
	p := w.start(1, nil)
	w.eventually("a checkpoint is taken", func() bool { return len(w.intake.Checkpoints()) > 0 })
	for looks := 0; w.intake.Final(1) == nil; looks++ {
		if code, out := verify(t, w.paths.Trusted); code != 0 {
			t.Fatalf("look %d: code %d\n%s", looks, code, out)
		}
	}
	wantFinal(t, p.finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	taken := w.intake.Checkpoints()
	code, out := verify(t, w.paths.Trusted, "--json", "--history", "--commit", taken[len(taken)-1].Commit)
	var got struct {
		Whole       bool
		Checkpoints int
		Objects     int
		Delivery    string
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if code != 0 || !got.Whole || got.Checkpoints != len(taken) || got.Delivery != w.branch() || got.Objects < 10 {
		t.Errorf("code %d, %+v with %d checkpoints taken and %s delivered", code, got, len(taken), w.branch())
	}
}

func TestVerifyFindsWhatWasTamperedWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `echo one > web/1.html; echo two > web/2.html; echo evil > web/legacy/evil.html`, seldom)
	wantFinal(t, w.start(1, nil).finish(), protocol.OutcomeBlocked, protocol.ReasonCheckpointInvalid)
	w.intake.Order(func(o *protocol.Orders) { o.Agent.Command = []string{"sh", "-c", "echo three > web/3.html"} })
	wantFinal(t, w.start(2, nil).finish(), protocol.OutcomeDelivered, protocol.ReasonDelivered)
	if code, out := verify(t, w.paths.Trusted, "--history"); code != 0 {
		t.Fatalf("before anything is changed: code %d\n%s", code, out)
	}
	t.Run("a flipped bit of an object", func(t *testing.T) { t.Parallel(); flipObjects(t, w.paths.Trusted) })
	t.Run("a missing commit", func(t *testing.T) {
		t.Parallel()
		trusted := copyOf(t, w.paths.Trusted)
		first := w.intake.Checkpoints()[0].Commit
		if err := os.Remove(filepath.Join(trusted, "repo.git", "objects", first[:2], first[2:])); err != nil {
			t.Fatal(err)
		}
		if code, out := verify(t, trusted); code != 1 || !strings.Contains(out, "BROKEN at checkpoint 1: commit "+first) {
			t.Errorf("code %d\n%s", code, out)
		}
	})
	t.Run("the journal", func(t *testing.T) { t.Parallel(); tamperJournal(t, w.paths.Trusted) })
	t.Run("everything cut back", func(t *testing.T) {
		t.Parallel()
		taken := w.intake.Checkpoints()
		trusted, last := copyOf(t, w.paths.Trusted), taken[len(taken)-1]
		cutJournal(t, trusted, `"sequence":2`)
		w.git("-C", filepath.Join(trusted, "repo.git"), "update-ref", protocol.RefChain, taken[0].Commit)
		w.git("-C", filepath.Join(trusted, "repo.git"), "update-ref", protocol.RefDelivery, protocol.RefBase)
		if code, out := verify(t, trusted); code != 0 {
			t.Fatalf("nothing on the volume tells of it, and yet: code %d\n%s", code, out)
		}
		if code, out := verify(t, trusted, "--commit", last.Commit); code != 1 || !strings.Contains(out, "were cut or replaced") {
			t.Errorf("with the commit of the last Checkpoint: code %d\n%s", code, out)
		}
	})
}

// flipObjects flips a bit in the middle of every loose object and in a hundred places of every pack.
func flipObjects(t *testing.T, trusted string) {
	objects := filepath.Join("repo.git", "objects")
	flips := 0
	err := fs.WalkDir(os.DirFS(filepath.Join(trusted, objects)), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(name, ".idx") || strings.HasSuffix(name, ".rev") {
			return err
		}
		data, err := os.ReadFile(filepath.Join(trusted, objects, name))
		if err != nil {
			return err
		}
		step := len(data)
		if strings.HasSuffix(name, ".pack") {
			step = max(1, len(data)/8)
		}
		for at := step / 2; at < len(data); at += step {
			flips++
			broken := copyOf(t, trusted)
			data[at] ^= 1
			if err := os.Chmod(filepath.Join(broken, objects, name), 0o644); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(broken, objects, name), data, 0o644); err != nil {
				return err
			}
			data[at] ^= 1
			if code, out := verify(t, broken, "--history"); code != 1 || !strings.Contains(out, "BROKEN at ") {
				t.Errorf("byte %d of %s: code %d\n%s", at, name, code, out)
			}
		}
		return nil
	})
	if err != nil || flips < 10 {
		t.Errorf("%d flips, %v", flips, err)
	}
}

// tamperJournal edits, cuts and moves lines.
func tamperJournal(t *testing.T, trusted string) {
	whole, err := os.ReadFile(filepath.Join(trusted, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	broken := copyOf(t, trusted)
	try := func(what string, data []byte, want string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(broken, "journal.jsonl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out := verify(t, broken); code != 1 || !strings.Contains(out, want) {
			t.Errorf("%s: code %d, want %q\n%s", what, code, want, out)
		}
	}
	try("a verdict edited", bytes.Replace(whole, []byte(`"standing":"Invalid"`), []byte(`"standing":"Valid"`), 1), "it is not what was written")
	try("a line moved", bytes.Join(append([][]byte{lines[1], lines[0]}, lines[2:]...), nil), "BROKEN at journal line 1: it does not follow")
	try("a line cut", bytes.Join(append([][]byte{lines[0], lines[1]}, lines[3:]...), nil), "BROKEN at journal line 3: it does not follow")
	try("cut back to the first lines", bytes.Join(lines[:4], nil), "BROKEN at ref "+protocol.RefChain)
	try("emptied", nil, "BROKEN at ")
}

// cutJournal cuts the journal before the first line that holds a text.
func cutJournal(t *testing.T, trusted, text string) {
	path := filepath.Join(trusted, "journal.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := bytes.Cut(data, []byte(text))
	if err := os.Truncate(path, int64(bytes.LastIndexByte(before, '\n')+1)); err != nil {
		t.Fatal(err)
	}
}
