// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOutputs: what is kept is read again, the oldest go when there is no room, and a changed one is told.
func TestOutputs(t *testing.T) {
	o := NewOutputs(Dir(t.TempDir()))
	const size = 256 << 10
	var sums []string
	for i := range maxOutputs/size + 3 {
		sum, err := o.Keep(bytes.Repeat([]byte{byte(i)}, size))
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(filepath.Join(o.path, sum), at, at); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
	}
	for i, sum := range sums {
		text, err := o.Read(sum)
		if gone := text == nil; err != nil || gone != (i < 3) || !gone && text[0] != byte(i) {
			t.Errorf("output %d: gone %v, %v", i, gone, err)
		}
	}
	last := sums[len(sums)-1]
	if err := os.WriteFile(filepath.Join(o.path, last), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, sum := range []string{last, "../journal.jsonl", ""} {
		if text, err := o.Read(sum); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %q, %v", sum, text, err)
		}
	}
}

// TestManySmallOutputs are bounded too.
func TestManySmallOutputs(t *testing.T) {
	o := NewOutputs(Dir(t.TempDir()))
	for i := range maxOutputs/minOutput + 10 {
		if err := os.MkdirAll(o.path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(o.path, fmt.Sprintf("%064x", i)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.Keep([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(o.path); err != nil || len(left) > maxOutputs/minOutput+1 {
		t.Errorf("%d are left: %v", len(left), err)
	}
}
