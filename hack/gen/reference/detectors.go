// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/anomaly"
)

// detectorsPage is docs/reference/detectors.md: what is recognised of an agent that is in trouble.
func detectorsPage(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(`# Detectors

What the watchdog recognises in an agent's conversation, files and processes. Each detector finds one thing, which sets a condition of the
Feature; ` + "`features/steering`" + ` names the detector. Of several that find the same in a conversation, the gravest counts, and of those the first
one here. The last column is what the agent is told to do, at first, after what was seen. Where a tool is called again, the words go by what the
tool is for: files, commands, searches or the web. ` + "`PaceEscalated`" + ` follows from the others where the agent has a role, and its words are those of
the plan of the role.

| detector | condition | finds | the agent is told |
|---|---|---|---|
`)
	for _, d := range anomaly.Detectors() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", d.Name, d.Kind, d.Doc, d.Advice)
	}
	return []byte(b.String()), nil
}
