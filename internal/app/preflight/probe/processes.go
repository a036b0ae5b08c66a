// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
	"github.com/tidewaiter/tidewaiter/internal/pod/proc"
	"github.com/tidewaiter/tidewaiter/internal/pod/workspace"
)

// Launch has to be the first thing that a program does that runs probes: it starts processes as the runner does.
func Launch() { proc.Launch() }

// freezeTime bounds the stop of one process that sleeps.
const freezeTime = 5 * time.Second

// processes does what runner and watchdog do at their start, up to the first step that fails.
func processes(ctx context.Context, dir string) (done []preflight.Step) {
	var container *proc.Container
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"a process namespace of its own with /proc", ownNamespace},
		{"the runtime's seccomp profile", func() error { return status("Seccomp:", "2") }},
		{"no new privileges", func() error { return status("NoNewPrivs:", "1") }},
		{"openat2", func() error {
			_, err := workspace.Probe(ctx, dir)
			return err
		}},
		{"a PID 1 that is closed to others", proc.Harden},
		{"Tidewaiter's filter of system calls", func() (err error) {
			if container, err = proc.NewContainer(); err != nil {
				return err
			}
			return start(container)
		}},
		{"stop and continue processes", func() error { return freeze(ctx, container) }},
		{"end processes", func() error { return container.Kill(ctx, 0) }},
	} {
		err := step.do()
		s := preflight.Step{Name: step.name}
		if err != nil {
			s.Error = brief(err)
		}
		if done = append(done, s); err != nil {
			break
		}
	}
	if container != nil {
		container.Close()
	}
	return done
}

func ownNamespace() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("this is process %d and not 1", os.Getpid())
	}
	if _, err := os.ReadDir("/proc/1/task"); err != nil {
		return err
	}
	return nil
}

// status wants a value of this process's /proc/self/status.
func status(name, want string) error {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, name); is {
			if value = strings.TrimSpace(value); value != want {
				return fmt.Errorf("/proc/self/status has %s %s and not %s", name, value, want)
			}
			return nil
		}
	}
	return fmt.Errorf("/proc/self/status has no line %s", name)
}

// start runs a process under the filter, as the runner starts an agent.
func start(container *proc.Container) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = container.Start(proc.Command{Argv: []string{self, "probe", sleep}, Env: os.Environ(), Dir: "/"})
	return err
}

func freeze(ctx context.Context, container *proc.Container) error {
	ctx, cancel := context.WithTimeout(ctx, freezeTime)
	defer cancel()
	frozen, err := container.Freeze(ctx)
	switch {
	case err != nil:
		return err
	case !frozen.Settled:
		return errors.New("a process does not stop: " + frozen.Reason)
	case frozen.Processes != 1:
		return fmt.Errorf("there are %d processes, and one was started", frozen.Processes)
	}
	_, err = container.Thaw()
	return err
}
