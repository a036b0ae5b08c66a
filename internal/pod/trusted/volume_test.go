// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func claimed(t *testing.T, d Dir, epoch int64) *Volume {
	t.Helper()
	v, err := Claim(t.Context(), d, epoch, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func closed(t *testing.T, v *Volume) {
	t.Helper()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// A newer attempt takes the volume over; the older one, whether it runs or is started again, changes nothing any more.
func TestANewerAttemptFencesTheOlder(t *testing.T) {
	d := Dir(t.TempDir())
	older := claimed(t, d, 1)
	if err := older.Guard(); err != nil {
		t.Errorf("the owner: %v", err)
	}
	closed(t, older) // its node is gone, and the lock with it
	newer := claimed(t, d, 2)
	if err := older.Guard(); !errors.Is(err, ErrFenced) {
		t.Errorf("the older attempt: %v, want %v", err, ErrFenced)
	}
	if err := newer.Guard(); err != nil {
		t.Errorf("the newer attempt: %v", err)
	}
	closed(t, newer)
	if _, err := Claim(t.Context(), d, 1, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrFenced) {
		t.Errorf("the older attempt, started again: %v, want %v", err, ErrFenced)
	}
	closed(t, claimed(t, d, 2)) // as after a crash
}

// Two processes of one node do not own the volume at the same time: the second waits, for as long as it may.
func TestTheLockIsWaitedFor(t *testing.T) {
	d := Dir(t.TempDir())
	first := claimed(t, d, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Claim(ctx, d, 1, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
		t.Errorf("claimed while another process holds the lock: %v", err)
	}
	got := make(chan error)
	go func() {
		v, err := Claim(t.Context(), d, 1, slog.New(slog.DiscardHandler))
		if err == nil {
			err = v.Close()
		}
		got <- err
	}()
	closed(t, first)
	if err := <-got; err != nil {
		t.Errorf("claimed after the lock was given up: %v", err)
	}
}

// What a killed git, or a writer of packs, left half done is removed by the next owner; nothing else is.
func TestAClaimSweeps(t *testing.T) {
	d := Dir(t.TempDir())
	files := map[string]bool{ // and whether they stay
		"HEAD": true, "config.lock": false, "refs/tidewaiter/chain": true, "refs/tidewaiter/chain.lock": false,
		"objects/pack/pack-1.pack": true, "objects/pack/pack-1.idx": true, "objects/pack/pack-2.pack": false,
		"objects/pack/tmp_pack_x": false, "objects/.tmp-y": false, "objects/ab/cd": true,
	}
	for name := range files {
		path := filepath.Join(d.Repository(), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, claimed(t, d, 1))
	for name, stays := range files {
		if _, err := os.Stat(filepath.Join(d.Repository(), name)); (err == nil) != stays {
			t.Errorf("%s: %v, want it there: %v", name, err, stays)
		}
	}
}

// An epoch that cannot be read is no reason to take the volume over.
func TestADamagedEpochIsRefused(t *testing.T) {
	d := Dir(t.TempDir())
	if err := os.WriteFile(d.epoch(), []byte("two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(t.Context(), d, 3, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("claimed: %v, want %v", err, ErrCorrupt)
	}
}

// The nonce of a runner is kept for the attempt that it belongs to, and no other.
func TestASessionBelongsToOneAttempt(t *testing.T) {
	d := Dir(t.TempDir())
	if nonce, err := NewSession(d, 1).Nonce(); nonce != "" || err != nil {
		t.Errorf("before the first: %q, %v", nonce, err)
	}
	if err := NewSession(d, 1).Keep("n1"); err != nil {
		t.Fatal(err)
	}
	if nonce, err := NewSession(d, 1).Nonce(); nonce != "n1" || err != nil {
		t.Errorf("after a crash: %q, %v", nonce, err)
	}
	if nonce, err := NewSession(d, 2).Nonce(); nonce != "" || err != nil {
		t.Errorf("in the next attempt: %q, %v", nonce, err)
	}
}
