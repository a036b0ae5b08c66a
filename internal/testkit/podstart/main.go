// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command podstart makes itself the first process of an agent's container: it shows a directory at the contract's place, and becomes the
// runner that prepare has put there. The test binary could do so itself, but its start takes several times as long.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/container"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: podstart DIRECTORY")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "podstart:", becomeRunner(os.Args[1]))
	os.Exit(1)
}

// becomeRunner returns only if it fails.
func becomeRunner(dir string) error {
	err := container.Enter()
	if err == nil {
		err = unix.Mount("tmpfs", "/run", "tmpfs", 0, "")
	}
	if err == nil {
		err = os.Mkdir(protocol.RunDir, 0o755)
	}
	if err == nil {
		err = unix.Mount(dir, protocol.RunDir, "", unix.MS_BIND, "")
	}
	if err != nil {
		return err
	}
	for range 100 { // a process that another test forks may hold the copy open for writing until it has executed
		err = unix.Exec(protocol.RunnerPath, []string{protocol.RunnerPath}, []string{"PATH=" + os.Getenv("PATH")})
		if !errors.Is(err, unix.ETXTBSY) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
