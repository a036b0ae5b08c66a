// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onlyOf are the rows of one package, so that nothing else has vanished.
func onlyOf(t *testing.T, pkg string) []row {
	t.Helper()
	r, ok := find(rows(), pkg)
	if !ok {
		return nil
	}
	return []row{r}
}

// TestTableBites: each rule of the house is broken once, by a file that could be written tomorrow, and is found.
func TestTableBites(t *testing.T) {
	tests := map[string]struct {
		file source
		want string // part of the one problem; "" for none
	}{
		"core imports Kubernetes":             {source{pkg: "internal/core/lifecycle", imports: []string{"k8s.io/api/core/v1"}}, "must not import k8s.io/api/core/v1"},
		"core imports the API":                {source{pkg: "internal/core/lifecycle", imports: []string{module + "api/v1alpha1"}}, "must not import"},
		"core imports pod":                    {source{pkg: "internal/core/supervise", imports: []string{module + "internal/pod/git"}}, "must not import"},
		"core opens files":                    {source{pkg: "internal/core/judge", imports: []string{"os"}}, "must not import os"},
		"core serves HTTP":                    {source{pkg: "internal/core/egress", imports: []string{"net/http"}}, "must not import net/http"},
		"core rolls dice":                     {source{pkg: "internal/core/policy", imports: []string{"math/rand/v2"}}, "must not import math/rand/v2"},
		"core reads the clock":                {source{pkg: "internal/core/lifecycle", acts: []string{"time.Now"}}, "has a time.Now"},
		"core starts a goroutine":             {source{pkg: "internal/core/lifecycle", acts: []string{"go statement"}}, "has a go statement"},
		"the judge uses another library":      {source{pkg: "internal/core/judge", imports: []string{"golang.org/x/text/language"}}, "must not import"},
		"pod imports kube":                    {source{pkg: "internal/pod/intakeclient", imports: []string{module + "internal/kube/intake"}}, "must not import"},
		"pod imports Kubernetes":              {source{pkg: "internal/pod/proc", imports: []string{"k8s.io/utils/clock"}}, "must not import"},
		"kube imports pod":                    {source{pkg: "internal/kube/intake", imports: []string{module + "internal/pod/spool"}}, "must not import"},
		"desired asks the API server":         {source{pkg: "internal/kube/desired", imports: []string{"sigs.k8s.io/controller-runtime/pkg/client"}}, "must not import"},
		"desired reads the clock":             {source{pkg: "internal/kube/desired", acts: []string{"time.Now"}}, "has a time.Now"},
		"the API has logic of ours":           {source{pkg: "api/v1alpha1", imports: []string{module + "internal/core/policy"}}, "must not import"},
		"a controller imports another":        {source{pkg: "controllers/feature", imports: []string{module + "controllers/template"}}, "must not import"},
		"a controller imports pod":            {source{pkg: "controllers/feature", imports: []string{module + "internal/pod/git"}}, "must not import"},
		"the watchdog imports Kubernetes":     {source{pkg: "internal/app/watchdog", imports: []string{"k8s.io/client-go/kubernetes"}}, "must not import"},
		"the runner imports the judge":        {source{pkg: "internal/app/runner", imports: []string{module + "internal/core/judge"}}, "must not import"},
		"the gateway imports intake":          {source{pkg: "internal/app/gateway", imports: []string{module + "internal/kube/intake"}}, "must not import"},
		"a program does something itself":     {source{pkg: "cmd/watchdog", imports: []string{module + "internal/pod/git"}}, "must not import"},
		"a program starts another":            {source{pkg: "cmd/runner", imports: []string{module + "internal/app/watchdog"}}, "must not import"},
		"code imports testkit":                {source{pkg: "internal/pod/proc", imports: []string{module + "internal/testkit/container"}}, "must not import"},
		"a test imports another layer":        {source{pkg: "internal/core/judge", name: "x_test.go", imports: []string{module + "internal/pod/git"}}, "must not import"},
		"a test uses a library of assertions": {source{pkg: "internal/core/judge", name: "x_test.go", imports: []string{"github.com/stretchr/testify/assert"}}, "must not import"},
		"a package in no layer":               {source{pkg: "internal/core/util"}, "is in no layer: add a row"},
		"a package below a row":               {source{pkg: "internal/core/judge/rules"}, "is in no layer: add a row"},

		"core uses the standard library": {source{pkg: "internal/core/judge", imports: []string{"strings", "net/netip", "time"}}, ""},
		"core is tested":                 {source{pkg: "internal/core/judge", name: "x_test.go", imports: []string{"os", "sync", "pgregory.net/rapid", module + "internal/testkit/container", module + "internal/core/judge"}, acts: []string{"time.Now", "go statement"}}, ""},
		"pod reads the clock":            {source{pkg: "internal/pod/proc", imports: []string{"os", "golang.org/x/sys/unix"}, acts: []string{"time.Now", "go statement"}}, ""},
		"a controller uses kube":         {source{pkg: "controllers/feature", imports: []string{module + "internal/kube/desired", module + "api/v1alpha1", "sigs.k8s.io/controller-runtime"}}, ""},
		"the API's subpackages":          {source{pkg: "api/v1alpha1/applyconfiguration", imports: []string{module + "api/v1alpha1"}}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.file.name == "" {
				tt.file.name = "x.go"
			}
			problems := check(onlyOf(t, tt.file.pkg), []source{tt.file})
			switch {
			case tt.want == "" && len(problems) > 0:
				t.Errorf("want none, got %q", problems)
			case tt.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], tt.want)):
				t.Errorf("want one problem with %q, got %q", tt.want, problems)
			}
		})
	}
}

// TestEveryRowIsNeeded: without any one row the whole tree is refused, and so is a row that no package has.
func TestEveryRowIsNeeded(t *testing.T) {
	var sources []source
	for _, r := range rows() {
		sources = append(sources, source{pkg: strings.TrimSuffix(r.pkg, "/..."), name: "x.go"})
	}
	if problems := check(rows(), sources); len(problems) > 0 {
		t.Fatalf("the table itself: %q", problems)
	}
	for i, r := range rows() {
		without := slices.Delete(rows(), i, i+1)
		if problems := check(without, sources); len(problems) == 0 {
			t.Errorf("without the row of %s nothing is refused", r.pkg)
		}
		rest := slices.Delete(slices.Clone(sources), i, i+1)
		want := []string{r.pkg + " has vanished: remove its row from internal/arch/table_test.go"}
		if diff := cmp.Diff(want, check(rows(), rest)); diff != "" {
			t.Errorf("without the package (-want +got):\n%s", diff)
		}
	}
}

// TestReachFollowsImports: a Kubernetes library several steps away is found.
func TestReachFollowsImports(t *testing.T) {
	imports := map[string][]string{
		module + "cmd/watchdog":          {"os", module + "internal/app/watchdog"},
		module + "internal/app/watchdog": {module + "internal/core/x", module + "cmd/watchdog"},
		module + "internal/core/x":       {"k8s.io/api/core/v1"},
	}
	want := "cmd/watchdog imports internal/app/watchdog imports internal/core/x imports k8s.io/api/core/v1"
	if got := reaches(imports, module+"cmd/watchdog", kubernetes); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	delete(imports, module+"internal/core/x")
	if got := reaches(imports, module+"cmd/watchdog", kubernetes); got != "" {
		t.Errorf("got %q, want none", got)
	}
}

// TestFacts: what a file does is seen, also under another name, and a variable called time is none.
func TestFacts(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"the clock":                {`package x; import "time"; var t = time.Now()`, "time.Now"},
		"the clock by a new name":  {`package x; import clock "time"; var t = clock.Now()`, "time.Now"},
		"the clock without a name": {`package x; import . "time"; var t = Now()`, "dot import of time"},
		"waiting":                  {`package x; import "time"; func f() { time.Sleep(1) }`, "time.Sleep"},
		"the clock as a value":     {`package x; import "time"; var now = time.Now`, "time.Now"},
		"a goroutine":              {`package x; func f() { go f() }`, "go statement"},
		"a duration":               {`package x; import "time"; const d = time.Second`, ""},
		"a variable":               {`package x; func f(time struct{ Now int }) int { return time.Now }`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "x.go", tt.text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			s, err := facts(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.acts, ","); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
