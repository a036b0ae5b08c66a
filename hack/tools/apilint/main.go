// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command apilint checks the types of the API with the linters of sigs.k8s.io/kube-api-linter. Its configuration says which linters run, and which
// findings are excepted for which reason. It fails for any other finding, and for an exception that excepts nothing.
// Upstream builds a golangci-lint with the linters in it; this program needs no other than them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"
	lintconfig "sigs.k8s.io/kube-api-linter/pkg/config"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration" // the linters
	"sigs.k8s.io/yaml"
)

// config of a run. The first two are the settings that kube-api-linter documents.
type config struct {
	Linters       lintconfig.Linters       `json:"linters"`
	LintersConfig lintconfig.LintersConfig `json:"lintersConfig"`
	Exceptions    []*exception             `json:"exceptions"`
}

// exception is for the findings of a linter whose message matches.
type exception struct {
	Linter string `json:"linter"`
	// Message is a regular expression.
	Message string `json:"message"`
	// Reason why these findings stay.
	Reason string `json:"reason"`

	match *regexp.Regexp
	used  bool
}

// finding of a linter at a place.
type finding struct {
	at              token.Position
	linter, message string
}

func main() {
	path := flag.String("config", "", "configuration")
	dir := flag.String("dir", ".", "directory of the module whose packages are checked")
	flag.Parse()
	if err := run(*path, *dir, flag.Args()...); err != nil {
		fmt.Fprintln(os.Stderr, "apilint:", err)
		os.Exit(1)
	}
}

func run(path, dir string, patterns ...string) error {
	c, err := read(path)
	if err != nil {
		return err
	}
	findings, err := lint(c, dir, patterns...)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range c.rest(findings) {
		if name, err := filepath.Rel(dir, f.at.Filename); err == nil {
			f.at.Filename = name
		}
		errs = append(errs, fmt.Errorf("%s: %s: %s", f.at, f.linter, f.message))
	}
	for _, e := range c.Exceptions {
		if !e.used {
			errs = append(errs, fmt.Errorf("%s: no finding of %s matches %q any more: remove the exception", path, e.Linter, e.Message))
		}
	}
	return errors.Join(errs...)
}

func read(path string) (*config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	c := &config{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	for _, e := range c.Exceptions {
		if e.Linter == "" || e.Message == "" || e.Reason == "" {
			return nil, fmt.Errorf("%s: an exception needs linter, message and reason: %+v", path, *e)
		}
		if e.match, err = regexp.Compile(e.Message); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return c, nil
}

// lint runs the linters over packages, and gives what they find in the order of the files.
func lint(c *config, dir string, patterns ...string) ([]finding, error) {
	linters, err := registry.DefaultRegistry().InitializeLinters(c.Linters, c.LintersConfig)
	if err != nil {
		return nil, fmt.Errorf("set up the linters: %w", err)
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax | packages.NeedModule, Dir: dir}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load packages: %w", err)
	}
	if packages.PrintErrors(loaded) > 0 || len(loaded) == 0 {
		return nil, fmt.Errorf("load packages: %v do not compile", patterns)
	}
	graph, err := checker.Analyze(linters, loaded, nil)
	if err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	var all []finding
	for _, action := range graph.Roots {
		if action.Err != nil {
			return nil, fmt.Errorf("%s on %s: %w", action.Analyzer.Name, action.Package.PkgPath, action.Err)
		}
		for _, d := range action.Diagnostics {
			if at := action.Package.Fset.Position(d.Pos); !strings.HasPrefix(filepath.Base(at.Filename), "zz_generated") {
				all = append(all, finding{at, action.Analyzer.Name, d.Message})
			}
		}
	}
	slices.SortFunc(all, func(a, b finding) int {
		return strings.Compare(fmt.Sprintf("%s %06d %s", a.at.Filename, a.at.Line, a.linter), fmt.Sprintf("%s %06d %s", b.at.Filename, b.at.Line, b.linter))
	})
	return all, nil
}

// rest are the findings that no exception is for.
func (c *config) rest(findings []finding) []finding {
	return slices.DeleteFunc(findings, func(f finding) bool {
		for _, e := range c.Exceptions {
			if e.Linter == f.linter && e.match.MatchString(f.message) {
				e.used = true
				return true
			}
		}
		return false
	})
}
