// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/hack/gen/apinames"
)

const root = "../../.."

// TestNamesAreFresh: what is committed is what the API's list says.
func TestNamesAreFresh(t *testing.T) {
	names, err := apinames.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs() {
		want, err := o.render(names)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, o.path))
		if err != nil {
			t.Fatalf("%v: run `make reasons`", err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is stale, run `make reasons` (-want +got):\n%s", o.path, diff)
		}
	}
}

// TestEveryNameIsInOneFile: nothing of the API's list is left out, and nothing is there twice.
func TestEveryNameIsInOneFile(t *testing.T) {
	names, err := apinames.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]int{}, map[string]int{}
	for _, c := range names.Types {
		want["Condition"+c.Name]++
	}
	for _, c := range names.Reasons() {
		want["Reason"+c.Name]++
	}
	for _, o := range outputs() {
		for _, block := range o.blocks(names) {
			for _, c := range block.list {
				got[block.prefix+c.Name]++
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("how often each name is generated (-want +got):\n%s", diff)
	}
}
