// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine is a watchdog without the rest of the world, for benchmarks: it follows a workspace, captures and checks it.
package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog"
	"github.com/tidewaiter/tidewaiter/internal/core/checks"
	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// Glance is the shortest time between two checks of a watchdog for changes.
const Glance = 100 * time.Millisecond

// Sight is the state that an engine process reports.
type Sight struct {
	// Changed paths since the last capture, Lost the times that changes could not be followed.
	Changed int
	Lost    int64
	// CPU that the process has used so far.
	CPU     time.Duration
	Settled bool
	Reason  string
}

// Main follows the workspace of a place, whose trusted repository has the base, and answers each line of in: "look", or "capture"
// first, or "judge" to check the capture. An answer is a Sight as JSON.
func Main(ctx context.Context, dir, base string, in io.Reader, out io.Writer) error {
	watchdog.LimitMemory()
	return serve(ctx, dir, base, in, out)
}

func serve(ctx context.Context, dir, base string, in io.Reader, out io.Writer) error {
	repo, err := git.Open(ctx, filepath.Join(dir, "repo.git"), git.Options{})
	if err != nil {
		return err
	}
	defer repo.Close()
	id, err := objects.ParseID(base)
	if err != nil {
		return err
	}
	e, err := Open(ctx, dir, repo, id)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Watch(ctx); err != nil {
		return err
	}
	if ok, why := e.Watching(); !ok {
		return fmt.Errorf("not watched: %s", why)
	}
	asked := make(chan string)
	go func() {
		defer close(asked)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			asked <- lines.Text()
		}
	}()
	var quiet <-chan time.Time
	for {
		wake := e.Wake()
		if quiet != nil {
			wake = nil
		}
		select {
		case <-wake:
			quiet = time.After(Glance)
			e.Changed()
		case <-quiet:
			quiet = nil
		case line, open := <-asked:
			if !open {
				return nil
			}
			if err := answer(ctx, repo, e, line, out); err != nil {
				return err
			}
		}
	}
}

func answer(ctx context.Context, repo *git.Repository, e *workspace.Engine, line string, out io.Writer) error {
	s := Sight{Changed: e.Changed()}
	if line != "look" {
		limits := policy.Merge(policy.Sources{}).Changes
		snapshot, err := e.Capture(ctx, workspace.Still{Limits: workspace.Limits{
			MaxFileSize: limits.MaxFileSize, MaxBytes: limits.MaxWorkspaceSize, MaxFiles: limits.MaxWorkspaceFiles,
		}})
		if err != nil {
			return err
		}
		s.Settled, s.Reason = snapshot.Settled, snapshot.Reason
		if line == "judge" {
			if err := judgeSnapshot(ctx, repo, e, snapshot); err != nil {
				return err
			}
		}
		e.Recorded() // as checkpoint.Service does when a checkpoint is done
		repo.Store().Recent().Clear()
		debug.FreeOSMemory() // as retain.Service.Tidy does
	}
	s.Lost = e.Lost()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	s.CPU = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return json.NewEncoder(out).Encode(s)
}

// Open an engine on a place, a directory with workspace, scratch and the trusted repository, from a base.
func Open(ctx context.Context, dir string, repo *git.Repository, base objects.ID) (*workspace.Engine, error) {
	e, err := workspace.Open(ctx, workspace.Options{
		Root: filepath.Join(dir, "workspace"), Repository: repo, Scratch: filepath.Join(dir, "scratch"),
	})
	if err != nil {
		return nil, err
	}
	return e, e.Reset(ctx, base, base)
}

// judgeSnapshot judges what was captured as a watchdog does.
func judgeSnapshot(ctx context.Context, repo *git.Repository, e *workspace.Engine, s workspace.Snapshot) error {
	base, now, err := e.Trees()
	if err != nil {
		return err
	}
	var failed error
	j, err := judge.Judge(ctx, judge.Input{
		Changes: s.Changes, Found: s.Found, Workspace: s.Workspace, Policy: policy.Merge(policy.Sources{}), Cache: &judge.Cache{},
		Names: Lookup(now), BaseNames: Lookup(base), Compile: checks.Compile,
		Contents: func(hexIDs []string, limit int64, visit func(int, []byte, bool)) {
			ids := make([]objects.ID, len(hexIDs))
			for i, hexID := range hexIDs {
				ids[i], _ = objects.ParseID(hexID)
			}
			failed = repo.Objects().ReadAll(ctx, ids, limit, func(i int, content []byte, err error) { visit(i, content, err == nil) })
		},
	})
	if err == nil && j.Verdict == "" {
		err = errors.New("there is no verdict")
	}
	return errors.Join(err, failed)
}

// Lookup reads the names in a tree for core/judge.
func Lookup(tree *objects.Tree) judge.Lookup {
	return func(dirs []string) map[string][]string {
		listed := make(map[string][]string, len(dirs))
		for _, dir := range dirs {
			at := tree
			if e := tree.Lookup(dir); dir != "" && e != nil {
				at = e.Tree
			} else if dir != "" {
				at = nil
			}
			listed[dir] = nil
			for i := 0; at != nil && i < len(at.Entries); i++ {
				listed[dir] = append(listed[dir], at.Entries[i].Name)
			}
		}
		return listed
	}
}
