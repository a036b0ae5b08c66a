// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
)

// detectorsPage is docs/reference/detectors.md: how the watchdog recognises an agent that is in trouble.
func detectorsPage(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(`# Detectors

This page lists what the watchdog recognises in an agent's conversation, files and processes. Each detector finds one thing, which sets a condition of the
Feature; ` + "`features/steering`" + ` names the detector. If several find the same in a conversation, the gravest counts, and at equal gravity the first
one here. The last column is what the watchdog first tells the agent to do, after what it saw. If the agent repeats a tool call, the text depends on what the
tool is for: files, commands, searches or the web. ` + "`PaceEscalated`" + ` follows from the others if the agent has a role, with the text of
the plan of the role.

| Detector | Condition | Finds | What the watchdog tells the agent |
|---|---|---|---|
`)
	for _, d := range anomaly.Detectors() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", d.Name, d.Kind, d.Doc, d.Advice)
	}
	return []byte(b.String()), nil
}
