// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// BenchmarkCapture compares captures with `git add -A && git write-tree` on a private index, and the time that an agent
// is frozen with hashing the same blobs, all interleaved in the same run. Figures are means of the run.
func BenchmarkCapture(b *testing.B) {
	for _, files := range []int{1_000, 10_000, 100_000} {
		w := newLarge(b, files)
		for _, dirty := range []int{10, 100, 1_000} {
			if dirty < files {
				b.Run(fmt.Sprintf("files=%d/dirty=%d", files, dirty), func(b *testing.B) { w.run(b, dirty) })
			}
		}
	}
}

// large is a workspace with many files of 1 to 4 KB, 50 in a directory.
type large struct {
	*bench
	files int
	round int
}

func newLarge(b *testing.B, files int) *large {
	b.Helper()
	dir := b.TempDir()
	w := &large{bench: openBench(b.Context(), b, dir, dir, map[string]string{"README.md": "x\n"}), files: files}
	b.Cleanup(w.close)
	for i := range files {
		w.write(i)
	}
	w.git(nil, "--work-tree="+w.root, "add", "-A", "-f")
	w.base = parse(b, w.git(nil, "commit-tree", "-m", "Large", w.git(nil, "write-tree")))
	if err := w.engine.Reset(b.Context(), w.base, w.base); err != nil {
		b.Fatal(err)
	}
	if err := w.engine.Watch(b.Context()); err != nil {
		b.Fatal(err)
	}
	w.capture()
	return w
}

func (w *large) write(i int) {
	path := fmt.Sprintf("d%d/e%d/file%d.txt", i/2500, i/50, i)
	put(w.t, w.root, path, fmt.Sprintf("%d %d\n%0*d\n", i, w.round, 1000+i%3000, i*w.round))
}

// spread gives n files, spread over the tree.
func (w *large) spread(n int, visit func(i int)) {
	w.round++
	for k := range n {
		visit((k*(w.files/n) + w.round) % w.files)
	}
}

func (w *large) run(b *testing.B, dirty int) {
	var ours, frozen, synced, stock, hashed time.Duration
	for b.Loop() {
		w.spread(dirty, w.write)
		began := time.Now()
		w.git(nil, "--work-tree="+w.root, "add", "-A", "-f")
		w.git(nil, "write-tree")
		stock += time.Since(began)

		began = time.Now()
		w.spreadAgain(dirty, func(path string) {
			content, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			objects.Hash(objects.KindBlob, content)
		})
		hashed += time.Since(began)

		release := w.hold(dirty)
		began = time.Now()
		s, err := w.engine.Capture(b.Context(), workspace.Still{Freezer: w})
		if err != nil || !s.Settled || len(s.Changes) == 0 {
			b.Fatal(err, s.Reason)
		}
		ours += time.Since(began)
		release()
		frozen += s.FrozenFor
		synced += s.SyncTime
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.HeapAlloc)/1e6, "MB/heap")
	n := time.Duration(b.N)
	b.ReportMetric(float64((ours/n).Microseconds())/1000, "ms/capture")
	b.ReportMetric(float64((synced/n).Microseconds())/1000, "ms/sync")
	b.ReportMetric(float64((stock/n).Microseconds())/1000, "ms/git")
	b.ReportMetric(float64((hashed/n).Microseconds())/1000, "ms/hash")
	b.ReportMetric(float64((frozen/n).Microseconds())/1000, "ms/frozen")
	b.ReportMetric(float64(stock)/float64(ours), "git/capture")
	b.ReportMetric(float64(frozen)/float64(hashed), "frozen/hash")
}

// spreadAgain visits the files of the last spread.
func (w *large) spreadAgain(n int, visit func(path string)) {
	w.round--
	w.spread(n, func(i int) { visit(filepath.Join(w.root, fmt.Sprintf("d%d/e%d/file%d.txt", i/2500, i/50, i))) })
}

// hold keeps the files of the last spread open for writing, so that all of them have to be read again under a freeze: the
// worst that an agent can do.
func (w *large) hold(dirty int) (release func()) {
	var open []*os.File
	w.spreadAgain(dirty, func(path string) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		open = append(open, f)
	})
	return func() {
		for _, f := range open {
			f.Close()
		}
	}
}

// Freeze stands for an agent that stops at once.
func (w *large) Freeze(context.Context) (workspace.Frozen, error) {
	return workspace.Frozen{Settled: true}, nil
}

// Thaw does nothing.
func (w *large) Thaw(context.Context) error { return nil }
