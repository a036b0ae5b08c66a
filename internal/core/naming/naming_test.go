// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	tests := map[string]struct{ got, want string }{
		"a Job":             {Job("add-login", 3), "twf-add-login-3"},
		"a Checkpoint":      {Checkpoint("add-login", 12), "add-login-12"},
		"a trusted volume":  {Volume("add-login", "trusted"), "twf-add-login-trusted"},
		"a workspace":       {Volume("add-login", "workspace"), "twf-add-login-workspace"},
		"a home":            {Volume("add-login", "home"), "twf-add-login-home"},
		"a network policy":  {NetworkPolicy("add-login"), "twf-add-login"},
		"one that is cut":   {Job(strings.Repeat("x", MaxFeature), math.MaxInt64), "twf-" + strings.Repeat("x", 48) + "-c14d1e1f8d"},
		"cut at a hyphen":   {Job(strings.Repeat("x", 47)+"-yyyy", math.MaxInt64), "twf-" + strings.Repeat("x", 47) + "-38dc2dacf0"},
		"as long as it may": {Job(strings.Repeat("x", MaxFeature), 999_999), "twf-" + strings.Repeat("x", MaxFeature) + "-999999"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %q, want %q", tt.got, tt.want)
			}
		})
	}
}

// feature draws names that the API lets through.
func feature(t *rapid.T, label string) string {
	return rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?`).Draw(t, label)
}

// children are all names that a Feature's objects of one kind can have, by kind.
func children(t *rapid.T, feature, label string) map[string][]string {
	n := rapid.Int64Range(1, math.MaxInt64).Draw(t, label)
	return map[string][]string{
		"Job":                   {Job(feature, n)},
		"Checkpoint":            {Checkpoint(feature, n)},
		"PersistentVolumeClaim": {Volume(feature, "trusted"), Volume(feature, "workspace"), Volume(feature, "home")},
		"NetworkPolicy":         {NetworkPolicy(feature)},
	}
}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func TestNamesAreDNSLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for kind, names := range children(t, feature(t, "feature"), "n") {
			for _, name := range names {
				if kind != "Checkpoint" && !strings.HasPrefix(name, Prefix) {
					t.Errorf("admission does not know %s %q", kind, name)
				}
				if len(name) > MaxName || !dnsLabel.MatchString(name) {
					t.Errorf("%s %q is not a DNS label", kind, name)
				}
			}
		}
	})
}

// TestNamesAreNotShared: different Features have no name of a kind in common, nor do different numbers of one.
func TestNamesAreNotShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := feature(t, "a")
		// Names that begin alike, or look like a child's, are the ones that could collide.
		b := rapid.SampledFrom([]string{a + "-1", a + "-trusted", "x" + a, feature(t, "b")}).Draw(t, "other")
		if a == b || len(b) > MaxFeature {
			return
		}
		of := children(t, b, "m")
		for kind, names := range children(t, a, "n") {
			for _, name := range names {
				for _, other := range of[kind] {
					if name == other {
						t.Errorf("%s %q belongs to %q and %q", kind, name, a, b)
					}
				}
			}
		}
		n, m := rapid.Int64Min(1).Draw(t, "attempt"), rapid.Int64Min(1).Draw(t, "another")
		if n != m && Job(a, n) == Job(a, m) {
			t.Errorf("attempts %d and %d of %q share a Job", n, m, a)
		}
	})
}

func TestSequence(t *testing.T) {
	for name, want := range map[string]int64{
		"add-login-7": 7, "add-login-12": 12,
		"add-login-07": 0, "add-login-0": 0, "add-login--1": 0, "add-login-+1": 0, "add-login-": 0, "add-login": 0, "": 0,
		"add-login-2-7": 0, "add-7": 0, "other-7": 0, "7": 0, "add-login-99999999999999999999": 0,
	} {
		if got, ok := Sequence("add-login", name); ok != (want > 0) || ok && got != want {
			t.Errorf("Sequence(%q) = %d, %v, want %d", name, got, ok, want)
		}
	}
}
