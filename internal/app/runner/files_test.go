// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/runnerlink"
)

// TestFiles: an agent finds its files below HOME at each start, whatever an earlier one has made of them; nothing is written elsewhere.
func TestFiles(t *testing.T) {
	p, home, elsewhere := newPod(t, nil), t.TempDir(), t.TempDir()
	settings, outside := filepath.Join(home, ".tool", "settings.json"), filepath.Join(elsewhere, "settings.json")
	start := func() error {
		_, _, err := p.watchdog.Start(t.Context(), protocol.RunnerStart{
			Argv: []string{"/bin/sh", "-c", `test "$(cat .tool/settings.json)" = '{"a":1}'`}, Dir: home,
			Home: home, Files: map[string]string{".tool/settings.json": `{"a":1}`},
		})
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, before := range map[string]func() error{
		"nothing":     func() error { return os.RemoveAll(filepath.Dir(settings)) },
		"an old file": func() error { return os.WriteFile(settings, []byte("old, and longer than what comes"), 0o400) },
		"a pipe":      func() error { return errors.Join(os.Remove(settings), syscall.Mkfifo(settings, 0o600)) },
		"a link to a file": func() error {
			return errors.Join(os.Remove(settings), os.WriteFile(outside, []byte("mine"), 0o600), os.Symlink(outside, settings))
		},
		"an empty folder":     func() error { return errors.Join(os.Remove(settings), os.Mkdir(settings, 0o700)) },
		"a link that dangles": func() error { return errors.Join(os.Remove(settings), os.Symlink("nowhere", settings)) },
	} {
		must(os.MkdirAll(filepath.Dir(settings), 0o700))
		must(os.WriteFile(settings, nil, 0o600))
		must(before())
		if err := start(); err != nil {
			t.Errorf("%s in its place: %v", name, err)
		} else if e := p.exited(); e.Code != 0 {
			t.Errorf("%s in its place: the agent does not see what it should", name)
		}
		must(os.RemoveAll(settings))
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "mine" {
		t.Errorf("the target of a link is %q, %v", text, err)
	}
	for name, before := range map[string]func() error{
		"a link to a folder": func() error { return os.Symlink(elsewhere, filepath.Dir(settings)) },
		"a full folder":      func() error { return os.MkdirAll(filepath.Join(settings, "full"), 0o700) },
	} {
		must(os.RemoveAll(filepath.Dir(settings)))
		must(before())
		var refused *runnerlink.RefusedError
		if err := start(); !errors.As(err, &refused) || !strings.Contains(refused.Reason, ".tool/settings.json in "+home) {
			t.Errorf("%s in its place: %v", name, err)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "mine" {
		t.Errorf("behind the link to a folder there is %q, %v", text, err)
	}
}
