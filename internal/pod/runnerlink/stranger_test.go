// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runnerlink

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestStrangersAreRefused: once a runner has come, a process of the agent that is faster after a broken connection is not
// taken for it, whatever it says; also not by a watchdog that was started again.
func TestStrangersAreRefused(t *testing.T) {
	kept := &memory{}
	path := filepath.Join(t.TempDir(), "s")
	r, err := Listen(path, kept)
	if err != nil {
		t.Fatal(err)
	}
	_ = greet(t, r, path, protocol.RunnerHello{}).Close()
	if e := next(t, r); e.Lost == nil {
		t.Fatalf("event = %+v, want Lost", e)
	}
	steal := func(r *Runner) {
		t.Helper()
		for _, nonce := range []string{"", "x", strings.ToLower(kept.nonce), kept.nonce + "x", kept.nonce[1:]} {
			thief := dial(t, path)
			if err := thief.Send(protocol.RunnerEvent{Hello: &protocol.RunnerHello{Version: protocol.Version, Running: 1, Nonce: nonce}}); err != nil {
				t.Fatal(err)
			}
			if e := next(t, r); !errors.Is(e.Lost, errStranger) {
				t.Errorf("nonce %q: event = %+v, want Lost with %v", nonce, e, errStranger)
			}
			if _, err := thief.Receive(); err == nil {
				t.Errorf("nonce %q: the thief was sent a command", nonce)
			}
		}
	}
	steal(r)
	greet(t, r, path, protocol.RunnerHello{Frozen: true})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = Listen(path, kept); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	steal(r)
	greet(t, r, path, protocol.RunnerHello{Frozen: true})
}

// TestSessionThatWasNotTaken binds nobody: a runner that never got its nonce comes again without.
func TestSessionThatWasNotTaken(t *testing.T) {
	r, path := listening(t)
	for range 2 {
		conn := dial(t, path)
		if err := conn.Send(protocol.RunnerEvent{Hello: &protocol.RunnerHello{Version: protocol.Version}}); err != nil {
			t.Fatal(err)
		}
		if c, err := conn.Receive(); err != nil || c.Session == nil || len(c.Session.Nonce) < 26 {
			t.Fatalf("command = %+v, %v, want a session of 128 bits", c, err)
		}
		_ = conn.Close()
		if e := next(t, r); e.Lost == nil {
			t.Fatalf("event = %+v, want Lost", e)
		}
	}
	greet(t, r, path, protocol.RunnerHello{})
}

// TestWhatIsSaidBeforeTheSession comes after the hello all the same.
func TestWhatIsSaidBeforeTheSession(t *testing.T) {
	r, path := listening(t)
	conn := dial(t, path)
	for _, e := range []protocol.RunnerEvent{
		{Hello: &protocol.RunnerHello{Version: protocol.Version}}, {Signal: &protocol.RunnerSignal{Name: "SIGTERM"}}, {Session: &struct{}{}},
	} {
		if err := conn.Send(e); err != nil {
			t.Fatal(err)
		}
	}
	if e := next(t, r); e.Connected == nil {
		t.Errorf("event = %+v, want Connected", e)
	}
	if e := next(t, r); e.Signal == nil {
		t.Errorf("event = %+v, want Signal", e)
	}
}
