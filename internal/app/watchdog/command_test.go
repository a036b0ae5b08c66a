// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"bytes"
	"strings"
	"testing"
)

func TestMainRefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args     []string
		wantCode int
		want     string
	}{
		"nothing":            {wantCode: 2, want: "usage: watchdog prepare|run|prove|seal|answer "},
		"another command":    {args: []string{"dance"}, wantCode: 2, want: "usage:"},
		"help":               {args: []string{"run", "-h"}, wantCode: 0, want: "-attempt"},
		"no attempt":         {args: []string{"run", "--namespace", "a", "--feature", "b"}, wantCode: 2, want: "--attempt is missing"},
		"an attempt of text": {args: []string{"seal", "--attempt", "one"}, wantCode: 2, want: "invalid value"},
		"no volume":          {args: []string{"verify", "--trusted", "/nowhere"}, wantCode: 1, want: "no repository at /nowhere"},
		"verify what":        {args: []string{"verify", "now"}, wantCode: 2, want: `unexpected argument "now"`},
		"verify help":        {args: []string{"verify", "-h"}, wantCode: 0, want: "-trusted"},
		"an argument":        {args: []string{"prepare", "now"}, wantCode: 2, want: `unexpected argument "now"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if code := command(tc.args, &out, &out); code != tc.wantCode || !strings.Contains(out.String(), tc.want) {
				t.Errorf("code %d, output %q, want %d and %q", code, out.String(), tc.wantCode, tc.want)
			}
		})
	}
}
