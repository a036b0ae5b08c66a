// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/pem"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
	"github.com/tidewaiter/tidewaiter/internal/testkit/fakeintake"
	"github.com/tidewaiter/tidewaiter/internal/testkit/gitserver"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

// prepareRuns of each measurement: one takes seconds.
const prepareRuns = 3

// preparing compares a preparation from nothing with `git clone` over the same line, and the first checkpoint after it with
// `git add -A && git write-tree` in that clone, with ten files changed. The limit of any first checkpoint is to ask for the
// state of every file once, in a tree that nobody has looked at since it was made.
func preparing(t *testing.T, s scale, b *board.Board) {
	files := s.files[len(s.files)-1]
	o := newOrigin(t, files)
	var prepared, cloned, first, added, walked []time.Duration
	for run := range prepareRuns {
		dir := filepath.Join(o.dir, fmt.Sprintf("run%d", run))
		clone := filepath.Join(dir, "clone")
		o.do(os.MkdirAll(dir, 0o755))
		cloned = append(cloned, o.time(func() { o.stock("clone", "-q", o.url, clone) }))
		w := o.volumes(dir)
		prepared = append(prepared, o.time(func() { o.do(watchdog.Prepare(t.Context(), w)) }))
		o.change(clone, run)
		o.change(w.Paths.Workspace, run)
		added = append(added, o.time(func() {
			o.stock("-C", clone, "add", "-A")
			o.stock("-C", clone, "write-tree")
		}))
		first = append(first, o.first(w.Paths))
		beside := filepath.Join(dir, "beside")
		o.stock("-C", clone, "worktree", "add", "--quiet", "--detach", beside)
		walked = append(walked, o.time(func() { o.walk(beside) }))
		o.do(os.RemoveAll(dir))
	}
	name := "files=" + short(files)
	b.Ratio("prepare-vs-clone/"+name, board.Median(prepared), board.Median(cloned), board.AtMost(1.5))
	b.Ratio("first-checkpoint-vs-git/"+name+"/dirty=10", board.Median(first), board.Median(added), board.AtMost(1))
	b.Ratio("first-checkpoint-vs-walk/"+name+"/dirty=10", board.Median(first), board.Median(walked), board.Bound{})
}

// origin is a Git server with one repository, and an intake.
type origin struct {
	*place
	t      *testing.T
	url    string
	ca     []byte
	intake *fakeintake.Intake
}

func newOrigin(t *testing.T, files int) *origin {
	o := &origin{place: newPlace(t, files, filesInDir), t: t}
	o.git("update-ref", "refs/heads/main", o.base.String())
	handler, err := gitserver.New(o.dir, "bench", "bench")
	o.do(err)
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	o.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	o.url = strings.Replace(server.URL, "https://", "https://bench:bench@", 1) + "/repo.git"
	o.intake = fakeintake.Start(t, protocol.Orders{
		Version: protocol.OrdersVersion, Attempt: 1, Run: "agent", NextCheckpoint: 1,
		Feature:    protocol.FeatureRef{Namespace: "bench", Name: "bench", UID: "u1"},
		Repository: protocol.Repository{URL: server.URL + "/repo.git", Revision: "main", HasCredentials: true, SecretName: "git"},
		Agent:      protocol.Agent{Runtime: "command", Command: []string{"true"}},
		Prompt:     "Do it.",
		Tasks:      []protocol.Task{{Name: "task"}},
		Policy:     policy.Merge(policy.Sources{}),
		Delivery:   protocol.Delivery{Branch: "tidewaiter/bench", AuthorName: "a", AuthorEmail: "a@example.com", Subject: "Do it"},
	})
	return o
}

func (o *origin) time(what func()) time.Duration {
	began := time.Now()
	what()
	return time.Since(began)
}

// stock runs git as people do.
func (o *origin) stock(args ...string) {
	cmd := exec.CommandContext(o.t.Context(), "git", append([]string{"-c", "http.sslVerify=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		o.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// volumes of a pod that was never there before.
func (o *origin) volumes(dir string) watchdog.Options {
	p := watchdog.Paths{
		Trusted: filepath.Join(dir, "trusted"), Workspace: filepath.Join(dir, "workspace"), Home: filepath.Join(dir, "home"),
		Run: filepath.Join(dir, "run"), GitSecret: filepath.Join(dir, "secret"), Runner: filepath.Join(dir, "runner"),
		CA: o.intake.CAPath, Token: o.intake.TokenPath,
	}
	for _, path := range []string{p.Trusted, p.Workspace, p.Home, p.Run, p.GitSecret} {
		o.do(os.MkdirAll(path, 0o755))
	}
	for name, content := range map[string][]byte{
		p.Runner: []byte("#!/bin/sh\n"), filepath.Join(p.GitSecret, "username"): []byte("bench\n"),
		filepath.Join(p.GitSecret, "password"): []byte("bench\n"), filepath.Join(p.GitSecret, "ca.crt"): o.ca,
	} {
		o.do(os.WriteFile(name, content, 0o644))
	}
	return watchdog.Options{
		Namespace: "bench", Feature: "bench", Attempt: 1, Intake: o.intake.URL, IntakeName: fakeintake.ServerName, Paths: p,
		Now: time.Now, Log: slog.New(slog.DiscardHandler), MaxPacks: 50, PruneAbove: 1 << 30,
	}
}

// walk asks for the state of every file, on all processors.
func (o *origin) walk(root string) {
	list, err := os.ReadDir(root)
	o.do(err)
	tops, failed := make(chan string, len(list)), make(chan error, len(list))
	for _, top := range list {
		tops <- filepath.Join(root, top.Name())
	}
	close(tops)
	var walkers sync.WaitGroup
	for range runtime.NumCPU() {
		walkers.Go(func() {
			for top := range tops {
				failed <- filepath.WalkDir(top, func(_ string, e fs.DirEntry, err error) error {
					if err != nil {
						return err
					}
					_, err = e.Info()
					return err
				})
			}
		})
	}
	walkers.Wait()
	for range list {
		o.do(<-failed)
	}
}

// change writes ten files of a directory that was cloned or laid out.
func (o *origin) change(root string, run int) {
	for k := range 10 {
		path := filepath.Join(root, o.relative((k*(o.files/10)+run)%o.files))
		o.do(os.WriteFile(path, fmt.Appendf(nil, "changed %d\n", run), 0o644))
	}
}

// first is the time of a watchdog's first checkpoint, as the process that follows prepare takes it.
func (o *origin) first(p watchdog.Paths) time.Duration {
	repo, err := git.Open(o.t.Context(), filepath.Join(p.Trusted, "repo.git"), git.Options{})
	o.do(err)
	defer func() { _ = repo.Close() }()
	e, err := workspace.Open(o.t.Context(), workspace.Options{Root: p.Workspace, Repository: repo, Scratch: filepath.Join(p.Trusted, "scratch")})
	o.do(err)
	defer func() { _ = e.Close() }()
	var base objects.ID
	base, err = repo.Ref(o.t.Context(), protocol.RefBase)
	o.do(err)
	o.do(e.Reset(o.t.Context(), base, base))
	recalled, err := e.Recall(o.t.Context())
	o.do(err)
	o.do(e.Watch(o.t.Context()))
	var s workspace.Snapshot
	took := o.time(func() { s, err = e.Capture(o.t.Context(), workspace.Still{}) })
	o.do(err)
	if !recalled || !s.Settled || s.Dirty != 10 {
		o.t.Fatalf("recalled %v, settled %v (%s), %d files read, want 10", recalled, s.Settled, s.Reason, s.Dirty)
	}
	return took
}
