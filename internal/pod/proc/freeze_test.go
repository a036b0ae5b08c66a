// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
)

// longEnv asks for the long form of what `make test` does a little of: see `make test-long`.
const longEnv = "TIDEWAITER_LONG"

// most is how many times something is tried: some in `make test`, and many in `make test-long`.
func most(some, many int) int {
	if os.Getenv(longEnv) != "" {
		return many
	}
	return some
}

// leakWindow is how long counters are looked at after the answer; a process that had escaped would count several times, even in a crowd.
const leakWindow = 10 * time.Millisecond

func freezeWithin(t testing.TB, c *Container, timeout time.Duration) Frozen {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	frozen, err := c.Freeze(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return frozen
}

func mustFreeze(t testing.TB, c *Container) Frozen {
	t.Helper()
	frozen := freezeWithin(t, c, 2*time.Minute)
	if !frozen.Settled {
		t.Fatalf("freeze did not settle: %s", frozen.Reason)
	}
	return frozen
}

func mustThaw(t testing.TB, c *Container) int {
	t.Helper()
	disturbed, err := c.Thaw()
	if err != nil {
		t.Fatal(err)
	}
	return disturbed
}

// checkStill fails when a counter moves.
func checkStill(t testing.TB, counters container.Counters, what string) {
	t.Helper()
	before := counters.Now()
	time.Sleep(leakWindow)
	if after := counters.Now(); !slices.Equal(before, after) {
		t.Errorf("%s: something ran while frozen", what)
	}
}

func TestFreeze(t *testing.T) {
	for _, n := range []int{1, 10, 200} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			container.Run(t, func(t *testing.T) {
				c := newTestContainer(t)
				path := filepath.Join(container.TempDir(t), "counters")
				counters := container.NewCounters(t, path, n)
				start(t, c, container.Herd(path, n), os.Args[0])
				for trial := range most(5, 25) {
					counters.AwaitProgress(t)
					if frozen := mustFreeze(t, c); frozen.Processes != n+1 {
						t.Errorf("processes = %d, want %d", frozen.Processes, n+1)
					}
					checkStill(t, counters, fmt.Sprintf("trial %d", trial))
					if disturbed := mustThaw(t, c); disturbed != 0 {
						t.Errorf("disturbed = %d, want 0", disturbed)
					}
				}
				counters.AwaitProgress(t)
			})
		})
	}
}

func TestFreezeThreads(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		path := filepath.Join(container.TempDir(t), "counters")
		counters := container.NewCounters(t, path, 2)
		start(t, c, container.Threads(path, 2), os.Args[0])
		for trial := range most(15, 50) {
			counters.AwaitProgress(t)
			mustFreeze(t, c)
			checkStill(t, counters, fmt.Sprintf("trial %d", trial))
			mustThaw(t, c)
		}
	})
}

func TestFreezeForkStorm(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		chains := most(20, 50)
		c := newTestContainer(t)
		path := filepath.Join(container.TempDir(t), "counters")
		counters := container.NewCounters(t, path, chains)
		start(t, c, container.Storm(path, chains), os.Args[0])
		for trial := range most(10, 100) {
			counters.AwaitProgress(t)
			mustFreeze(t, c)
			checkStill(t, counters, fmt.Sprintf("trial %d", trial))
			mustThaw(t, c)
		}
	})
}

func TestFreezeVfork(t *testing.T) {
	for name, hidden := range map[string]bool{"the kernel tells": false, "not dumpable": true} {
		t.Run(name, func(t *testing.T) {
			container.Run(t, func(t *testing.T) {
				if err := container.BecomeUser(); err != nil {
					t.Fatal(err)
				}
				c := newTestContainer(t)
				path := filepath.Join(container.TempDir(t), "counters")
				counters := container.NewCounters(t, path, 1)
				p := start(t, c, container.Vfork(path, hidden), os.Args[0])
				counters.AwaitProgress(t)
				frozen := freezeWithin(t, c, 5*time.Second)
				if !frozen.Settled {
					t.Fatalf("a parent that waits for its vfork child counts as moving: %s", frozen.Reason)
				}
				checkStill(t, counters, "vfork")
				all, err := newScanner().scan()
				if err != nil {
					t.Fatal(err)
				}
				// Else this test would show nothing.
				if parent, _ := all.find(p.PID); parent.count(task.uninterruptible) != 1 {
					t.Errorf("threads that wait for the child = %d, want 1", parent.count(task.uninterruptible))
				}
				mustThaw(t, c)
				counters.AwaitProgress(t)
			})
		})
	}
}

// enterContainer starts a process as kubectl exec would, past Start.
func enterContainer(t *testing.T, env []string, argv ...string) int {
	t.Helper()
	all, err := MergeEnv(os.Environ(), env)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		pid int
		err error
	}
	entered := make(chan result, 1)
	go func() {
		pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Dir: "/", Env: all, Files: []uintptr{0, 1, 2}})
		entered <- result{pid, err}
	}()
	for {
		select {
		case r := <-entered:
			if r.err != nil {
				t.Fatal(r.err)
			}
			return r.pid
		case <-time.After(50 * time.Millisecond):
			wakeUnborn(t)
		}
	}
}

// wakeUnborn resumes children of this process that were stopped before they became another program: this process waits for
// them, and would do so for ever. What enters a real container is made by nobody in it.
func wakeUnborn(t *testing.T) {
	t.Helper()
	const forkNoExec = 0x40 // PF_FORKNOEXEC of linux/sched.h
	for _, pid := range pids(t) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // proc_pid_stat(5), from state on
		if flags, err := strconv.ParseUint(fields[6], 10, 64); err != nil || flags&forkNoExec == 0 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGCONT) // one that has ended needs none
	}
}

func TestFreezeStopsNewcomers(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		shell(t, c, "while :; do :; done")
		path := filepath.Join(container.TempDir(t), "counters")
		counters := container.NewCounters(t, path, 3)
		mustFreeze(t, c)
		enterContainer(t, container.Herd(path, 3), os.Args[0])
		eventually(t, "the newcomers are stopped", func() bool {
			all, err := newScanner().scan()
			return err == nil && all.alive() > 1 && all.worst() == still
		})
		checkStill(t, counters, "newcomers")
		if disturbed := mustThaw(t, c); disturbed == 0 {
			t.Error("disturbed = 0, want the newcomers to be told")
		}
		counters.AwaitProgress(t)
	})
}

func TestFreezeStopsWhatANewcomerWakes(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		path := filepath.Join(container.TempDir(t), "counters")
		counters := container.NewCounters(t, path, 3)
		start(t, c, container.Herd(path, 3), os.Args[0])
		counters.AwaitProgress(t)
		mustFreeze(t, c)
		before := counters.Now()
		// A newcomer may be stopped before it wakes anybody, and the wakened before they run: then another one tries.
		const every = 100 // looks, a millisecond apart at least
		looks := 0
		eventually(t, "the wakened ran", func() bool {
			if looks%every == 0 {
				enterContainer(t, nil, "/bin/sh", "-c", "kill -CONT -1")
			}
			looks++
			return !slices.Equal(before, counters.Now())
		})
		eventually(t, "all is still again", func() bool {
			all, err := newScanner().scan()
			return err == nil && all.worst() == still
		})
		checkStill(t, counters, "wakened")
		if disturbed := mustThaw(t, c); disturbed == 0 {
			t.Error("disturbed = 0, want the wakened to be told")
		}
		counters.AwaitProgress(t)
	})
}

func TestThawLeavesWhatTheAgentHadStopped(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		dir := container.TempDir(t)
		shell(t, c, fmt.Sprintf("sh -c 'kill -STOP $$; touch %s/woken; sleep 60' & echo $! >%s/pid; while :; do echo >>%s/turns; sleep 0.001; done", dir, dir, dir))
		state := func() byte {
			text, _ := os.ReadFile(dir + "/pid")
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				return 0
			}
			p, err := newScanner().process(pid)
			if err != nil {
				return 0
			}
			return p.tasks[0].state
		}
		eventually(t, "the job is stopped by itself", func() bool { return state() == 'T' })
		size := func() int64 {
			info, err := os.Stat(dir + "/turns")
			if err != nil {
				return 0
			}
			return info.Size()
		}
		for range 5 {
			mustFreeze(t, c)
			mustFreeze(t, c) // to look again changes nothing about it
			mustThaw(t, c)
			at := size()
			eventually(t, "the others go on", func() bool { return size() > at })
			if got := state(); got != 'T' {
				t.Fatalf("state of what the agent had stopped = %c, want T", got)
			}
		}
		if _, err := os.Stat(dir + "/woken"); !os.IsNotExist(err) {
			t.Errorf("the stopped job went on: %v", err)
		}
	})
}

func TestFreezeOfNothing(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		if got, want := mustFreeze(t, c), (Frozen{Settled: true}); got != want {
			t.Errorf("frozen = %+v, want %+v", got, want)
		}
		if _, err := c.Start(Command{Argv: []string{"/bin/true"}, Dir: "/"}); !errors.Is(err, ErrFrozen) {
			t.Errorf("start while frozen: %v, want %v", err, ErrFrozen)
		}
		mustThaw(t, c)
		mustThaw(t, c)
		if got := await(t, shell(t, c, "exit 4")); got.Code != 4 {
			t.Errorf("code after thaw = %d, want 4", got.Code)
		}
	})
}

func TestFreezeTellsWhatDoesNotSettle(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		path := filepath.Join(container.TempDir(t), "counters")
		counters := container.NewCounters(t, path, 1)
		start(t, c, container.Herd(path, 1), os.Args[0])
		counters.AwaitProgress(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // no time at all: the answer comes before the proof
		frozen, err := c.Freeze(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if frozen.Settled || frozen.Reason == "" {
			t.Errorf("frozen = %+v, want it unsettled with a reason", frozen)
		}
		eventually(t, "it is stopped all the same", func() bool {
			all, err := newScanner().scan()
			return err == nil && all.worst() == still
		})
		checkStill(t, counters, "unsettled")
		mustThaw(t, c)
		counters.AwaitProgress(t)
	})
}

// BenchmarkFreeze measures 40 freezes by itself, once for each number of processes: run it with -benchtime=1x.
func BenchmarkFreeze(b *testing.B) {
	for _, n := range []int{1, 10, 200} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			container.Run(b, func(b *testing.B) {
				c := newTestContainer(b)
				path := filepath.Join(container.TempDir(b), "counters")
				counters := container.NewCounters(b, path, n)
				start(b, c, container.Herd(path, n), os.Args[0])
				var freezes, thaws []time.Duration
				for range 40 {
					counters.AwaitProgress(b)
					before := time.Now()
					mustFreeze(b, c)
					frozen := time.Now()
					mustThaw(b, c)
					freezes = append(freezes, frozen.Sub(before))
					thaws = append(thaws, time.Since(frozen))
				}
				slices.Sort(freezes)
				slices.Sort(thaws)
				b.Logf("%d processes: freeze p50 %v p99 %v max %v; thaw p50 %v p99 %v", n,
					freezes[len(freezes)/2], freezes[len(freezes)*99/100], freezes[len(freezes)-1],
					thaws[len(thaws)/2], thaws[len(thaws)*99/100])
			})
		})
	}
}
