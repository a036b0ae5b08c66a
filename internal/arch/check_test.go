// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// module is the path of the module; packages of it are written without it.
const module = "github.com/tidewaiter/tidewaiter/"

// row places a package.
type row struct {
	// pkg is the package's directory; "x/..." stands for x and all below it.
	pkg string
	// why it is where it is.
	why string
	// allow lists what it may import beside what is not restricted: packages of the module by directory, others by
	// import path, each exact or, ending in "/", as a prefix. The standard library is always allowed, but see pure.
	allow []string
	// tests lists what its tests may import in addition to that and to what tests always may.
	tests []string
	// pure packages decide and do nothing else: no clock, disk, network, process or goroutine.
	pure bool
}

// source is what the rules look at in one file.
type source struct {
	// pkg is the directory of the file, name its base name.
	pkg, name string
	imports   []string
	// acts are what the file does that pure code must not: "go statement", "time.Now".
	acts []string
	// embeds are "Outer embeds *Inner" of types of the same package.
	embeds []string
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

// alwaysInTests may be imported by every test.
var alwaysInTests = []string{
	"internal/testkit/",
	"github.com/google/go-cmp/",
	"github.com/onsi/gomega",
	"github.com/onsi/gomega/",
	"go.uber.org/goleak",
	"github.com/go-logr/logr/testr",
	"pgregory.net/rapid",
}

// impure are packages of the standard library that pure code must not import; entries ending in "/" are prefixes.
var impure = []string{
	"crypto/rand", "crypto/tls", "database/", "embed", "io/fs", "io/ioutil", "log", "log/", "math/rand", "math/rand/",
	"net/http", "net/http/", "net/rpc", "net/smtp", "os", "os/", "path/filepath", "plugin", "reflect", "runtime", "runtime/",
	"sync", "sync/", "syscall", "testing", "testing/", "unsafe",
}

// check returns what is wrong with the sources, sorted.
func check(rows []row, sources []source) []string {
	var problems []string
	used := map[string]bool{}
	for _, s := range sources {
		r, ok := find(rows, s.pkg)
		if !ok {
			problems = append(problems, fmt.Sprintf("%s is in no layer: add a row to internal/arch/table_test.go", s.pkg))
			continue
		}
		used[r.pkg] = true
		problems = append(problems, r.check(s)...)
	}
	for _, r := range rows {
		if r.why == "" {
			problems = append(problems, fmt.Sprintf("the row of %s does not say why", r.pkg))
		}
		if !used[r.pkg] {
			problems = append(problems, fmt.Sprintf("%s has vanished: remove its row from internal/arch/table_test.go", r.pkg))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// find returns the row of a package: its own, or the longest one that covers it.
func find(rows []row, pkg string) (row, bool) {
	var best row
	for _, r := range rows {
		if r.pkg == pkg {
			return r, true
		}
		dir, tree := strings.CutSuffix(r.pkg, "/...")
		if tree && (pkg == dir || strings.HasPrefix(pkg, dir+"/")) && len(r.pkg) > len(best.pkg) {
			best = r
		}
	}
	return best, best.pkg != ""
}

// check returns what a file does against its row.
func (r row) check(s source) []string {
	var problems []string
	for _, imported := range s.imports {
		if reason := r.refuses(s, imported); reason != "" {
			problems = append(problems, fmt.Sprintf("%s must not import %s: %s (%s)", s.pkg, imported, reason, path.Join(s.pkg, s.name)))
		}
	}
	if r.pure && !s.test() {
		for _, act := range s.acts {
			problems = append(problems, fmt.Sprintf("%s must be pure but has a %s: %s (%s)", s.pkg, act, r.why, path.Join(s.pkg, s.name)))
		}
	}
	return problems
}

// refuses says why a file must not import a package, or "".
func (r row) refuses(s source, imported string) string {
	own, inModule := strings.CutPrefix(imported, module)
	if !inModule && standard(imported) {
		if r.pure && !s.test() && matches(impure, imported) {
			return r.why
		}
		return ""
	}
	if !inModule {
		own = imported
	}
	switch {
	case s.test() && (own == s.pkg || matches(alwaysInTests, own) || matches(r.tests, own)):
		return ""
	case matches(r.allow, own):
		return ""
	default:
		return r.why
	}
}

// standard says whether an import path is of the standard library: its first element has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// matches says whether a list has a path, exactly or by a prefix that ends in "/".
func matches(list []string, imported string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return entry == imported || strings.HasSuffix(entry, "/") && strings.HasPrefix(imported, entry)
	})
}
