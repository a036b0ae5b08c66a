// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestRepository(t *testing.T) {
	const want = "git.example.com/team/shop"
	for _, url := range []string{
		"https://git.example.com/team/shop", "https://git.example.com/team/shop.git", "https://git.example.com/team/shop/",
		"https://git.example.com/team/shop.git/", "https://GIT.Example.com/Team/Shop.git", "https://git.example.com:443/team/shop",
		"https://git.example.com:0443/team/shop", "https://git.example.com//team///shop", "https://git.example.com/team/./x/../shop",
		"https://git.example.com/team/%73hop", "https://git.example.com/team/shop.git.git", "https://git.example.com./team/shop",
	} {
		if got := Repository(url); got != want {
			t.Errorf("%s is %s, want %s", url, got, want)
		}
	}
	for _, url := range []string{
		"https://git.example.com:8443/team/shop", "https://example.com/team/shop", "https://git.example.com/shop",
		"https://git.example.com/team/shop-git", "https://git.example.com/team/shop2", "not a URL",
	} {
		if got := Repository(url); got == want {
			t.Errorf("%s is taken for %s", url, want)
		}
	}
	if got := Repository("https://git.example.com/.git"); got != "git.example.com/.git" {
		t.Errorf("a repository without a name is %s", got)
	}
}

func TestName(t *testing.T) {
	name := Name("https://git.example.com/shop.git", "openapi")
	if name != "tidewaiter-lock-7276bed4198c83149f949abe0c375c728d18d803" {
		t.Errorf("the name is %s: managers of two versions would not know each other's locks", name)
	}
	for _, other := range []string{
		Name("https://git.example.com/shop.git", "db"), Name("https://git.example.com/web.git", "openapi"),
		Name("https://git.example.com/shop.git", ""), Name("https://git.example.com/shop", "openapi-2"),
	} {
		if other == name {
			t.Error("two locks have one name")
		}
	}
	if Name("https://Git.example.com/shop", "openapi") != name {
		t.Error("one lock has two names")
	}
}

func TestHolder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a-z0-9-]{1,20}`)
		h := Holder{part.Draw(t, "namespace"), part.Draw(t, "name"), part.Draw(t, "uid")}
		if got := ParseHolder(h.String()); got != h {
			t.Fatalf("%+v became %+v", h, got)
		}
	})
	me := Holder{"shop", "login", "1"}
	if got := me.For("shop"); got != "Feature login" {
		t.Errorf("at home it is %q", got)
	}
	if got := me.For("warehouse"); got != "a Feature of another project" {
		t.Errorf("elsewhere it is %q", got)
	}
	if got := ParseHolder("somebody"); got == (Holder{}) || got == me {
		t.Errorf("somebody is %+v", got)
	}
	if (Holder{}).String() != "" {
		t.Error("nobody has a name")
	}
}

func TestState(t *testing.T) {
	me, other := Holder{"shop", "login", "1"}, Holder{"shop", "login", "2"}
	lease := func(h Holder, age time.Duration) Lease {
		return Lease{Version: "7", Holder: h, RenewedAt: noon.Add(-age)}
	}
	short := lease(other, time.Minute)
	short.TTL = time.Minute
	tests := map[string]struct {
		lease     Lease
		unchanged time.Duration
		want      Availability
		wantHeld  bool
	}{
		"no Lease":                              {want: Free},
		"nobody's":                              {lease: lease(Holder{}, 0), want: Free},
		"mine":                                  {lease: lease(me, TTL-1), want: Mine, wantHeld: true},
		"mine, expired":                         {lease: lease(me, TTL), unchanged: time.Hour, want: Mine},
		"another's":                             {lease: lease(other, 0), want: Busy},
		"one of an earlier time":                {lease: lease(Holder{"shop", "login", "0"}, 0), want: Busy},
		"expired, as far as its own time goes":  {lease: lease(other, time.Hour), unchanged: TTL - 1, want: Busy},
		"unchanged, but its time says it lives": {lease: lease(other, TTL-1), unchanged: time.Hour, want: Busy},
		"expired":                               {lease: lease(other, TTL), unchanged: TTL, want: Expired},
		"expired after its own time":            {lease: short, unchanged: time.Minute, want: Expired},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.lease.State(me, tc.unchanged, noon); got != tc.want {
				t.Errorf("state is %s, want %s", got, tc.want)
			}
			if got := tc.lease.HeldBy(me, noon); got != tc.wantHeld {
				t.Errorf("held: %t, want %t", got, tc.wantHeld)
			}
		})
	}
}

func TestSightings(t *testing.T) {
	var s Sightings
	steps := []struct {
		name, version string
		after         time.Duration
		want          time.Duration
	}{
		{"a", "1", 0, 0},
		{"a", "1", time.Minute, time.Minute},
		{"b", "1", 0, 0},
		{"a", "2", time.Minute, 0},
		{"a", "2", 9 * time.Minute, 9 * time.Minute},
		{"c", "1", 2 * time.Minute, 0}, // and b is forgotten
		{"b", "1", 0, 0},
		{"a", "2", 0, 11 * time.Minute},
	}
	now := noon
	for i, step := range steps {
		now = now.Add(step.after)
		if got := s.Unchanged(step.name, step.version, now); got != step.want {
			t.Errorf("step %d: unchanged for %s, want %s", i, got, step.want)
		}
	}
}

func TestChoose(t *testing.T) {
	tests := map[string]struct {
		wanted             []Wanted
		wantTake, wantBusy []string
	}{
		"none":                           {},
		"all are free, in order":         {wanted: []Wanted{{Contract: "b", State: Free}, {Contract: "a", State: Expired}, {Contract: "c", State: Mine}}, wantTake: []string{"a", "b", "c"}},
		"one is with another":            {wanted: []Wanted{{Contract: "a", State: Free}, {Contract: "b", State: Busy}}, wantBusy: []string{"b"}},
		"somebody comes first":           {wanted: []Wanted{{Contract: "a", State: Free, Before: true}, {Contract: "b", State: Free}}, wantBusy: []string{"a"}},
		"nobody comes before who has it": {wanted: []Wanted{{Contract: "a", State: Mine, Before: true}}, wantTake: []string{"a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			names := func(list []Wanted) []string {
				var names []string
				for _, w := range list {
					names = append(names, w.Contract)
				}
				return names
			}
			take, busy := Choose(tc.wanted)
			if diff := cmp.Diff([][]string{tc.wantTake, tc.wantBusy}, [][]string{names(take), names(busy)}); diff != "" {
				t.Errorf("take and busy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFirst(t *testing.T) {
	w := func(name string, priority int32, age time.Duration, locks ...string) Waiter {
		return Waiter{Holder: Holder{"shop", name, name}, Priority: priority, Since: noon.Add(-age), Locks: locks}
	}
	me := w("me", 5, time.Hour, "l")
	tests := map[string]struct {
		waiting []Waiter
		want    string
	}{
		"nobody":             {waiting: []Waiter{me}},
		"of lower priority":  {waiting: []Waiter{w("x", 4, 9*time.Hour, "l")}},
		"younger":            {waiting: []Waiter{w("x", 5, time.Minute, "l")}},
		"for another lock":   {waiting: []Waiter{w("x", 9, 9*time.Hour, "m")}},
		"of higher priority": {waiting: []Waiter{w("x", 6, 0, "m", "l")}, want: "x"},
		"older":              {waiting: []Waiter{w("x", 5, 2*time.Hour, "l")}, want: "x"},
		"as old, by name":    {waiting: []Waiter{w("a", 5, time.Hour, "l"), w("z", 5, time.Hour, "l")}, want: "a"},
		"the first of two":   {waiting: []Waiter{w("x", 6, 0, "l"), w("y", 7, 0, "l")}, want: "y"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			first, ok := First(me, tc.waiting, "l")
			if ok != (tc.want != "") || ok && first.Name != tc.want {
				t.Errorf("first is %s (%t), want %q", first.Name, ok, tc.want)
			}
		})
	}
}

// TestTheLineIsOne: of any Features that wait for a lock exactly one has nobody before it.
func TestTheLineIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var waiting []Waiter
		for i := range rapid.IntRange(1, 8).Draw(t, "waiters") {
			uid := string(rune('a' + i))
			waiting = append(waiting, Waiter{
				Holder: Holder{rapid.SampledFrom([]string{"p", "q"}).Draw(t, "namespace"), uid, uid}, Locks: []string{"l"},
				Priority: rapid.Int32Range(0, 2).Draw(t, "priority"), Since: noon.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Hour),
			})
		}
		heads := 0
		for _, w := range waiting {
			if _, ok := First(w, waiting, "l"); !ok {
				heads++
			}
		}
		if heads != 1 {
			t.Fatalf("%d of %d may take the lock: %+v", heads, len(waiting), waiting)
		}
	})
}
