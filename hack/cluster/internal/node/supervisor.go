// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// A daemon that ends is started again after this long, doubled each time it ends early, up to the maximum.
	restartMin = 500 * time.Millisecond
	restartMax = 10 * time.Second
	// A daemon that ran this long ended for a new reason.
	ranWell = 30 * time.Second

	dialInterval = 100 * time.Millisecond
	dialTimeout  = time.Second
)

// supervisor keeps daemons running. As the first process it also inherits every orphan of the node, so it waits for
// all children itself, in one place; os/exec would compete for them.
type supervisor struct {
	logs string

	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus // by process id
}

func newSupervisor(logs string) *supervisor {
	return &supervisor{logs: logs, waiting: map[int]chan syscall.WaitStatus{}}
}

// run starts the daemons and does not return: the node ends by being killed.
func (s *supervisor) run(daemons []Program) {
	for _, daemon := range daemons {
		go s.keep(daemon)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			time.Sleep(dialInterval) // nothing has been started yet
		case err == nil:
			s.mu.Lock()
			if ended, ok := s.waiting[pid]; ok {
				ended <- status
				delete(s.waiting, pid)
			}
			s.mu.Unlock()
		}
	}
}

// keep starts one daemon, and again whenever it ends.
func (s *supervisor) keep(daemon Program) {
	pause := restartMin
	for {
		if daemon.After != "" {
			await(daemon.After)
		}
		begin := time.Now()
		ended, err := s.start(daemon)
		if err != nil {
			slog.Error("Not started", "daemon", daemon.Name, "error", err)
		} else {
			status := <-ended
			slog.Warn("Ended", "daemon", daemon.Name, "how", describe(status), "after", time.Since(begin).String())
		}
		if time.Since(begin) > ranWell {
			pause = restartMin
		}
		time.Sleep(pause)
		pause = min(2*pause, restartMax)
	}
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}

// start starts the daemon; the channel says how it ended.
func (s *supervisor) start(daemon Program) (<-chan syscall.WaitStatus, error) {
	log, err := os.OpenFile(filepath.Join(s.logs, daemon.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log file: %w", err)
	}
	defer log.Close() //nolint:errcheck // the daemon has its own descriptor
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("null device: %w", err)
	}
	defer null.Close() //nolint:errcheck // only read

	// The lock is held until the process is listed, so that it cannot be waited for before.
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := syscall.ForkExec(daemon.Path, append([]string{daemon.Name}, daemon.Arguments...), &syscall.ProcAttr{
		Dir:   "/",
		Env:   os.Environ(),
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	slog.Info("Started", "daemon", daemon.Name, "pid", pid)
	ended := make(chan syscall.WaitStatus, 1)
	s.waiting[pid] = ended
	return ended, nil
}

// await returns once the address accepts connections.
func await(address string) {
	for {
		connection, err := net.DialTimeout("tcp", address, dialTimeout)
		if err == nil {
			_ = connection.Close()
			return
		}
		time.Sleep(dialInterval)
	}
}
