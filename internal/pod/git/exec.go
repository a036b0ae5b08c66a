// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

const (
	// maxOutput bounds what a command may print, in bytes; longer output is an error, never cut off silently.
	maxOutput = 16 << 20
	// maxMessage bounds what is kept of a command's complaints, in bytes; the end says most.
	maxMessage = 8 << 10
	// killDelay is how long a killed command's pipes may stay open.
	killDelay = 2 * time.Second
)

// setting is one line of git's configuration. All of it travels in the environment: settings hold secrets, and the
// environment of our own process group is not readable from the agent's container.
type setting struct{ key, value string }

// closed is the configuration that every command runs with, beside nothing else.
func closed() []setting {
	return []setting{
		{"core.hooksPath", "/dev/null"},
		{"core.fsmonitor", "false"},
		{"core.attributesFile", "/dev/null"},
		{"core.excludesFile", "/dev/null"},
		{"core.askPass", ""},
		{"credential.helper", ""},
		{"protocol.allow", "never"},
		{"protocol.https.allow", "always"},
		{"safe.bareRepository", "explicit"},
		{"submodule.recurse", "false"},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		// Nothing here writes such files, and none is to be believed that is there all the same. A check of the repository would start a process for each.
		{"core.commitGraph", "false"},
		{"core.multiPackIndex", "false"},
		// What git reports as written must survive a loss of power, refs included.
		{"core.fsync", "all"},
		{"core.fsyncMethod", "fsync"},
		// Always keep what was fetched as one pack: a file for each object is slower to write, sync and read.
		{"transfer.unpackLimit", "1"},
	}
}

// environment is complete: nothing of the watchdog's own environment reaches git.
func environment(dir string) []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"HOME=/nonexistent",
		"XDG_CONFIG_HOME=/nonexistent",
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_DIR=" + dir,
	}
}

// runner starts git for one repository.
type runner struct {
	git string
	dir string
}

func newRunner(git, dir string) (runner, error) {
	if git == "" {
		git = "git"
	}
	path, err := exec.LookPath(git)
	if err != nil {
		return runner{}, fmt.Errorf("git program: %w", err)
	}
	return runner{git: path, dir: dir}, nil
}

// call is one run of git.
type call struct {
	args     []string
	settings []setting
	// extra environment.
	env   []string
	stdin io.Reader
	// stdout receives the output as it comes; nil collects it.
	stdout io.Writer
	// dir to run in; default: the machine's root, so that git finds no repository by itself.
	dir string
	// idle work gives way to everything else on the machine.
	idle bool
	// silence of a server that ends the call; 0 for one that asks no server.
	silence time.Duration
}

// niceness of idle work: the lowest priority that there is.
const niceness = 19

// run runs git to its end and gives what it printed. A failure is a *commandError.
func (r runner) run(ctx context.Context, c call) ([]byte, error) {
	ctx, silent := context.WithCancelCause(ctx)
	defer silent(nil)
	cmd := r.command(ctx, c)
	watched, err := watch(cmd, c.silence)
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", c.args[0], err)
	}
	var collected limited
	collected.limit = maxOutput
	cmd.Stdout = &collected
	if c.stdout != nil {
		cmd.Stdout = c.stdout
	}
	var complaints tail
	cmd.Stderr = io.MultiWriter(&complaints, watched)
	err = cmd.Start()
	watched.begin(ctx, cmd, silent)
	if err == nil {
		if c.idle {
			// Work that is not put back competes with the agent, and is done sooner.
			_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, niceness)
		}
		err = cmd.Wait()
	}
	watched.end()
	if silent, ok := errors.AsType[*silentError](context.Cause(ctx)); ok {
		return nil, silent
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("git %s: %w", c.args[0], context.Cause(ctx))
	}
	if err != nil {
		return collected.Bytes(), &commandError{name: c.args[0], stderr: complaints.String(), err: err}
	}
	return collected.Bytes(), nil
}

// command prepares git as the leader of a process group of its own, which dies as a whole when ctx ends.
func (r runner) command(ctx context.Context, c call) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.git, c.args...)
	cmd.Dir = "/"
	if c.dir != "" {
		cmd.Dir = c.dir
	}
	cmd.Env = append(append(environment(r.dir), settingsEnv(append(closed(), c.settings...))...), c.env...)
	cmd.Stdin = c.stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	return cmd
}

// settingsEnv puts configuration into the environment.
func settingsEnv(settings []setting) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for i, s := range settings {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.key, "GIT_CONFIG_VALUE_"+n+"="+s.value)
	}
	return env
}

// commandError is a git command that failed.
type commandError struct {
	name   string
	stderr string
	err    error
}

// Error gives git's own words.
func (e *commandError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("git %s: %v", e.name, e.err)
	}
	return fmt.Sprintf("git %s: %s", e.name, e.stderr)
}

// Unwrap gives ErrFull where the volume is full, ErrCorrupt where an object of the repository is missing or damaged, and
// why the command could not be run.
func (e *commandError) Unwrap() []error {
	switch {
	case mentions(e.stderr, "No space left on device", "Disk quota exceeded"):
		return []error{ErrFull, e.err}
	case mentions(e.stderr, "bad object ", "bad tree object", "unable to read ", "Could not read ", "not a tree object", "Failed to traverse",
		"corrupt", "nonexistent object", "does not match index", "inflate: data stream error"):
		return []error{ErrCorrupt, e.err}
	}
	return []error{e.err}
}

// exitCode of a git command; false when it did not run to its end.
func exitCode(err error) (int, bool) {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), true
	}
	return 0, false
}

// limited collects output up to a limit and then refuses more.
type limited struct {
	bytes.Buffer
	limit int
}

// Write fails beyond the limit, which ends the command by a broken pipe.
func (l *limited) Write(b []byte) (int, error) {
	if l.Len()+len(b) > l.limit {
		return 0, fmt.Errorf("git printed more than %d bytes", l.limit)
	}
	return l.Buffer.Write(b)
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

// Write never fails: complaints must not stop a command.
func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if len(t.kept) > 2*maxMessage {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-maxMessage:]...)
	}
	return len(b), nil
}

// String gives the last maxMessage bytes.
func (t *tail) String() string {
	kept := bytes.TrimSpace(t.kept)
	if len(kept) > maxMessage {
		kept = kept[len(kept)-maxMessage:]
	}
	return string(kept)
}
