// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestFlagsPageIsTheSameEverywhere: the page says which variable gives a flag its default, not what this machine's has.
func TestFlagsPageIsTheSameEverywhere(t *testing.T) {
	var pages [2][]byte
	for i, value := range []string{"", "elsewhere"} {
		for _, name := range []string{"POD_NAME", "POD_NAMESPACE", "KUBECONFIG"} {
			t.Setenv(name, value)
		}
		page, err := flagsPage(root)
		if err != nil {
			t.Fatal(err)
		}
		pages[i] = page
	}
	if !bytes.Equal(pages[0], pages[1]) || !strings.Contains(string(pages[0]), "| `--replica` | string | environment `POD_NAME` |") {
		t.Errorf("the page depends on the environment, or does not name POD_NAME:\n%s", pages[1])
	}
}
