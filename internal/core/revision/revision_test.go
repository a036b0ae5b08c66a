// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBehind(t *testing.T) {
	known := Revision{Feature: "100", Policies: "90", Prompt: "", Namespace: "80"}
	for name, tc := range map[string]struct {
		is   Revision
		want bool
	}{
		"the same":                     {known, false},
		"an older Feature":             {Revision{Feature: "99", Policies: "90"}, true},
		"an older policy":              {Revision{Feature: "101", Policies: "9"}, true},
		"newer by a digit":             {Revision{Feature: "1000", Policies: "90"}, false},
		"a prompt that is new":         {Revision{Feature: "100", Policies: "90", Prompt: "1"}, false},
		"what cannot be compared":      {Revision{Feature: "x", Policies: "90"}, false},
		"nothing is known of policies": {Revision{Feature: "100"}, false},
		"an older namespace":           {Revision{Feature: "100", Policies: "90", Namespace: "79"}, true},
		"a namespace that is newer":    {Revision{Feature: "100", Policies: "90", Namespace: "81"}, false},
	} {
		if got := tc.is.Behind(known); got != tc.want {
			t.Errorf("%s: behind is %t", name, got)
		}
	}
}

func TestParse(t *testing.T) {
	for _, text := range []string{"1", "1/2", "1/2/3/4/5", "1/2/3/x", "a/2/3", "01/2/3", "-1/2/3", strings.Repeat("1", 41) + "//", "1/ 2/3"} {
		if r, err := Parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, r)
		}
	}
}

// TestOrder: what is sent is read as it was, and numbers are compared as numbers.
func TestOrder(t *testing.T) {
	part := rapid.StringMatching(`([1-9][0-9]{0,25})?`)
	rapid.Check(t, func(t *rapid.T) {
		a := Revision{part.Draw(t, "a"), part.Draw(t, "b"), part.Draw(t, "c"), part.Draw(t, "d")}
		b := Revision{part.Draw(t, "e"), part.Draw(t, "f"), part.Draw(t, "g"), part.Draw(t, "h")}
		if again, err := Parse(a.String()); err != nil || again != a {
			t.Fatalf("%+v is read as %+v (%v)", a, again, err)
		}
		if a.Feature != "" && b.Feature != "" {
			x, _ := new(big.Int).SetString(a.Feature, 10)
			y, _ := new(big.Int).SetString(b.Feature, 10)
			only := Revision{Feature: a.Feature}
			if only.Behind(b) != (x.Cmp(y) < 0) {
				t.Fatalf("%s behind %s: %t", x, y, only.Behind(b))
			}
		}
		if most := a.Max(b); most.Behind(a) || most.Behind(b) || most.Max(a) != most {
			t.Fatalf("the newest of %+v and %+v is %+v", a, b, most)
		}
	})
}
