// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// watched is a store that writes down what is made durable, and what has a name by then.
func watched(t *testing.T) (*Store, *[]string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "pack"), 0o755); err != nil {
		t.Fatal(err)
	}
	var log []string
	s := NewStore(dir)
	s.sync = func(f *os.File) error {
		log = append(log, describe(t, dir, f)+" with "+strings.Join(named(t, dir), " "))
		return f.Sync()
	}
	return s, &log
}

// describe says what kind of file is made durable.
func describe(t *testing.T, dir string, f *os.File) string {
	rel, err := filepath.Rel(dir, f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if name := filepath.Base(rel); strings.HasPrefix(name, "tmp_") {
		return strings.Join(strings.Split(name, "_")[:2], "_")
	}
	if st, err := f.Stat(); err != nil || !st.IsDir() {
		t.Errorf("%s is made durable under its final name", rel)
	}
	if rel == "." || rel == "pack" {
		return rel
	}
	return "object directory"
}

// named lists what git would find by now.
func named(t *testing.T, dir string) []string {
	found := []string{"nothing"}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), "tmp_") {
			return err
		}
		kind := filepath.Ext(path)
		if kind == "" {
			kind = "object"
		}
		found = append(found, kind)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 1 {
		found = found[1:]
	}
	slices.Sort(found)
	return found
}

// TestWrittenIsDurable: content comes before its name, a pack before its index, and every name is durable in the end: what
// is reported as written survives a loss of power, and what does not survive was never visible.
func TestWrittenIsDurable(t *testing.T) {
	t.Run("pack", func(t *testing.T) {
		s, log := watched(t)
		p := s.NewPack(nil)
		if _, err := p.Add(KindBlob, []byte("one")); err != nil {
			t.Fatal(err)
		}
		if err := p.Commit(); err != nil {
			t.Fatal(err)
		}
		want := []string{"tmp_pack with nothing", "tmp_obj with .pack", "pack with .idx .pack"}
		if diff := cmp.Diff(want, *log); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("object", func(t *testing.T) {
		s, log := watched(t)
		if _, err := s.Write(KindBlob, []byte("one")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(KindBlob, []byte("one")); err != nil { // as after a crash
			t.Fatal(err)
		}
		want := []string{
			"tmp_obj with nothing", "object directory with object", ". with object",
			"object directory with object", ". with object",
		}
		if diff := cmp.Diff(want, *log); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestNothingIsReportedThatIsNotDurable: whichever of the calls fails, the caller is told.
func TestNothingIsReportedThatIsNotDurable(t *testing.T) {
	failure := errors.New("the disk is on fire")
	for failing := range 3 {
		s, _ := watched(t)
		calls := 0
		s.sync = func(f *os.File) error {
			calls++
			if calls == failing+1 {
				return failure
			}
			return f.Sync()
		}
		p := s.NewPack(nil)
		if _, err := p.Add(KindBlob, []byte("one")); err != nil {
			t.Fatal(err)
		}
		if err := p.Commit(); !errors.Is(err, failure) {
			t.Errorf("pack, call %d: %v", failing, err)
		}
		calls = 0
		if _, err := s.Write(KindBlob, []byte("two")); !errors.Is(err, failure) {
			t.Errorf("object, call %d: %v", failing, err)
		}
	}
}
