// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func TestStartTime(t *testing.T) {
	tests := map[string]struct {
		stat, want string
		wantErr    bool
	}{
		"plain":                    {stat: "1 (a) S 0 1 1 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 777 18 19", want: "777"},
		"name with a parenthesis":  {stat: "1 (a) S 9) S 0 1 1 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 777 18 19", want: "777"},
		"cut off":                  {stat: "1 (a) S 0 1", wantErr: true},
		"not a stat file whatever": {stat: "", wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := startTime(test.stat)
			if got != test.want || (err != nil) != test.wantErr {
				t.Errorf("startTime = %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestKillEndsOnlyTheRecordedProcess(t *testing.T) {
	command := exec.Command("sleep", "60")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	process, err := Identify(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	// Another process that was given the same number later, or after a reboot.
	for name, other := range map[string]Process{
		"another start": {PID: process.PID, Start: "1", Boot: process.Boot},
		"another boot":  {PID: process.PID, Start: process.Start, Boot: "x"},
		"no process":    {},
		"the first":     {PID: 1, Start: process.Start, Boot: process.Boot},
	} {
		if other.Runs() {
			t.Errorf("%s: it was taken for the recorded process", name)
		}
		if err := other.Kill(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !process.Runs() {
		t.Fatal("the process was ended")
	}
	reaped := make(chan error, 1)
	go func() { reaped <- command.Wait() }()
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-reaped; err == nil {
		t.Error("the process ended by itself")
	}
}

func TestRecord(t *testing.T) {
	state := t.TempDir()
	if _, ok, err := LoadRecord(state); ok || err != nil {
		t.Fatalf("a record out of nothing: %t, %v", ok, err)
	}
	want := Record{Process: Process{PID: 7, Start: "8", Boot: "9"}, Version: "v", Settings: map[string]string{"a": "b"}}
	if err := SaveRecord(state, want); err != nil {
		t.Fatal(err)
	}
	got, ok, err := LoadRecord(state)
	if err != nil || !ok || got.Process != want.Process || got.Version != want.Version || got.Settings["a"] != "b" {
		t.Errorf("record %+v, %t, %v; want %+v", got, ok, err, want)
	}
}

func TestOverlaps(t *testing.T) {
	used := []netip.Prefix{netip.MustParsePrefix("10.244.3.0/24"), netip.MustParsePrefix("192.168.0.0/16")}
	if err := overlaps([]string{"10.200.0.1/30", "10.96.0.0/16"}, used); err != nil {
		t.Errorf("free networks: %v", err)
	}
	if err := overlaps([]string{"10.244.0.0/16"}, used); err == nil {
		t.Error("a network around one in use was accepted")
	}
}

func TestCgroupMounts(t *testing.T) {
	tests := map[string]struct {
		mounts string
		want   []string
	}{
		"version 2":        {"cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", []string{"/sys/fs/cgroup"}},
		"both":             {"tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n", []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"}},
		"mounted twice":    {"cgroup /a cgroup rw 0 0\ncgroup /a cgroup rw 0 0\n", []string{"/a"}},
		"none":             {"proc /proc proc rw 0 0\n", nil},
		"only by its name": {"cgroup /a tmpfs rw 0 0\n", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := cgroupMounts(test.mounts); !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

func TestRemoveTree(t *testing.T) {
	group := filepath.Join(t.TempDir(), "group")
	if err := os.MkdirAll(filepath.Join(group, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing
		if err := removeTree(group); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(group); err == nil {
		t.Error("the group is still there")
	}
}
