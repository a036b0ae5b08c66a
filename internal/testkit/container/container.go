// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package container runs tests as PID 1 of a container made for them: a pid namespace of their own, with programs in it that
// misbehave as agents may. It needs root.
package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// insideEnv names the test that runs inside.
const insideEnv = "TIDEWAITER_TEST_INSIDE"

// limit ends a test that hangs, with everything that it has started. The longest takes more than five minutes on a machine that is busy with other tests.
const limit = 20 * time.Minute

// Run runs a test's body, or a benchmark's, as PID 1 of a new pid namespace with its own /proc. The body runs in another
// process: it shares nothing with the test's surroundings but the file system. TestMain has to call Main first.
func Run[T testing.TB](t T, body func(T)) {
	t.Helper()
	if os.Getenv(insideEnv) == t.Name() {
		if err := Enter(); err != nil {
			t.Fatal(err)
		}
		body(t)
		if !t.Failed() {
			t.Log(passed)
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := Command(ctx, t, arguments(t)...)
	cmd.Env = append(cmd.Env, insideEnv+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), passed) {
		t.Fatalf("inside the container: %v\n%s", err, out)
	}
	t.Log(strings.TrimSpace(string(out)))
}

// passed is printed inside at the end, so that a body that never ran is no success.
const passed = "body passed as PID 1"

func arguments(t testing.TB) []string {
	pattern := "^" + strings.Join(strings.Split(t.Name(), "/"), "$/^") + "$"
	if _, ok := t.(*testing.B); ok {
		return []string{"-test.run=^$", "-test.bench=" + pattern, "-test.benchtime=1x", "-test.v"}
	}
	return []string{"-test.run=" + pattern, "-test.v"}
}

// Enter makes this process the first of a container; start it with a command from Command.
func Enter() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("enter container: pid = %d, want 1", os.Getpid())
	}
	return errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
		unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC), // what the test's surroundings leaked
	)
}

// Command starts the test binary again in the namespaces of a new container. It has to call Enter.
func Command(ctx context.Context, t testing.TB, arguments ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, copyOfSelf(t), arguments...)
	cmd.Env = os.Environ()
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	cmd.WaitDelay = 10 * time.Second // a process that holds the output open
	return cmd
}

// User is the uid, and gid, that BecomeUser turns to.
const User = 1000

// BecomeUser gives up root, like the containers of an agent's pod. Earlier effects stay.
func BecomeUser() error {
	return errors.Join(unix.Setgroups(nil), unix.Setresgid(User, User, User), unix.Setresuid(User, User, User),
		unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)) // which the change of uid has cleared
}

// copyOfSelf puts the test binary where every uid can execute it.
func copyOfSelf(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "container-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "test")
	if err := errors.Join(os.Chmod(dir, 0o755), copyFile(path, os.Args[0])); err != nil {
		t.Fatal(err)
	}
	return path
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// TempDir is a directory that every uid may write, on memory.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "container-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// Its owner is who may have to remove it from a sticky directory.
	if err := errors.Join(os.Chmod(dir, 0o777), os.Chown(dir, User, User)); err != nil {
		t.Fatal(err)
	}
	return dir
}
