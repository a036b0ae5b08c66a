// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// clockTick is the unit of a process's times in /proc: USER_HZ, which is 100 on every architecture that Go supports (proc_pid_stat(5)).
const clockTick = time.Second / 100

// server is a gateway or a reverse proxy that runs as a process of its own.
type server struct {
	t       *testing.T
	program *exec.Cmd
	// url serves modelPath.
	url string
}

// start a program that serves on an inherited listener with the certificate of the provider, and passes calls on to the provider. The
// returned function ends the program.
func start(ctx context.Context, t *testing.T, program func() (string, error), provider *httptest.Server, args ...string) (s *server, end func()) {
	t.Helper()
	s = &server{t: t}
	path, err := program()
	s.must(err)
	dir := t.TempDir()
	key, err := x509.MarshalPKCS8PrivateKey(provider.TLS.Certificates[0].PrivateKey)
	s.must(err)
	s.must(os.WriteFile(filepath.Join(dir, "cert.pem"), certificate(provider), 0o600))
	s.must(os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	defer l.Close() // the program has a copy of it
	file, err := l.(*net.TCPListener).File()
	s.must(err)
	defer file.Close()
	s.url = "https://" + l.Addr().String() + modelPath

	s.program = exec.CommandContext(ctx, path, append([]string{dir, provider.URL}, args...)...)
	s.program.Stderr, s.program.ExtraFiles = os.Stderr, []*os.File{file}
	in, err := s.program.StdinPipe()
	s.must(err)
	s.must(s.program.Start())
	return s, func() {
		_ = in.Close() // which asks the program to end
		if err := s.program.Wait(); err != nil {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
}

// resident size of the process, in KiB.
func (s *server) resident() float64 {
	s.t.Helper()
	kib, err := occupied(s.program.Process.Pid, "VmRSS")
	s.must(err)
	return kib
}

// cpu is the processor time that all threads of the process have used, in steps of clockTick.
func (s *server) cpu() time.Duration {
	s.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.program.Process.Pid))
	s.must(err)
	ticks, err := processorTicks(string(stat))
	s.must(err)
	return time.Duration(ticks) * clockTick
}

// processorTicks adds utime and stime, fields 14 and 15 of proc_pid_stat(5). The second field is the name of the program in
// parentheses, which may have spaces in it.
func processorTicks(stat string) (int64, error) {
	const afterName, utime, stime = 3, 14, 15
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= stime-afterName {
		return 0, fmt.Errorf("the line of /proc/PID/stat has %d fields after the name: %q", len(fields), stat)
	}
	user, err := strconv.ParseInt(fields[utime-afterName], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime-afterName], 10, 64)
	return user + system, errors.Join(err, err2)
}

func (s *server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestProcessorTicks(t *testing.T) {
	line := "42 (a (strange) name) S 1 42 42 0 -1 4194560 1204 0 0 0 170 25 0 0 20 0 9 0 3180"
	if ticks, err := processorTicks(line); err != nil || ticks != 195 {
		t.Errorf("%d, %v, want 195", ticks, err)
	}
	if _, err := processorTicks("42 (a) S 1"); err == nil {
		t.Error("a line without times is read")
	}
}
