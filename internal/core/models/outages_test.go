// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// TestOutages: a backend is out when a gateway keeps everybody away from it and it has answered no gateway since. One that nobody asks at a gateway says
// nothing there.
func TestOutages(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(1000+second), 0).UTC() }
	gateway := func(reached ...Reach) InForce { return InForce{Renewed: at(60), Reached: reached} }
	early := func(second int, reached ...Reach) InForce { return InForce{Renewed: at(second), Reached: reached} }
	out := func(backend string, second int) Outage { return Outage{Backend: backend, Since: at(second)} }
	for name, tc := range map[string]struct {
		fleet Fleet
		want  []Outage
	}{
		"no gateway":              {nil, nil},
		"nobody asks":             {Fleet{"a": gateway()}, nil},
		"it answers":              {Fleet{"a": gateway(Reach{Backend: "main", Answered: at(5)})}, nil},
		"one gateway":             {Fleet{"a": gateway(Reach{Backend: "main", Avoided: at(9), Answered: at(5)})}, []Outage{out("main", 9)}},
		"it has never answered":   {Fleet{"a": gateway(Reach{Backend: "main", Avoided: at(9)})}, []Outage{out("main", 9)}},
		"both, from the first on": {Fleet{"a": gateway(Reach{Backend: "main", Avoided: at(9)}), "b": gateway(Reach{Backend: "main", Avoided: at(7)})}, []Outage{out("main", 7)}},
		"the other does not ask":  {Fleet{"a": gateway(Reach{Backend: "main", Avoided: at(9)}), "b": gateway()}, []Outage{out("main", 9)}},
		"the other was answered":  {Fleet{"a": gateway(Reach{Backend: "main", Avoided: at(9)}), "b": gateway(Reach{Backend: "main", Answered: at(10)})}, nil},
		"the other not any more":  {Fleet{"a": gateway(Reach{Backend: "main", Avoided: at(9)}), "b": gateway(Reach{Backend: "main", Avoided: at(12), Answered: at(10)})}, []Outage{out("main", 12)}},
		"the other before it":     {Fleet{"a": gateway(Reach{Backend: "main", Avoided: at(9)}), "b": gateway(Reach{Backend: "main", Answered: at(8)})}, []Outage{out("main", 9)}},
		"said just now":           {Fleet{"a": early(9, Reach{Backend: "main", Avoided: at(9)})}, nil},
		"the other says later":    {Fleet{"a": gateway(Reach{Backend: "main", Avoided: at(9)}), "b": early(8, Reach{Backend: "main", Answered: at(8)})}, nil},
		"the other said it since": {Fleet{"a": gateway(Reach{Backend: "main", Avoided: at(9)}), "b": early(19, Reach{Backend: "main", Answered: at(8)})}, []Outage{out("main", 9)}},
		"two backends, by name":   {Fleet{"a": gateway(Reach{Backend: "spare", Avoided: at(3)}, Reach{Backend: "main", Avoided: at(9)})}, []Outage{out("main", 9), out("spare", 3)}},
		"another one is not it":   {Fleet{"a": gateway(Reach{Backend: "main", Avoided: at(9)}), "b": gateway(Reach{Backend: "spare", Answered: at(10)})}, []Outage{out("main", 9)}},
	} {
		if diff := cmp.Diff(tc.want, tc.fleet.Outages()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOutageIsOver: when the backend has answered a gateway since. That no gateway knows anything is no answer.
func TestOutageIsOver(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(1000+second), 0).UTC() }
	o := Outage{Backend: "main", Since: at(9)}
	for name, tc := range map[string]struct {
		reached []Reach
		want    bool
	}{
		"a gateway that begins anew": {nil, false},
		"it answered before":         {[]Reach{{Backend: "main", Answered: at(8)}}, false},
		"it has answered":            {[]Reach{{Backend: "main", Answered: at(10)}}, true},
		"it has answered, and fails": {[]Reach{{Backend: "main", Answered: at(10), Avoided: at(12)}}, true},
		"another one has":            {[]Reach{{Backend: "spare", Answered: at(10)}}, false},
	} {
		if got := (Fleet{"a": InForce{Backends: []Backend{{Name: "main"}}, Reached: tc.reached}}).Over(o); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !(Fleet{"a": InForce{Backends: []Backend{{Name: "spare"}}}}).Over(o) || (Fleet{}).Over(o) {
		t.Error("it is over where the backend is not configured any more, and not where there is no gateway")
	}
}

// TestOutFor: an outage is told for the Features that ask the backend with the platform's key. Others tell for themselves what fails.
func TestOutFor(t *testing.T) {
	fleet := Fleet{"a": InForce{
		Renewed:  time.Unix(2000, 0),
		Backends: []Backend{{Name: "claude", Dialects: []string{"anthropic"}}, {Name: "gpt", Dialects: []string{"openai"}}},
		Reached:  []Reach{{Backend: "gpt", Avoided: time.Unix(1000, 0)}},
	}}
	primary := func(backend string) []policy.ModelRef {
		return []policy.ModelRef{{Role: policy.RolePrimary, Backend: backend}}
	}
	own := primary("gpt")
	own[0].Key.Secret = "theirs"
	for name, tc := range map[string]struct {
		dialect string
		refs    []policy.ModelRef
		want    bool
	}{
		"the policy names it":             {"openai", primary("gpt"), true},
		"the policy names another":        {"", primary("claude"), false},
		"the project has a key":           {"openai", own, false},
		"the first that speaks":           {"openai", nil, true},
		"another speaks":                  {"anthropic", nil, false},
		"any dialect, and it comes later": {"", nil, false},
	} {
		if got := fleet.OutFor(tc.dialect, tc.refs); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
