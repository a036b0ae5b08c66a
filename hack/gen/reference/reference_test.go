// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

// TestPagesAreFresh: what is committed is what the code says.
func TestPagesAreFresh(t *testing.T) {
	for _, p := range pages() {
		want, err := p.render(root)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		got, err := os.ReadFile(pagePath(root, p))
		if err != nil {
			t.Errorf("%v: run `make reference`", err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("docs/reference/%s is stale, run `make reference` (-want +got):\n%s", p.name, diff)
		}
	}
}
