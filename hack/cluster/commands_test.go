// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParseImage(t *testing.T) {
	spec, set, to, err := parseImage([]string{
		"--name", "local.test/a:1", "--packages", "git,dash", "--without", "perl", "--file", "a:/a", "--file", "b:/b:0644",
		"--entrypoint", "/a", "--entrypoint", "run", "--env", "A=b", "--user", "1000:1000", "--output", "x.tar",
	})
	if err != nil {
		t.Fatal(err)
	}
	if to.archive != "x.tar" || to.list != "" || !slices.Equal(set.Packages, []string{"git", "dash"}) || !slices.Equal(set.Without, []string{"perl"}) {
		t.Errorf("outputs %+v, packages %+v", to, set)
	}
	if len(spec.Files) != 2 || spec.Files[1].Mode != 0o644 || !slices.Equal(spec.Entrypoint, []string{"/a", "run"}) || spec.User != "1000:1000" {
		t.Errorf("specification %+v", spec)
	}
}

func TestParseImageRefuses(t *testing.T) {
	tests := map[string]struct {
		arguments []string
		want      string
	}{
		"no output":     {[]string{"--name", "a:1", "--packages", "git"}, "--output"},
		"nothing in it": {[]string{"--name", "a:1", "--output", "x"}, "empty"},
		"a stray word":  {[]string{"--name", "a:1", "--output", "x", "git"}, "options"},
		"a bad file":    {[]string{"--name", "a:1", "--output", "x", "--file", "a"}, "--file"},
		"a bad name":    {[]string{"--name", "a", "--output", "x", "--file", "a:/a"}, "--name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, _, _, err := parseImage(test.arguments); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestRunRefusesUnknownCommands(t *testing.T) {
	t.Setenv("TIDEWAITER_CACHE", t.TempDir())
	for _, arguments := range [][]string{nil, {"fly"}} {
		if err := run(t.Context(), arguments); err == nil || !strings.Contains(err.Error(), "usage:") {
			t.Errorf("%v: error %v, want the usage", arguments, err)
		}
	}
}

// A cluster that is not ours is never changed.
func TestExternalClusterIsLeftAlone(t *testing.T) {
	t.Setenv("TIDEWAITER_CACHE", t.TempDir())
	t.Setenv("KUBECONFIG", "/somewhere/else")
	for command, want := range map[string]string{"down": "unset KUBECONFIG", "load-image": "IMG", "verify": "local cluster"} {
		if err := run(t.Context(), []string{command, "x"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", command, err, want)
		}
	}
}
