// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errBoom = errors.New("boom")

func TestRunStopsAtTheFirstError(t *testing.T) {
	var trace []string
	step := func(name string, err error) Step[string] {
		return func(_ context.Context, scope string) error {
			trace = append(trace, scope+name)
			return err
		}
	}
	err := Run(t.Context(), "s", step("1", nil), step("2", errBoom), step("3", nil))
	if !errors.Is(err, errBoom) || !slices.Equal(trace, []string{"s1", "s2"}) {
		t.Errorf("ran %v and ended with %v", trace, err)
	}
}

func TestFinish(t *testing.T) {
	features := schema.GroupResource{Resource: "features"}
	conflict := fmt.Errorf("apply: %w", apierrors.NewConflict(features, "login", errBoom))
	gone := fmt.Errorf("apply: %w", apierrors.NewNotFound(features, "login"))
	tests := map[string]struct {
		err, writeErr error
		recheck       time.Duration
		wantTold      bool
		wantAfter     time.Duration
		wantErr       bool
	}{
		"all went well":                          {recheck: time.Minute, wantTold: true, wantAfter: time.Minute},
		"the status could not be written":        {writeErr: errBoom, wantErr: true},
		"somebody else wrote":                    {writeErr: conflict, wantAfter: conflictPause},
		"the object is gone":                     {writeErr: gone, wantAfter: conflictPause},
		"a step met a conflict":                  {err: conflict, wantTold: true, wantAfter: conflictPause},
		"a step failed":                          {err: errBoom, wantTold: true, wantErr: true},
		"a step waits":                           {err: Waitf("Later", time.Second, "x"), recheck: time.Minute, wantTold: true, wantAfter: time.Second},
		"a step waits longer than the decision":  {err: Waitf("Later", time.Hour, "x"), recheck: time.Minute, wantTold: true, wantAfter: time.Minute},
		"a step stalled: nobody looks again":     {err: Stallf("Fix", "x"), wantTold: true},
		"a step stalled: the decision says when": {err: Stallf("Fix", "x"), recheck: time.Minute, wantTold: true, wantAfter: time.Minute},
		"a retry":                                {err: errBoom, wantTold: true, wantErr: true},
		"a failed step and a failed write":       {err: Waitf("Later", time.Second, "x"), writeErr: errBoom, wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			writes, told := 0, false
			result, err := Finish(t.Context(), tc.err, Close{
				Recheck: tc.recheck,
				Write:   func(context.Context) error { writes++; return tc.writeErr },
				Tell:    func() { told = true },
			})
			if writes != 1 || told != tc.wantTold || result.RequeueAfter != tc.wantAfter || (err != nil) != tc.wantErr {
				t.Errorf("%d writes, told %t, again after %s, error %v; want 1, %t, %s, an error: %t",
					writes, told, result.RequeueAfter, err, tc.wantTold, tc.wantAfter, tc.wantErr)
			}
		})
	}
}

func TestFinishWithNothingToWriteStillTells(t *testing.T) {
	told := false
	if _, err := Finish(t.Context(), nil, Close{Tell: func() { told = true }}); err != nil || !told {
		t.Errorf("told %t, error %v", told, err)
	}
	if result, err := Finish(t.Context(), nil, Close{}); err != nil || !result.IsZero() {
		t.Errorf("result %+v, error %v", result, err)
	}
}

func TestFreshWaitsForItsOwnWrite(t *testing.T) {
	at := func(version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "uid-1", ResourceVersion: version}}
	}
	var f Fresh
	if err := f.Check(at("1")); err != nil {
		t.Errorf("nothing was written, and yet: %v", err)
	}
	f.Wrote("uid-1", "10")
	if err := f.Check(at("9")); Of(err) == nil || Of(err).Kind != Quiet {
		t.Errorf("an older object passes: %v", err)
	}
	if err := f.Check(at("10")); err != nil {
		t.Errorf("the write itself does not pass: %v", err)
	}
	if err := f.Check(at("9")); err != nil {
		t.Errorf("what was seen once is still remembered: %v", err)
	}
	f.Wrote("uid-1", "10")
	f.Forget("uid-1")
	if err := f.Check(at("9")); err != nil {
		t.Errorf("what was forgotten is remembered: %v", err)
	}
	f.Wrote("uid-1", "not a number")
	if err := f.Check(at("9")); err != nil {
		t.Errorf("versions that cannot be compared hold a reconcile up: %v", err)
	}
}

// TestFreshBacksOff: a watch that stalls is not asked for 20 times a second.
func TestFreshBacksOff(t *testing.T) {
	at := func(version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "uid-1", ResourceVersion: version}}
	}
	var f Fresh
	looks := func(stalled time.Duration) int {
		n := 0
		for waited := time.Duration(0); waited < stalled; n++ {
			ending := Of(f.Check(at("9")))
			if ending == nil {
				t.Fatal("an older object passes")
			}
			waited += ending.After
		}
		return n
	}
	f.Wrote("uid-1", "10")
	if n := looks(time.Minute); n > 16 {
		t.Errorf("a watch that stalls for a minute costs %d looks", n)
	}
	f.Wrote("uid-1", "11")
	if n := looks(100 * time.Millisecond); n != 2 {
		t.Errorf("the next write is looked for %d times in 100 ms, want 2", n)
	}
}
