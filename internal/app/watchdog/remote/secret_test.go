// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// mount shows a version of a Secret as the kubelet does, and then removes the version before.
func mount(dir string, version int) error {
	name := fmt.Sprintf("..version-%d", version)
	if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
		return err
	}
	for _, key := range []string{protocol.GitHostsFile, protocol.GitUsernameFile, protocol.GitPasswordFile} {
		if err := os.WriteFile(filepath.Join(dir, name, key), fmt.Appendf(nil, "%s-%d\n", key, version), 0o644); err != nil {
			return err
		}
	}
	link := filepath.Join(dir, "..data_tmp")
	if err := os.Symlink(name, link); err != nil {
		return err
	}
	if err := os.Rename(link, filepath.Join(dir, dataLink)); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..version-%d", version-1)))
}

// TestASecretIsReadInOneVersion: while it changes all the time, no password is read without the list of hosts that came
// with it.
func TestASecretIsReadInOneVersion(t *testing.T) {
	dir := t.TempDir()
	if err := mount(dir, 1); err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	changed := make(chan error, 1)
	go func() {
		for version := 2; !over.Load(); version++ {
			if err := mount(dir, version); err != nil {
				changed <- err
				return
			}
		}
		changed <- nil
	}()
	read := 0
	for range 3000 {
		s, err := readSecret(dir)
		if err != nil {
			continue // it changed again and again
		}
		read++
		_, of, _ := strings.Cut(s.password, "-")
		if s.hosts == nil || *s.hosts != "hosts-"+of || s.username != "username-"+of || of == "" {
			t.Fatalf("%+v is of several versions", s)
		}
	}
	over.Store(true)
	if err := <-changed; err != nil || read == 0 {
		t.Fatalf("read %d times: %v", read, err)
	}
}

func TestASecretThatIsNotThere(t *testing.T) {
	if s, err := readSecret(filepath.Join(t.TempDir(), "none")); err != nil || s != (gitSecret{}) {
		t.Errorf("%+v, %v", s, err)
	}
}
