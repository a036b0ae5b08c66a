// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import "testing"

// TestInterrupted: whether the agent of the next attempt may go on with a session, by what the last one did with the task.
func TestInterrupted(t *testing.T) {
	begun, started := Record{TaskBegun: &TaskBegun{Name: "form"}}, Record{TaskStarted: &TaskStarted{Name: "form", Start: 11, Session: true}}
	ended := func(code int) Record { return Record{TaskEnded: &TaskEnded{Name: "form", ExitCode: code}} }
	stopped := Record{TaskEnded: &TaskEnded{Name: "form", ExitCode: 1, Stopped: true}}
	corrected := Record{TaskCorrected: &TaskCorrected{Name: "form", Text: "Fix it."}}
	goesOn := Record{TaskCorrected: &TaskCorrected{Name: "form", ID: "s1", Text: "Go on."}}
	next := Record{Attempt: &Attempt{Epoch: 2, Run: "agent"}}
	for name, tc := range map[string]struct {
		records []Record
		want    bool
	}{
		"never begun":                       {nil, false},
		"never started":                     {[]Record{begun}, false},
		"at work":                           {[]Record{begun, started}, true},
		"ended in order":                    {[]Record{begun, started, ended(0)}, false},
		"failed":                            {[]Record{begun, started, ended(1)}, false},
		"stopped":                           {[]Record{begun, started, stopped}, true},
		"killed by the kernel":              {[]Record{begun, started, ended(137)}, false},
		"at work without a session":         {[]Record{begun, {TaskStarted: &TaskStarted{Name: "form", Start: 11}}}, false},
		"rejected":                          {[]Record{begun, started, {TaskRejected: &TaskRejected{Name: "form", Message: "m"}}, ended(137)}, false},
		"corrected":                         {[]Record{begun, started, ended(0), corrected}, true},
		"corrected and at work":             {[]Record{begun, started, ended(0), corrected, started}, true},
		"goes on after its end":             {[]Record{begun, started, goesOn}, true},
		"corrected and failed":              {[]Record{begun, started, ended(0), corrected, started, ended(1)}, false},
		"at work, and then never begun":     {[]Record{begun, started, next}, true},
		"at work, and then never started":   {[]Record{begun, started, next, begun}, true},
		"at work, and then ended in order":  {[]Record{begun, started, next, begun, started, ended(0)}, false},
		"at work, and then at work as well": {[]Record{begun, started, next, begun, started}, true},
	} {
		epoch := int64(1)
		s, err := Replay([]Record{{Attempt: &Attempt{Epoch: epoch, Run: "agent"}}, {Base: &Base{Commit: "c", Tree: "t"}}})
		for _, r := range append(tc.records, next) {
			if err != nil {
				break
			}
			if r.Attempt != nil {
				epoch++
				r.Attempt = &Attempt{Epoch: epoch, Run: "agent"}
			}
			s, err = s.Apply(r)
		}
		if got := s.Tasks["form"].Interrupted; err != nil || got != tc.want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tc.want)
		}
	}
}

// TestCorrected: a corrected task is at work anew under the policy that it began with, and an exit of the start before it is known as that.
func TestCorrected(t *testing.T) {
	s, err := Replay([]Record{
		{Attempt: &Attempt{Epoch: 1, Run: "agent"}}, {Base: &Base{Commit: "c", Tree: "t"}},
		{TaskBegun: &TaskBegun{Name: "form"}}, {TaskStarted: &TaskStarted{Name: "form", Start: 11}}, {TaskEnded: &TaskEnded{Name: "form"}},
		{TaskCorrected: &TaskCorrected{Name: "form", Text: "Fix it."}},
	})
	task := s.Tasks["form"]
	if err != nil || !task.Begun || task.Ended || task.Start != 0 || task.Before != 11 || task.Corrections != 1 || task.Correction != "Fix it." || !task.Completed.IsZero() {
		t.Errorf("%+v, %v", task, err)
	}
	if _, err := s.Apply(Record{TaskCorrected: &TaskCorrected{Name: "other", Text: "x"}}); err == nil {
		t.Error("a task that was not begun was corrected")
	}
}

// TestContinued: an agent that has ended with a turn without tools is at work anew, which is no correction of its work.
func TestContinued(t *testing.T) {
	s, err := Replay([]Record{
		{Attempt: &Attempt{Epoch: 1, Run: "agent"}}, {Base: &Base{Commit: "c", Tree: "t"}},
		{TaskBegun: &TaskBegun{Name: "form"}}, {TaskStarted: &TaskStarted{Name: "form", Start: 11, Session: true}},
		{TaskCorrected: &TaskCorrected{Name: "form", ID: "s1", Text: "Go on."}},
	})
	task := s.Tasks["form"]
	if err != nil || task.Continued != "s1" || task.Corrections != 0 || task.Correction != "Go on." || task.Before != 11 || task.Start != 0 || !task.Session {
		t.Errorf("%+v, %v", task, err)
	}
	for _, r := range []Record{
		{TaskStarted: &TaskStarted{Name: "form", Start: 12}}, {TaskEnded: &TaskEnded{Name: "form"}}, {TaskCorrected: &TaskCorrected{Name: "form", Text: "Fix it."}},
	} {
		if s, err = s.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	if task := s.Tasks["form"]; task.Continued != "" || task.Corrections != 1 {
		t.Errorf("%+v", task)
	}
}

// TestRejected: why a task has failed is known until it begins anew.
func TestRejected(t *testing.T) {
	s, err := Replay([]Record{
		{Attempt: &Attempt{Epoch: 1, Run: "agent"}}, {Base: &Base{Commit: "c", Tree: "t"}},
		{TaskBegun: &TaskBegun{Name: "form"}}, {TaskStarted: &TaskStarted{Name: "form", Start: 11}}, {TaskRejected: &TaskRejected{Name: "form", Message: "no summary"}},
	})
	if err != nil || s.Tasks["form"].Rejected != "no summary" {
		t.Errorf("%+v, %v", s.Tasks["form"], err)
	}
	for _, r := range []Record{{Attempt: &Attempt{Epoch: 2, Run: "agent"}}, {TaskBegun: &TaskBegun{Name: "form"}}} {
		if s, err = s.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	if s.Tasks["form"].Rejected != "" {
		t.Errorf("%+v", s.Tasks["form"])
	}
}
