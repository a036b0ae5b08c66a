// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// list is where names stand in a file.
type list struct {
	// file below the root, and what of it the list is, for people.
	file, what string
	// region has the list as its last group, and item a name of it as its first.
	region, item string
	want         []string
}

// check names what a list lacks, and what it has that there is not.
func (l list) check(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, l.file))
	if err != nil {
		t.Error(err)
		return
	}
	found, err := l.names(string(text))
	if err != nil {
		t.Error(err)
		return
	}
	compare(t, l.file+", "+l.what, found, l.want)
}

// names of the list in a text.
func (l list) names(text string) (names []string, err error) {
	region := regexp.MustCompile(l.region).FindStringSubmatch(text)
	if region == nil {
		return nil, fmt.Errorf("%s, %s: nothing is like %s: correct this test", l.file, l.what, l.region)
	}
	for _, m := range regexp.MustCompile(l.item).FindAllStringSubmatch(region[len(region)-1], -1) {
		names = append(names, m[1])
	}
	return names, nil
}

func compare(t *testing.T, where string, found, want []string) {
	t.Helper()
	for _, problem := range differences(found, want) {
		t.Errorf("%s: %s", where, problem)
	}
}

// differences of what was found from what there is.
func differences(found, want []string) (problems []string) {
	for _, name := range want {
		if !slices.Contains(found, name) {
			problems = append(problems, name+" is missing")
		}
	}
	for _, name := range found {
		if !slices.Contains(want, name) {
			problems = append(problems, name+" is in the list, and there is no such thing")
		}
	}
	return problems
}

// entries of a folder that match a pattern, without what the pattern adds to their names.
func entries(t *testing.T, folder, suffix string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if name, is := strings.CutSuffix(e.Name(), suffix); is && e.IsDir() == (suffix == "") {
			names = append(names, name)
		}
	}
	return names
}

// TestListsBite: what a list lacks is named, what it has too much is, and so is a list that is not where the test looks.
func TestListsBite(t *testing.T) {
	l := list{file: "page.md", what: "the table", region: `of \(([^)]*)\)`, item: `([a-z-]+)`}
	found, err := l.names("one of (abacus, sliderule) and others")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"tally is missing", "sliderule is in the list, and there is no such thing"}
	if got := differences(found, []string{"abacus", "tally"}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := l.names("none"); err == nil {
		t.Error("a list that is not there is taken for an empty one")
	}
}
