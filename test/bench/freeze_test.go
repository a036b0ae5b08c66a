// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/proc"
	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
	"github.com/tidewaiter/tidewaiter/test/bench/board"
)

const (
	// resultsEnv names the file that a measurement inside a container leaves its results in.
	resultsEnv = "TIDEWAITER_BENCH_RESULTS"
	// chains of processes that fork without end.
	chains = 50
	// leakWindow is how long counters are looked at after the answer; a process that had escaped would count millions.
	leakWindow = 3 * time.Millisecond
)

// inside is true in the process that runs as PID 1 of a container.
func inside() bool { return os.Getpid() == 1 }

// freezes is what came of many freezes.
type freezes struct {
	Acks, Thaws []time.Duration
	// Turns are what the machine took, at the time of each answer, to give as much CPU to a process that does nothing but
	// compute, while the frozen ones wanted none: no answer comes sooner on a machine that is as busy.
	Turns []time.Duration
	// Held counts the trials in which nothing ran after the answer.
	Held int
}

// freezing measures the answer of a freeze among processes that all count as fast as they can, and sees that none runs after
// it, also while processes fork without end.
func freezing(t *testing.T, s scale, b *board.Board) {
	for _, n := range s.herds {
		r, ok := frozen(t, strconv.Itoa(n), func(path string) []string { return container.Herd(path, n) }, n, s.trials)
		if !ok {
			continue
		}
		name := fmt.Sprintf("processes=%d", n)
		limit := board.Bound{}
		if n == 200 || !s.full {
			limit = board.AtMost(50)
		}
		b.Beside("freeze-ack-p50/"+name, board.Median(r.Acks), board.Median(r.Turns), board.Bound{})
		b.Beside("freeze-ack-p99/"+name, board.Quantile(r.Acks, 0.99), board.Quantile(r.Turns, 0.99), limit)
		b.Figure("freeze-thaw-p99/"+name, milliseconds(board.Quantile(r.Thaws, 0.99)), "ms", board.Bound{})
		b.Figure("freeze-held-of-"+short(s.trials)+"/"+name, float64(r.Held), "", board.AtLeast(float64(s.trials)))
	}
	r, ok := frozen(t, "storm", func(path string) []string { return container.Storm(path, chains) }, chains, s.storms)
	if ok {
		b.Beside("freeze-ack-p99/fork-storm", board.Quantile(r.Acks, 0.99), board.Quantile(r.Turns, 0.99), board.Bound{})
		b.Figure("freeze-held-of-"+short(s.storms)+"/fork-storm", float64(r.Held), "", board.AtLeast(float64(s.storms)))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// frozen freezes a program trial by trial inside a container. It is false inside, where there is nothing to report.
func frozen(t *testing.T, name string, program func(path string) []string, counters, trials int) (freezes, bool) {
	var r freezes
	path := filepath.Join(container.TempDir(t), "results")
	if os.Getenv(resultsEnv) == "" {
		t.Setenv(resultsEnv, path)
	}
	t.Run(name, func(t *testing.T) {
		container.Run(t, func(t *testing.T) {
			r := try(t, program, counters, trials)
			text, err := json.Marshal(r)
			if err == nil {
				err = os.WriteFile(os.Getenv(resultsEnv), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		if inside() {
			return
		}
		text, err := os.ReadFile(os.Getenv(resultsEnv))
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return r, len(r.Acks) > 0
}

func try(t *testing.T, program func(path string) []string, counters, trials int) freezes {
	c, err := proc.NewContainer()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer func() { _ = c.Kill(context.Background(), 0) }()
	path := filepath.Join(container.TempDir(t), "counters")
	counted := container.NewCounters(t, path, counters)
	env, err := proc.MergeEnv(os.Environ(), program(path))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Start(proc.Command{Argv: []string{os.Args[0]}, Env: env, Dir: "/"}); err != nil {
		t.Fatal(err)
	}
	var r freezes
	for range trials {
		counted.AwaitProgress(t)
		used := cpu(t)
		began := time.Now()
		f, err := c.Freeze(t.Context())
		answered := time.Now()
		used = cpu(t) - used
		before := counted.Now()
		time.Sleep(leakWindow)
		if err == nil && f.Settled && slices.Equal(before, counted.Now()) {
			r.Held++
		}
		r.Turns = append(r.Turns, compute(t, used))
		thawing := time.Now()
		if _, err := c.Thaw(); err != nil {
			t.Fatal(err)
		}
		r.Acks, r.Thaws = append(r.Acks, answered.Sub(began)), append(r.Thaws, time.Since(thawing))
	}
	return r
}

// cpu is what this process has used so far.
func cpu(t *testing.T) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// compute uses so much CPU and tells how long that took.
func compute(t *testing.T, amount time.Duration) time.Duration {
	began, start := time.Now(), cpu(t)
	for cpu(t)-start < amount {
	}
	return time.Since(began)
}
