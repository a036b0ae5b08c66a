// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Run is the first process of the node. Run reads start first: the machine's side of the link must exist. If the process that makes it ends
// instead, this process ends as well.
func Run(plan Plan, start io.Reader) error {
	if os.Getpid() != 1 {
		return errors.New("this is not the first process of a PID namespace: use `up`")
	}
	if _, err := io.ReadFull(start, make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for the link: %w", err)
	}
	if err := syscall.Sethostname([]byte(plan.Hostname)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := mountAll(plan.State); err != nil {
		return err
	}
	if err := connect(plan.Link); err != nil {
		return err
	}
	if err := os.Setenv("PATH", plan.Path); err != nil {
		return fmt.Errorf("search path: %w", err)
	}
	for _, program := range plan.Before {
		// A volume that cannot be mounted is its pod's trouble, not the node's.
		if output, err := exec.Command(program.Path, program.Arguments...).CombinedOutput(); err != nil {
			slog.Error("Failed before the start", "program", program.Name, "error", err, "output", string(output))
		}
	}
	newSupervisor(filepath.Join(plan.State, "log")).run(plan.Daemons)
	return nil
}

// connect configures the node's end of the link, and makes the node a router between its pods.
func connect(link Link) error {
	for _, arguments := range [][]string{
		{"link", "set", "lo", "up"},
		{"address", "add", link.Address, "dev", link.Name},
		{"link", "set", link.Name, "up"},
		{"route", "add", "default", "via", link.Gateway},
	} {
		if output, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", arguments, err, output)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("forwarding: %w", err)
	}
	return nil
}
