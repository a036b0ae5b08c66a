// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

func TestParseStatus(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		want    status
		wantErr string
	}{
		"stopped, with another stop pending": {
			text: "Name:\tState:\\nR (x\nState:\tT (stopped)\nTgid:\t7\nPid:\t8\nPPid:\t1\nThreads:\t3\nSigPnd:\t0000000000000000\n" +
				"ShdPnd:\t0000000000040000\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n",
			want: status{task: task{id: 8, state: 'T', stopPending: true, switches: 42}, parent: 1, threads: 3},
		},
		"other signals pending": {
			text: "State:\tR (running)\nSigPnd:\tfffffffffffbffff\nShdPnd:\t0000000000000100\n",
			want: status{task: task{state: 'R'}},
		},
		"a kernel that tells little": {text: "State:\tS (sleeping)\n", want: status{task: task{state: 'S'}}},
		"no state":                   {text: "Pid:\t1\n", wantErr: "status without a state"},
		"empty state":                {text: "State:\t\n", wantErr: "status without a state"},
		"empty":                      {wantErr: "status without a state"},
		"no number":                  {text: "State:\tT\nThreads:\tmany\n", wantErr: "status field Threads"},
	} {
		got, err := parseStatus([]byte(test.text))
		if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
			t.Errorf("%s: error = %v, want %q", name, err, test.wantErr)
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(status{}, task{})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestParseStatusOfThisKernel(t *testing.T) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseStatus(text)
	if err != nil {
		t.Fatal(err)
	}
	if got.id != os.Getpid() || got.parent != os.Getppid() || got.threads < 1 || got.switches == 0 {
		t.Errorf("status = %+v of pid %d, parent %d", got, os.Getpid(), os.Getppid())
	}
}

func FuzzParseStatus(f *testing.F) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("State:\tT (stopped)\nSigPnd:\t40000\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseStatus(text)
		if (err == nil) != (got.state != 0) {
			t.Errorf("state %q with error %v", got.state, err)
		}
		if got.stopPending && !bytes.Contains(text, []byte("Pnd:")) {
			t.Error("a stop is pending that the text does not tell")
		}
	})
}

func TestStanding(t *testing.T) {
	for name, test := range map[string]struct {
		process     process
		want        freezeState
		wantEscaped bool
	}{
		"stopped":                          {process: process{tasks: []task{{state: 'T'}}}, want: still},
		"traced":                           {process: process{tasks: []task{{state: 't'}}}, want: still},
		"zombie":                           {process: process{tasks: []task{{state: 'Z'}}}, want: still},
		"running":                          {process: process{tasks: []task{{state: 'R'}}}, want: moving, wantEscaped: true},
		"sleeping":                         {process: process{tasks: []task{{state: 'S'}}}, want: moving, wantEscaped: true},
		"about to stop":                    {process: process{tasks: []task{{state: 'R', stopPending: true}}}, want: moving},
		"one thread still runs":            {process: process{tasks: []task{{state: 'T'}, {state: 'R'}}}, want: moving},
		"dead leader, running thread":      {process: process{tasks: []task{{state: 'Z'}, {state: 'R'}}}, want: moving, wantEscaped: true},
		"system call, no stop yet":         {process: process{tasks: []task{{state: 'D'}}}, want: moving, wantEscaped: true},
		"system call, stop pending":        {process: process{tasks: []task{{state: 'D', stopPending: true}}}, want: inKernel},
		"system call, sibling stopped":     {process: process{tasks: []task{{state: 'T'}, {state: 'D'}}}, want: inKernel},
		"vfork, stop pending":              {process: process{tasks: []task{{state: 'D', stopPending: true}}, inFork: true}, want: still},
		"vfork, sibling stopped":           {process: process{tasks: []task{{state: 'D'}, {state: 'T'}}, inFork: true}, want: still},
		"vfork, no stop yet":               {process: process{tasks: []task{{state: 'D'}}, inFork: true}, want: moving, wantEscaped: true},
		"system call, then running thread": {process: process{tasks: []task{{state: 'D', stopPending: true}, {state: 'R'}}}, want: moving},
	} {
		if got := test.process.freezeState(); got != test.want {
			t.Errorf("%s: freezeState = %d, want %d", name, got, test.want)
		}
		if got := (snapshot{test.process}).escaped(); got != test.wantEscaped {
			t.Errorf("%s: escaped = %v, want %v", name, got, test.wantEscaped)
		}
	}
}

func TestDisturbed(t *testing.T) {
	earlier := snapshot{
		{pid: 2, tasks: []task{{id: 2, state: 'T', switches: 5}, {id: 3, state: 'T', switches: 1}}},
		{pid: 7, tasks: []task{{id: 7, state: 'T', switches: 9}}},
	}
	for name, test := range map[string]struct {
		now  snapshot
		want int
	}{
		"the same":         {now: earlier, want: 0},
		"one is gone":      {now: earlier[:1], want: 0},
		"one became dead":  {now: snapshot{earlier[0], {pid: 7, tasks: []task{{id: 7, state: 'Z', switches: 10}}}}, want: 0},
		"one ran":          {now: snapshot{earlier[0], {pid: 7, tasks: []task{{id: 7, state: 'T', switches: 10}}}}, want: 1},
		"a second thread":  {now: snapshot{earlier[0], {pid: 7, tasks: []task{{id: 7, state: 'T', switches: 9}, {id: 8, state: 'T'}}}}, want: 1},
		"a new process":    {now: append(earlier[:2:2], process{pid: 9, tasks: []task{{id: 9, state: 'T'}}}), want: 1},
		"a new dead one":   {now: append(earlier[:2:2], process{pid: 9, tasks: []task{{id: 9, state: 'Z'}}}), want: 0},
		"its thread ended": {now: snapshot{{pid: 2, tasks: earlier[0].tasks[:1]}, earlier[1]}, want: 0},
	} {
		if got := test.now.disturbed(earlier); got != test.want {
			t.Errorf("%s: disturbed = %d, want %d", name, got, test.want)
		}
	}
}

func TestStoppedBefore(t *testing.T) {
	at := func(state byte, pending bool, switches uint64) snapshot {
		return snapshot{{pid: 7, tasks: []task{{id: 7, state: state, stopPending: pending, switches: switches}}}}
	}
	twoThreads := func(first, second task) snapshot {
		first.id, second.id = 7, 8
		return snapshot{{pid: 7, tasks: []task{first, second}}}
	}
	type step struct {
		sent bool
		now  snapshot
	}
	for name, test := range map[string]struct {
		steps []step
		want  map[int]bool
	}{
		"stopped by the freeze":           {[]step{{true, at('R', true, 1)}, {false, at('T', false, 2)}}, nil},
		"stopped at once":                 {[]step{{true, at('T', false, 2)}}, nil},
		"stopped before":                  {[]step{{true, at('T', true, 2)}, {false, at('T', true, 2)}}, map[int]bool{7: true}},
		"second signal tells nothing":     {[]step{{true, at('T', false, 2)}, {true, at('T', true, 2)}}, nil},
		"woken after all":                 {[]step{{true, at('T', true, 2)}, {false, at('R', false, 2)}, {true, at('T', false, 3)}}, nil},
		"woken and stopped out of sight":  {[]step{{true, at('T', true, 2)}, {true, at('T', false, 3)}}, nil},
		"not there at the first of looks": {[]step{{true, nil}, {true, at('T', true, 1)}}, nil},
		"threads stopped before": {
			[]step{{true, twoThreads(task{state: 'T', stopPending: true}, task{state: 'T', stopPending: true})}},
			map[int]bool{7: true},
		},
		"a thread took the signal between the looks at two": {
			[]step{{true, twoThreads(task{state: 'R', stopPending: true}, task{state: 'T'})}},
			nil,
		},
	} {
		var before stoppedBefore
		var last snapshot
		for _, s := range test.steps {
			if s.sent {
				before.sent()
			}
			before.look(s.now, last)
			last = s.now
		}
		if diff := cmp.Diff(test.want, before.pids, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestUnsettledNamesAFew(t *testing.T) {
	var s snapshot
	for pid := range 8 {
		s = append(s, process{pid: pid, tasks: []task{{id: pid, state: 'R'}}})
	}
	s[1].tasks[0].state = 'T'
	s[2].tasks[0] = task{id: 2, state: 'D', stopPending: true}
	s[3].tasks[0].stopPending = true
	want := "process 0 still runs (state R, no stop is pending), process 2 is inside a system call, process 3 still runs (state R, a stop is pending), " +
		"process 4 still runs (state R, no stop is pending), process 5 still runs (state R, no stop is pending), and 2 more"
	if got := s.unsettled(); got != want {
		t.Errorf("unsettled() = %q, want %q", got, want)
	}
}

func TestGone(t *testing.T) {
	for err, want := range map[error]bool{nil: false, unix.ENOENT: true, unix.ESRCH: true, unix.EACCES: false, errors.New("x"): false} {
		if got := gone(err); got != want {
			t.Errorf("gone(%v) = %v, want %v", err, got, want)
		}
	}
}
