// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReferencePage: the page lists the rules that there are, each with its doc. `make reference` writes it.
func TestReferencePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(page)) {
		if id, ok := strings.CutPrefix(line, "## "); ok {
			got = append(got, strings.TrimSpace(id))
		}
	}
	for _, rule := range Rules() {
		want = append(want, rule.ID)
		if !strings.Contains(string(page), rule.Doc) {
			t.Errorf("the page does not have the doc of %s: run `make reference`", rule.ID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules of the page, run `make reference` (-want +got):\n%s", diff)
	}
}
