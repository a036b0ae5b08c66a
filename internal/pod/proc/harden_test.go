// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
)

// probeEnv makes the test binary a program that attacks PID 1 and writes what came of it to the file that it names.
const probeEnv = "TIDEWAITER_TEST_PROBE"

func probe(path string) error {
	var report strings.Builder
	for _, attack := range attacks() {
		result := "succeeds"
		if err := attack.try(); errors.Is(err, os.ErrPermission) {
			result = "denied"
		} else if err != nil {
			result = err.Error()
		}
		fmt.Fprintf(&report, "%s: %s\n", attack.name, result)
	}
	return os.WriteFile(path, []byte(report.String()), 0o644)
}

type attack struct {
	name string
	try  func() error
}

func attacks() []attack {
	open := func(path string) func() error {
		return func() error {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			return f.Close()
		}
	}
	return []attack{
		{"ptrace", func() error {
			_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1, 0, 0, 0, 0)
			return errnoOrNil(errno)
		}},
		{"memory file", open("/proc/1/mem")},
		{"environment", func() error { _, err := os.ReadFile("/proc/1/environ"); return err }},
		{"descriptors", func() error { _, err := os.ReadDir("/proc/1/fd"); return err }},
		{"a descriptor", open("/proc/1/fd/0")},
		{"root directory", open("/proc/1/root/etc")},
		{"working directory", open("/proc/1/cwd/.")},
		{"memory map", func() error { _, err := os.ReadFile("/proc/1/maps"); return err }},
		{"process_vm_readv", readMemory},
		{"pidfd_getfd", func() error {
			pidfd, err := unix.PidfdOpen(1, 0)
			if err != nil {
				return err
			}
			_, err = unix.PidfdGetfd(pidfd, 1, 0)
			return err
		}},
	}
}

// unconfined runs the test binary without the filter of system calls, before anything reaps its children for it.
func unconfined(t *testing.T, env string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true} // as what is started
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", env, err, out)
	}
}

// readMemory reads this program's own address from PID 1, which is the same binary.
func readMemory() error {
	var buf [8]byte
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	_, err := unix.ProcessVMReadv(1, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&programName)), Len: len(buf)}}, 0)
	return err
}

// programName is any variable at a fixed address.
var programName = "probe"

func errnoOrNil(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func TestHardenClosesThisProcess(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		dir := container.TempDir(t)
		if err := container.BecomeUser(); err != nil {
			t.Fatal(err)
		}
		probeWant := func(name, want string) {
			t.Helper()
			text, err := os.ReadFile(dir + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			var expected strings.Builder
			for _, attack := range attacks() {
				fmt.Fprintf(&expected, "%s: %s\n", attack.name, want)
			}
			if diff := cmp.Diff(expected.String(), string(text)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", name, diff)
			}
		}
		unconfined(t, probeEnv+"="+dir+"/control")
		probeWant("control", "succeeds") // or the attacks would prove nothing
		c := newTestContainer(t)
		if err := Harden(); err != nil {
			t.Fatal(err)
		}
		if got := await(t, start(t, c, []string{probeEnv + "=" + dir + "/hardened"}, os.Args[0])); got.Code != 0 {
			t.Fatalf("probe: %+v", got)
		}
		probeWant("hardened", "denied")
	})
}

// TestHardenSurvivesSignals sends every signal from inside of the container, to the process and to one of its threads.
func TestHardenSurvivesSignals(t *testing.T) {
	container.Run(t, func(t *testing.T) {
		stops, err := Stops()
		if err != nil {
			t.Fatal(err)
		}
		c := newTestContainer(t)
		if err := Harden(); err != nil {
			t.Fatal(err)
		}
		// Forks go on meanwhile: for a fork the runtime blocks all signals, which changes what the kernel does with them.
		shells := make(chan struct{})
		var forking sync.WaitGroup
		forking.Go(func() {
			for {
				select {
				case <-shells:
					return
				default:
					await(t, shell(t, c, "exit 0"))
				}
			}
		})
		for range 5 {
			env := []string{attackEnv + "=" + strconv.Itoa(rounds)}
			if got := await(t, start(t, c, env, os.Args[0])); got.Code != 0 {
				t.Errorf("the program that sends every signal: %+v", got)
			}
		}
		close(shells)
		forking.Wait()
		select {
		case s := <-stops:
			t.Errorf("%s from inside came through", unix.SignalName(s))
		default:
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if _, err := c.Freeze(ctx); err != nil {
			t.Errorf("freeze after all signals: %v", err)
		}
	})
}

// lastSignal is the highest signal number of Linux.
const lastSignal = 64

// attackEnv makes the test binary a program that sends PID 1 every signal, as many times as it says.
const attackEnv = "TIDEWAITER_TEST_ATTACK"

const (
	// rounds of all signals that a program sends.
	rounds = 20
	// betweenRounds others fork.
	betweenRounds = 5 * time.Millisecond
)

// sendSignals goes by the one way that the filter leaves: a thread of PID 1 has a number that the filter does not know.
func sendSignals(text string) error {
	rounds, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	threads, err := threadsOfInit()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(threads, func(thread int) bool { return thread != 1 })
	if i < 0 {
		return errors.New("PID 1 has one thread")
	}
	for range rounds {
		for number := 1; number <= lastSignal; number++ {
			_, _, errno := unix.RawSyscall(unix.SYS_TKILL, uintptr(threads[i]), uintptr(number), 0)
			if err := errors.Join(unix.Kill(threads[i], unix.Signal(number)), errnoOrNil(errno)); err != nil {
				return fmt.Errorf("signal %d: %w", number, err)
			}
		}
		time.Sleep(betweenRounds)
	}
	return nil
}
