// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		report := New(&out, time.Now, 2)
		if err := report.Step("first", func() string { return "half way" }, func() error {
			time.Sleep(signOfLife + time.Second)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		boom := errors.New("boom")
		if err := report.Step("second", nil, func() error { return boom }); !errors.Is(err, boom) {
			t.Errorf("error %v, want the step's", err)
		}
		want := "[1/2] first\n  … 15s  half way\n  done in 16s\n[2/2] second\n"
		if out.String() != want {
			t.Errorf("report:\n%s\nwant:\n%s", out.String(), want)
		}
	})
}
