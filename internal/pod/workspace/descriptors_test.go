// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// TestDeepTreesTakeFewDescriptors: however many readers go down however many deep chains of directories, captured or only counted, the process has fewer
// descriptors open than it may have, and finds all.
func TestDeepTreesTakeFewDescriptors(t *testing.T) {
	const chains, levels = 12, 250
	before := runtime.GOMAXPROCS(chains)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	for name, ignored := range map[string]bool{"captured": false, "ignored": true} {
		t.Run(name, func(t *testing.T) {
			files, own := shop(), map[string]string{}
			for i := range chains {
				chain := fmt.Sprintf("chain%02d/", i)
				if ignored {
					chain += "vendor/"
				} else {
					files[chain+strings.Repeat("d/", levels-1)+"last.txt"] = "of the base" // git need not be asked about each level
				}
				chain += strings.Repeat("d/", levels-strings.Count(chain, "/"))
				own[chain+"last.txt"] = chain
			}
			b := newBench(t, files)
			for path, content := range own {
				put(t, b.root, path, content)
			}
			var s workspace.Snapshot
			for range 2 {
				e := b.open()
				peak := highest(t, func() {
					var err error
					if s, err = e.Capture(t.Context(), workspace.Still{}); err != nil || !s.Settled || s.Incomplete {
						t.Errorf("%v, settled %v, incomplete %v", err, s.Settled, s.Incomplete)
					}
				})
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if t.Logf("%d descriptors", peak); peak >= protocol.WatchdogDescriptors {
					t.Fatalf("%d descriptors are open, and it may be %d", peak, protocol.WatchdogDescriptors)
				}
			}
			if got := s.Workspace.Files - int64(len(shop())); got != chains {
				t.Errorf("%d files are counted, want %d: %+v", got, chains, s.Workspace)
			}
			if want := len(own); !ignored && len(s.Changes) != want || ignored && len(s.Changes) != 0 {
				t.Errorf("%d changes, and %d files were written", len(s.Changes), want)
			}
		})
	}
}

// TestRestoresOfDeepTreesTakeFewDescriptors, also with a writer for each chain.
func TestRestoresOfDeepTreesTakeFewDescriptors(t *testing.T) {
	const chains, levels = 12, 200
	before := runtime.GOMAXPROCS(chains)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	files := shop()
	for i := range chains {
		chain := fmt.Sprintf("chain%02d/", i) + strings.Repeat("d/", levels-1)
		for n := range 20 {
			files[chain+fmt.Sprintf("file%02d.txt", n)] = "of the base"
			files[fmt.Sprintf("chain%02d/d/d/d/%02d.txt", i, n)] = "of the base, up again"
		}
	}
	b := newBench(t, files)
	for i := range chains {
		if err := os.RemoveAll(filepath.Join(b.root, fmt.Sprintf("chain%02d", i))); err != nil {
			t.Fatal(err)
		}
	}
	e := b.open()
	peak := highest(t, func() {
		if _, err := e.Restore(t.Context(), b.base); err != nil {
			t.Error(err)
		}
	})
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if t.Logf("%d descriptors", peak); peak >= protocol.WatchdogDescriptors {
		t.Fatalf("%d descriptors are open, and it may be %d", peak, protocol.WatchdogDescriptors)
	}
}

// highest number of descriptors that are open while something happens, as often as one can look.
func highest(t *testing.T, happens func()) (peak int) {
	t.Helper()
	var looking sync.WaitGroup
	done := make(chan struct{})
	looking.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			open, err := os.ReadDir(filepath.Join("/proc", "self", "fd"))
			if err != nil {
				t.Error(err)
				return
			}
			peak = max(peak, len(open))
		}
	})
	happens()
	close(done)
	looking.Wait()
	return peak
}
