// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package host is the machine's side of the cluster's node: the process, the link, control groups and settings that the rest of the machine
// shares. It makes and recognises each of them, and removes it without a trace.
package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killPatience is how long the kernel may take to end every process of the node.
const killPatience = 30 * time.Second

// Process identifies a process for ever: the kernel gives a process id to another process later.
type Process struct {
	PID int
	// Start is when it was started, in clock ticks since the machine's boot.
	Start string
	// Boot is the machine's boot.
	Boot string
}

// Record is the stored state of the running node.
type Record struct {
	Process Process
	// Started is when it was started.
	Started time.Time
	// Version is a hash of everything that the node was made from.
	Version string
	// Settled is whether it was seen to be ready for pods.
	Settled bool
	// Settings are the machine's settings as they were before, by path.
	Settings map[string]string
}

// SaveRecord writes the record.
func SaveRecord(state string, r Record) error {
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	path := recordPath(state)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return os.Rename(path+".new", path)
}

// LoadRecord reads the record; there is none before the first start of a node.
func LoadRecord(state string) (record Record, ok bool, err error) {
	content, err := os.ReadFile(recordPath(state))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("record: %w", err)
	}
	if err := json.Unmarshal(content, &record); err != nil {
		return Record{}, false, fmt.Errorf("record %s: %w", recordPath(state), err)
	}
	return record, true, nil
}

func recordPath(state string) string { return filepath.Join(state, "node.json") }

// Identify returns the identity of a running process.
func Identify(pid int) (Process, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return Process{}, fmt.Errorf("process: %w", err)
	}
	start, err := startTime(string(stat))
	if err != nil {
		return Process{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Process{}, fmt.Errorf("boot: %w", err)
	}
	return Process{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, nil
}

// startTime is field 22 of /proc/PID/stat. The second field is the program's name in parentheses and may contain
// anything, so fields are counted from its end.
func startTime(stat string) (string, error) {
	const fieldsAfterName = 22 - 2
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < fieldsAfterName {
		return "", fmt.Errorf("process: %q is not the content of a stat file", stat)
	}
	return fields[fieldsAfterName-1], nil
}

// Runs reports whether the very process that was recorded still runs.
func (p Process) Runs() bool {
	if p.PID <= 1 {
		return false
	}
	now, err := Identify(p.PID)
	return err == nil && now == p
}

// Kill ends the process, which takes all of its namespaces' processes with it, and waits until it is gone.
func (p Process) Kill() error {
	if !p.Runs() {
		return nil
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end the node: %w", err)
	}
	return until(killPatience, "the node's processes end", func() (bool, error) { return !p.Runs(), nil })
}

// Namespaced starts the driver's own binary as the first process of new namespaces. Its standard output and errors go
// to the log file; go is the message to begin.
func Namespaced(binary, log string, arguments ...string) (process Process, begin func() error, err error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Process{}, nil, fmt.Errorf("log file: %w", err)
	}
	defer output.Close() //nolint:errcheck // the process has its own descriptor
	reader, writer, err := os.Pipe()
	if err != nil {
		return Process{}, nil, fmt.Errorf("pipe: %w", err)
	}
	defer reader.Close() //nolint:errcheck // the process has its own descriptor

	command := exec.Command(binary, arguments...)
	command.Stdin, command.Stdout, command.Stderr = reader, output, output
	command.Dir = "/"
	// Nothing of the caller's environment reaches the node: what it is must not depend on who started it.
	command.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LANG=C.UTF-8"}
	command.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if err := command.Start(); err != nil {
		_ = writer.Close()
		return Process{}, nil, fmt.Errorf("start the node (it needs root): %w", err)
	}
	// Reaped here if it ends while this process lives, by the machine's first process afterwards.
	go command.Wait() //nolint:errcheck // its log says how it ended
	process, err = Identify(command.Process.Pid)
	if err != nil {
		_ = writer.Close()
		return Process{}, nil, err
	}
	begin = func() error {
		defer writer.Close() //nolint:errcheck // the byte has been written
		_, err := writer.Write([]byte{1})
		return err
	}
	return process, begin, nil
}

// until waits for a condition.
func until(patience time.Duration, what string, condition func() (bool, error)) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		done, err := condition()
		if done {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("waited %s for %s", patience, what), err)
		}
	}
}
