// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command vulncheck fails when a program of this repository links a package with a known vulnerability that exceptions.tsv gives no reason for.
// A search for calls takes minutes and 6 GB, and finds fewer: run govulncheck -scan symbol to see whether a new vulnerability is called.
// It runs govulncheck in the version of hack/tools/go.mod, with the database in the version below, so that every machine gives the same answer.
// It runs in the checkout's root.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/hack/gomodule"
)

// The database. To take a newer one: go mod download -json golang.org/x/vulndb@master, and copy its version and sum.
const (
	module  = "golang.org/x/vulndb"
	version = "v0.0.0-20261105234957-e22db6528018"
	sum     = "h1:mfngRv0Yoh0VApsXKEN82CjD99kl7mtparN3bs3JnqI="
)

// targets are directories of modules, and packages in them: the programs, and what makes releases.
var targets = [][2]string{{".", "./cmd/..."}, {"hack/release", "./..."}}

// exceptions has a line for each vulnerability that stays for now: its ID, a tab, and the reason.
//
//go:embed exceptions.tsv
var exceptions string

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

func run() error {
	reasons, err := read(exceptions)
	if err != nil {
		return err
	}
	database, err := gomodule.Download(module, version, sum)
	if err != nil {
		return err
	}
	entries := filepath.Join(database, "data", "osv") // govulncheck reads them without an index
	tools, err := filepath.Abs("hack/tools/go.mod")
	if err != nil {
		return fmt.Errorf("find the tools: %w", err)
	}
	var all []finding
	for _, target := range targets {
		cmd := exec.Command("go", "tool", "-modfile="+tools, "govulncheck", "-C", target[0], "-db", "file://"+entries, "-scan", "package", "-format", "json", target[1])
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("govulncheck of %s: %w", target[0], err)
		}
		found, err := findings(bytes.NewReader(out))
		if err != nil {
			return fmt.Errorf("read what govulncheck says of %s: %w", target[0], err)
		}
		all = append(all, found...)
	}
	return verdict(all, reasons)
}

// read gives the reasons by ID.
func read(text string) (map[string]string, error) {
	reasons := map[string]string{}
	for line := range strings.Lines(text) {
		id, reason, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !strings.HasPrefix(id, "GO-") || reason == "" {
			return nil, fmt.Errorf("exceptions.tsv: want an ID, a tab and a reason, have %q", line)
		}
		reasons[id] = reason
	}
	return reasons, nil
}

// finding is a vulnerability in a package.
type finding struct{ id, in, fixed string }

// findings are the packages with a vulnerability, one for each vulnerability. govulncheck also lists modules of which no such package is linked.
func findings(output io.Reader) ([]finding, error) {
	var list []finding
	for stream := json.NewDecoder(output); ; {
		var message struct {
			Finding *struct {
				OSV          string `json:"osv"`
				FixedVersion string `json:"fixed_version"`
				Trace        []struct {
					Version, Package string
				} `json:"trace"`
			} `json:"finding"`
		}
		if err := stream.Decode(&message); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		f := message.Finding
		if f == nil || len(f.Trace) == 0 || f.Trace[0].Package == "" {
			continue
		}
		if slices.ContainsFunc(list, func(c finding) bool { return c.id == f.OSV && c.fixed == f.FixedVersion }) {
			continue
		}
		list = append(list, finding{f.OSV, f.Trace[0].Package + "@" + f.Trace[0].Version, f.FixedVersion})
	}
}

// verdict is an error for each vulnerability without a reason, and for each reason without a vulnerability.
func verdict(all []finding, reasons map[string]string) error {
	var errs []error
	found := map[string]bool{}
	for _, c := range all {
		if _, is := reasons[c.id]; !is && !found[c.id] {
			errs = append(errs, fmt.Errorf("%s: %s is linked; fixed in %s: https://pkg.go.dev/vuln/%s", c.id, c.in, c.fixed, c.id))
		}
		found[c.id] = true
	}
	for id, reason := range reasons {
		// A newer Go has no vulnerability of an older one, and both may build this.
		if !found[id] && !strings.HasPrefix(reason, "Go: ") {
			errs = append(errs, fmt.Errorf("exceptions.tsv: %s is not found any more: remove it", id))
		}
	}
	return errors.Join(errs...)
}
