// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
)

func TestMain(m *testing.M) {
	Launch()
	container.Main()
	for env, program := range map[string]func(string) error{probeEnv: probe, attackEnv: sendSignals, callsEnv: makeCalls, reachEnv: reach} {
		if argument := os.Getenv(env); argument != "" {
			if err := program(argument); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

func newTestContainer(t testing.TB) *Container {
	t.Helper()
	c, err := NewContainer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Kill(context.Background(), 0); err != nil {
			t.Error(err)
		}
		c.Close()
	})
	return c
}

func start(t testing.TB, c *Container, env []string, argv ...string) *Process {
	t.Helper()
	all, err := MergeEnv(os.Environ(), env)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Start(Command{Argv: argv, Env: all, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func shell(t testing.TB, c *Container, script string) *Process {
	t.Helper()
	return start(t, c, nil, "/bin/sh", "-c", script)
}

func await(t testing.TB, p *Process) Exit {
	t.Helper()
	select {
	case <-p.Done():
		return p.Exit()
	case <-time.After(time.Minute):
		t.Fatalf("process %d does not end", p.PID)
		return Exit{}
	}
}

// eventually waits for something that no channel tells.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func pids(t testing.TB) []int {
	t.Helper()
	all, err := newScanner().scan()
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, p := range all {
		found = append(found, p.pid)
	}
	return found
}

// TestInputThatEnds: a command that says what all of its input is gets that, of any length, and its end; nothing is taken after.
func TestInputThatEnds(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		dir := t.TempDir()
		for name, text := range map[string]string{"nothing": "", "a prompt": "Add a page.\nNo newline at the end", "more than a pipe holds": strings.Repeat("0123456789", 100_000)} {
			out := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			p, err := c.Start(Command{Argv: []string{"/bin/sh", "-c", "cat > " + out}, Env: os.Environ(), Dir: "/", Input: &text})
			if err != nil {
				t.Fatal(err)
			}
			if p.Input.Write("more") {
				t.Errorf("%s: a line was taken after the end", name)
			}
			if exit := await(t, p); exit.Code != 0 {
				t.Errorf("%s: exit %+v", name, exit)
			}
			if got, err := os.ReadFile(out); err != nil || string(got) != text {
				t.Errorf("%s: read %d bytes of %d: %v", name, len(got), len(text), err)
			}
		}
	})
}

func TestRefusesOutsidePID1(t *testing.T) {
	if _, err := NewContainer(); !errors.Is(err, ErrNotInit) {
		t.Errorf("NewContainer() = %v, want %v", err, ErrNotInit)
	}
	if err := Harden(); !errors.Is(err, ErrNotInit) {
		t.Errorf("Harden() = %v, want %v", err, ErrNotInit)
	}
	// Signal 0 reaches nobody, should the check be gone.
	if err := signalAll(0); !errors.Is(err, ErrNotInit) {
		t.Errorf("signalAll(0) = %v, want %v", err, ErrNotInit)
	}
}

func TestExitCodes(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		for code := 0; code < 256; code += 255 / most(17, 255) {
			if got, want := await(t, shell(t, c, fmt.Sprintf("exit %d", code))), (Exit{Code: code}); got != want {
				t.Errorf("exit %d = %+v, want %+v", code, got, want)
			}
		}
	})
}

func TestExitSignals(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		// A test that was started in the background, or by nohup, ignores these two, and so would what it starts. The runner
		// catches them: what it starts does not.
		signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT)
		c := newTestContainer(t)
		for number, name := range map[unix.Signal]string{
			unix.SIGHUP: "SIGHUP", unix.SIGINT: "SIGINT", unix.SIGQUIT: "SIGQUIT", unix.SIGABRT: "SIGABRT", unix.SIGKILL: "SIGKILL",
			unix.SIGSEGV: "SIGSEGV", unix.SIGTERM: "SIGTERM", 40: "signal 40",
		} {
			got := await(t, shell(t, c, fmt.Sprintf("ulimit -c 0; kill -%d $$; sleep 60", int(number))))
			if want := (Exit{Code: 128 + int(number), Signal: name}); got != want {
				t.Errorf("signal %d = %+v, want %+v", int(number), got, want)
			}
		}
	})
}

func TestReapsOrphans(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		p := shell(t, c, `i=0; while [ $i -lt 50 ]; do (sleep 0.0$((i % 5)) & ) ; i=$((i+1)); done; exit 3`)
		if got := await(t, p); got.Code != 3 {
			t.Errorf("code = %d, want 3", got.Code)
		}
		eventually(t, "all orphans are gone", func() bool { return len(pids(t)) == 0 })
	})
}

func TestStartIsolatesTheProcess(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		out := filepath.Join(container.TempDir(t), "out")
		// A signal to "my process group" must not mean the runner's: kill 0 ends the shell and not this test.
		p := shell(t, c, fmt.Sprintf("exec >%s; cat /proc/self/stat | cut -d' ' -f5,6; ls -l /proc/self/fd; kill -TERM 0; sleep 60", out))
		if got := await(t, p); got.Signal != "SIGTERM" {
			t.Errorf("exit = %+v, want SIGTERM", got)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if want := fmt.Sprintf("%d %d", p.PID, p.PID); lines[0] != want {
			t.Errorf("process group and session = %q, want %q", lines[0], want)
		}
		var descriptors []string
		for _, line := range lines[2:] {
			if !strings.Contains(line, "/proc/") { // ls itself reads the directory
				descriptors = append(descriptors, strings.Fields(line)[8])
			}
		}
		if want := []string{"0", "1", "2", strconv.Itoa(RepliesFD)}; !slices.Equal(descriptors, want) {
			t.Errorf("open descriptors = %v, want %v", descriptors, want)
		}
	})
}

func TestStartRefuses(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		c := newTestContainer(t)
		dir := container.TempDir(t)
		files := map[string]struct {
			text string
			mode os.FileMode
		}{
			"plain":       {"#!/bin/sh\n", 0o644},
			"nointerp":    {"#!/no/such/shell\n", 0o755},
			"garbage":     {"\x00\x01\x02\x03", 0o755},
			"noshebang":   {"exit 0\n", 0o755},
			"there/later": {"#!/bin/sh\nexit 7\n", 0o755},
			"here/later":  {"", 0o644},
		}
		for name, file := range files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(file.text), file.mode)); err != nil {
				t.Fatal(err)
			}
		}
		path := "PATH=" + dir + "/here:" + dir + "/there"
		for name, test := range map[string]struct {
			command Command
			want    string // part of the error
		}{
			"no command":            {Command{Dir: "/"}, "the command is empty"},
			"empty name":            {Command{Argv: []string{""}, Dir: "/"}, "the command is empty"},
			"zero byte":             {Command{Argv: []string{"sh", "a\x00b"}, Dir: "/"}, "argument 1 of the command holds a zero byte"},
			"no such command":       {Command{Argv: []string{"nope"}, Env: []string{path}, Dir: "/"}, `command "nope": not found in PATH (` + dir},
			"no PATH":               {Command{Argv: []string{"nope"}, Dir: "/"}, defaultPath},
			"no such file":          {Command{Argv: []string{"/nope/sh"}, Dir: "/"}, `command "/nope/sh": file does not exist`},
			"not executable":        {Command{Argv: []string{dir + "/plain"}, Dir: "/"}, "it is not executable for uid 0"},
			"not executable, PATH":  {Command{Argv: []string{"later"}, Env: []string{"PATH=" + dir + "/here"}, Dir: "/"}, "it is not executable"},
			"a directory":           {Command{Argv: []string{dir}, Dir: "/"}, "is a directory"},
			"a device":              {Command{Argv: []string{"/dev/null"}, Dir: "/"}, "is not a regular file"},
			"no interpreter":        {Command{Argv: []string{dir + "/nointerp"}, Dir: "/"}, "its interpreter (the #! line"},
			"no binary":             {Command{Argv: []string{dir + "/garbage"}, Dir: "/"}, "neither a binary for linux/"},
			"script without a line": {Command{Argv: []string{dir + "/noshebang"}, Dir: "/"}, "nor a script with a #! line"},
			"no such directory":     {Command{Argv: []string{"/bin/sh"}, Dir: dir + "/nope"}, `nope" does not exist`},
			"directory is a file":   {Command{Argv: []string{"/bin/sh"}, Dir: dir + "/plain"}, "is not a directory"},
			"relative directory":    {Command{Argv: []string{"/bin/sh"}, Dir: "tmp"}, `working directory "tmp" is not an absolute path`},
			"huge argument":         {Command{Argv: []string{"/bin/sh", strings.Repeat("x", 200<<10)}, Dir: "/"}, "are too large (128 KiB each"},
		} {
			if _, err := c.Start(test.command); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: error = %v, want %q in it", name, err, test.want)
			}
		}
		p, err := c.Start(Command{Argv: []string{"later"}, Env: []string{path}, Dir: "/"})
		if err != nil {
			t.Fatalf("a file of PATH that is not executable hides one that is: %v", err)
		}
		if got := await(t, p); got.Code != 7 {
			t.Errorf("code = %d, want 7", got.Code)
		}
		p, err = c.Start(Command{Argv: []string{"./later"}, Dir: dir + "/there"})
		if err != nil {
			t.Fatalf("a path relative to the directory: %v", err)
		}
		if got := await(t, p); got.Code != 7 {
			t.Errorf("code = %d, want 7", got.Code)
		}
	})
}

func TestMergeEnv(t *testing.T) {
	for name, test := range map[string]struct {
		base, over, want []string
		wantErr          string
	}{
		"adds":             {base: []string{"A=1"}, over: []string{"B=2"}, want: []string{"A=1", "B=2"}},
		"replaces":         {base: []string{"A=1", "B=1"}, over: []string{"A=2"}, want: []string{"B=1", "A=2"}},
		"once":             {base: []string{"A=1", "A=2"}, over: []string{"B=1", "B=2"}, want: []string{"A=2", "B=2"}},
		"empty value":      {over: []string{"A="}, want: []string{"A="}},
		"odd base is kept": {base: []string{"odd"}, want: []string{"odd"}},
		"no name":          {over: []string{"=1"}, wantErr: "is not NAME=value"},
		"no value":         {over: []string{"A"}, wantErr: `"A" is not NAME=value`},
		"zero byte":        {over: []string{"A=\x00"}, wantErr: "is not NAME=value"},
	} {
		got, err := MergeEnv(test.base, test.over)
		if (err != nil) != (test.wantErr != "") || (err != nil && !strings.Contains(err.Error(), test.wantErr)) {
			t.Errorf("%s: error = %v, want %q", name, err, test.wantErr)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: MergeEnv = %q, want %q", name, got, test.want)
		}
	}
}
