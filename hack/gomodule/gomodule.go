// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gomodule takes files from pinned Go modules that nothing links.
package gomodule

import (
	"encoding/json"
	"fmt"
	"os/exec"
)

// Download has the go command fetch and verify a module, and gives its directory in the module cache. sum is the one of go.sum, which begins with h1:.
func Download(module, version, sum string) (dir string, err error) {
	out, err := exec.Command("go", "mod", "download", "-json", module+"@"+version).Output()
	if err != nil {
		return "", fmt.Errorf("download %s %s: %w", module, version, err)
	}
	var got struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &got); err != nil {
		return "", fmt.Errorf("download %s: %w", module, err)
	}
	if got.Sum != sum {
		return "", fmt.Errorf("%s %s has the sum %s, not %s", module, version, got.Sum, sum)
	}
	return got.Dir, nil
}
