// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command reference writes the pages of docs/reference that are made from code. It runs in the checkout's root.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// page is one file of docs/reference.
type page struct {
	name string
	// render makes the page from the sources below root, or from the packages that this program is linked with.
	render func(root string) ([]byte, error)
}

// pages lists what is generated; a new page is a line here.
func pages() []page {
	return append([]page{
		{"conditions.md", conditionsPage},
		{"detectors.md", detectorsPage},
		{"failures.md", failuresPage},
		{"flags.md", flagsPage},
		{"metrics.md", metricsPage},
		{"policy.md", policyPage},
		{"preflight.md", preflightPage},
		{"provider-tools.md", providerToolsPage},
		{"rules.md", rulesPage},
		{"runtimes.md", runtimesPage},
	}, apiPages()...)
}

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// write makes every page and leaves files alone whose content is right.
func write(root string) error {
	for _, p := range pages() {
		content, err := p.render(root)
		if err != nil {
			return fmt.Errorf("make %s: %w", p.name, err)
		}
		path := pagePath(root, p)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make %s: %w", p.name, err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", p.name, err)
		}
	}
	return nil
}

func pagePath(root string, p page) string { return filepath.Join(root, "docs", "reference", p.name) }
