// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node is the inside of the cluster's node: the first process of its namespaces, which mounts, connects, starts
// and restarts everything in it. When this process ends, the kernel ends all of the node.
package node

import (
	"encoding/json"
	"fmt"
	"os"
)

// Plan says what the first process must do.
type Plan struct {
	Hostname string
	// State is the folder of all that outlives the node's processes.
	State string
	Link  Link
	// Path is the programs' search path.
	Path string
	// Before are run one after the other, to their end, before anything else.
	Before []Program
	// Daemons are started together and again whenever one ends.
	Daemons []Program
}

// Link is the node's network link.
type Link struct {
	Name    string
	Address string // with prefix length
	Gateway string
}

// Program is one process.
type Program struct {
	Name      string
	Path      string
	Arguments []string
	// After, if not empty, is the TCP address that must accept connections before the program is started.
	After string
}

// Save writes the plan for the first process to read.
func (p Plan) Save(path string) error {
	content, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return nil
}

// LoadPlan reads a saved plan.
func LoadPlan(path string) (Plan, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	var p Plan
	if err := json.Unmarshal(content, &p); err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", path, err)
	}
	return p, nil
}
