// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package apinames

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var camelCase = regexp.MustCompile(`^([A-Z][a-z0-9]*)+$`)

// TestNamesAreTheirValues: a reader of the page finds the constant, and no value is there twice.
func TestNamesAreTheirValues(t *testing.T) {
	names, err := Read("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for what, list := range map[string][]Constant{"condition type": names.Types, "reason": names.Reasons()} {
		seen := map[string]bool{}
		for _, c := range list {
			if c.Name != c.Value {
				t.Errorf("%s %s has the value %q", what, c.Name, c.Value)
			}
			if !camelCase.MatchString(c.Value) {
				t.Errorf("%s %q is not in CamelCase", what, c.Value)
			}
			if seen[c.Value] {
				t.Errorf("%s %q is declared twice", what, c.Value)
			}
			seen[c.Value] = true
		}
	}
}

func TestNamesOf(t *testing.T) {
	const (
		types    = "// Condition types. So.\nconst (\n\t// ConditionA: it is | so.\n\tConditionA = \"A\"\n)\n"
		own      = "// Reasons that the controllers give. So.\nconst (\n\t// ReasonB: it is\n\t// so.\n\tReasonB = \"B\"\n)\n"
		reported = "// Reasons that a watchdog reports, so.\nconst (\n\t// ReasonC: so.\n\tReasonC = \"C\"\n)\n"
	)
	cases := map[string]struct {
		source    string
		wantError string
	}{
		"documented":              {source: types + own + reported},
		"undocumented":            {types + own + strings.Replace(reported, "\t// ReasonC: so.\n", "", 1), "ReasonC needs a comment"},
		"comment on another one":  {types + own + strings.Replace(reported, "ReasonC:", "ReasonD:", 1), "ReasonC needs a comment"},
		"computed":                {types + own + strings.Replace(reported, `"C"`, `"C" + "D"`, 1), "must be a string literal"},
		"two at once":             {types + own + strings.Replace(reported, `ReasonC = "C"`, `ReasonC, ReasonD = "C", "D"`, 1), "must be declared alone"},
		"of another kind":         {types + own + strings.ReplaceAll(reported, "ReasonC", "OtherC"), "OtherC must begin with Reason"},
		"a group is missing":      {types + own, "no block of constants whose comment begins with \"Reasons that a watchdog reports\""},
		"a group is empty":        {types + own + "// Reasons that a watchdog reports\nconst ()\n", "no block of constants whose comment begins with \"Reasons that a watchdog reports\""},
		"a group is not known":    {types + own + reported + "// More.\nconst (\n\t// ReasonD: so.\n\tReasonD = \"D\"\n)\n", "begins with \"More.\""},
		"a block without comment": {types + own + reported + "\nconst X = 1\n", "begins with \"\""},
		"something else":          {types + own + reported + "var x = 1\n", "more than blocks of constants"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p\n\n"+c.source, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			got, err := namesOf(file)
			if c.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantError) {
					t.Fatalf("want error %q, got %v", c.wantError, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := Names{
				Types:    []Constant{{"A", "A", "It is | so."}},
				Own:      []Constant{{"B", "B", "It is so."}},
				Reported: []Constant{{"C", "C", "So."}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
