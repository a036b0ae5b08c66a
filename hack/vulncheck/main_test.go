// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

// output is what govulncheck says of a module that is required, and of packages that are linked, one of them twice.
const output = `{"config": {"protocol_version": "v1.0.0"}}
{"osv": {"id": "GO-1"}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.1.0", "trace": [{"module": "example.com/a", "version": "v1.0.0"}]}}
{"finding": {"osv": "GO-2", "fixed_version": "v1.1.0", "trace": [{"module": "example.com/b", "version": "v1.0.0", "package": "example.com/b"}]}}
{"finding": {"osv": "GO-3", "fixed_version": "v1.1.0", "trace": [{"module": "example.com/c", "version": "v1.0.0", "package": "example.com/c/x"}]}}
{"finding": {"osv": "GO-3", "fixed_version": "v1.1.0", "trace": [{"module": "example.com/c", "version": "v1.0.0", "package": "example.com/c/y"}]}}
`

func TestFindings(t *testing.T) {
	got, err := findings(strings.NewReader(output))
	if want := []finding{{"GO-2", "example.com/b@v1.0.0", "v1.1.0"}, {"GO-3", "example.com/c/x@v1.0.0", "v1.1.0"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := findings(strings.NewReader(`{"finding": `)); err == nil {
		t.Error("half an answer is none")
	}
}

func TestVerdict(t *testing.T) {
	found := []finding{{id: "GO-3", in: "example.com/c@v1.0.0", fixed: "v1.1.0"}}
	for name, tc := range map[string]struct {
		exceptions, want string
	}{
		"without a reason":         {want: "GO-3: example.com/c@v1.0.0 is linked; fixed in v1.1.0"},
		"with a reason":            {exceptions: "GO-3\tit reads no input of others\n"},
		"a reason for nothing":     {exceptions: "GO-3\ta\nGO-4\tb\n", want: "GO-4 is not found any more"},
		"of a Go that is not here": {exceptions: "GO-3\ta\nGO-4\tGo: fixed in the next one\n"},
		"no reason":                {exceptions: "GO-3\n", want: "want an ID, a tab and a reason"},
	} {
		t.Run(name, func(t *testing.T) {
			reasons, err := read(tc.exceptions)
			if err == nil {
				err = verdict(found, reasons)
			}
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
