// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Gate is a command that must exit with 0.
type Gate struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	// Image of the container that it runs in. In orders, an empty one is Tidewaiter's own image; in a policy, that of the agent.
	Image   string        `json:"image,omitempty"`
	Timeout time.Duration `json:"timeout"`
	// Env as NAME=value, in addition to what every gate has.
	Env []string `json:"env,omitempty"`
	// Report that the command must write; nil if it need not.
	Report *GateReport `json:"report,omitempty"`
	// MinTests is how many tests of the report must have run, and MinCoverage how many percent of its lines must be covered.
	MinTests    int `json:"minTests,omitempty"`
	MinCoverage int `json:"minCoverage,omitempty"`
}

// GateReport is a file in which a gate says what it found.
type GateReport struct {
	Format string `json:"format"`
	// Path from the root of the workspace.
	Path string `json:"path"`
}

func gatesRow() Row {
	const path = "gates"
	return Row{
		Path: path, Purpose: "Commands that must pass before a delivery, in pods where no agent has been.", Allowed: "names with a command, an image, a timeout, an environment, a report and requirements", Builtin: "none",
		Merging: "both, if gates of one name differ",
		check:   func(r *Rules) error { return checkGates(path, r.Gates) },
		merge:   func(m *merger, e *Effective) { e.Gates = m.gates() },
		rules:   func(r *Rules) any { return &r.Gates }, effective: func(e *Effective) any { return &e.Gates },
		cut: func(e *Effective) (now, builtin any) {
			var none []Gate
			now, e.Gates = e.Gates, nil
			return now, none
		},
	}
}

// maxMinTests as the API has it.
const maxMinTests, percent = 1_000_000, 100

func checkGates(path string, list []Gate) error {
	var errs []error
	for _, g := range list {
		if g.Timeout <= 0 {
			errs = append(errs, fmt.Errorf("%s.%s.timeout is %s: a gate needs a positive one", path, g.Name, g.Timeout))
		}
		if g.MinTests < 0 || g.MinTests > maxMinTests {
			errs = append(errs, fmt.Errorf("%s.%s.require.minTests is %d: it must be from 1 to %d", path, g.Name, g.MinTests, maxMinTests))
		}
		if g.MinCoverage < 0 || g.MinCoverage > percent {
			errs = append(errs, fmt.Errorf("%s.%s.require.minCoveragePercent is %d: it must be from 1 to %d", path, g.Name, g.MinCoverage, percent))
		}
	}
	return errors.Join(errs...)
}

// gates decides each gate by its name. Nobody can say which of two commands is the stricter: both must pass then.
func (m *merger) gates() []Gate {
	var all []Gate
	for _, name := range m.names(func(r *Rules) (names []string) {
		for _, g := range r.Gates {
			names = append(names, g.Name)
		}
		return names
	}) {
		all = append(all, decide(m, value[[]Gate]{
			name:     "gates." + name,
			of:       func(r *Rules) ([]Gate, bool) { named := gatesNamed(r, name); return named, named != nil },
			stricter: func(a, b []Gate) []Gate { return sortedSet(slices.Concat(a, b), compareGates) },
			equal: func(a, b []Gate) bool {
				return slices.EqualFunc(a, b, func(a, b Gate) bool { return compareGates(a, b) == 0 })
			},
		})...)
	}
	return all
}

func gatesNamed(r *Rules, name string) []Gate {
	var named []Gate
	for _, g := range r.Gates {
		if g.Name == name {
			named = append(named, g)
		}
	}
	return sortedSet(named, compareGates)
}

// compareGates by name, and then by everything that they say.
func compareGates(a, b Gate) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(textOf(a), textOf(b)))
}

func textOf(g Gate) string {
	text, err := json.Marshal(g)
	if err != nil { // texts and numbers
		return ""
	}
	return string(text)
}
