// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/vitals"
)

func TestMemoryGrowsWithWhatIsTouched(t *testing.T) {
	before, err := vitals.Memory()
	if err != nil {
		t.Fatal(err)
	}
	const more = 64 << 20
	touched := strings.Repeat("x", more)
	after, err := vitals.Memory()
	if err != nil || len(touched) != more || before < 1<<20 || after < before+more/2 {
		t.Errorf("%d bytes, and %d with %d more touched (%v)", before, after, more, err)
	}
}

func TestDescriptors(t *testing.T) {
	before, err := vitals.Descriptors()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		f, err := os.Open("/")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	if after, err := vitals.Descriptors(); err != nil || before < 3 || after != before+5 {
		t.Errorf("%d, and %d with five more (%v)", before, after, err)
	}
}

func TestVolume(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m,nr_inodes=100"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	wantBetween := func(what string, least, most float64) {
		t.Helper()
		used, size, err := vitals.Volume(dir)
		if ratio := float64(used) / float64(size); err != nil || size != 8<<20 || ratio < least || ratio > most {
			t.Errorf("%s: %d of %d bytes (%v), want a ratio from %v to %v", what, used, size, err, least, most)
		}
	}
	wantBetween("empty", 0, 0.05)
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, 6<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	wantBetween("with a large file", 0.75, 0.80)
	for i := range 90 {
		if err := os.Mkdir(filepath.Join(dir, "many"+strings.Repeat("x", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	wantBetween("with many files", 0.90, 0.96)
	if _, _, err := vitals.Volume("/nowhere"); err == nil {
		t.Error("a volume that does not exist was measured")
	}
}
