// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
)

// runtimesPage is docs/reference/runtimes.md: what each runtime can do.
func runtimesPage(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(`# Runtimes

This page lists what each runtime can do. You choose one with ` + "`spec.agent.runtime`" + `.

The mode is that of the merged policy: global overrides, project overrides, the Feature's ` + "`spec.execution.mode`" + `, project defaults,
global defaults, ` + "`Interactive`" + `. A runtime that cannot run Interactive falls back to Deterministic, and the condition ` + "`Accepted`" + ` says so.
No runtime falls back from Deterministic to Interactive.
In Deterministic mode, every agent reads what is wrong in the results of its tools.
In Interactive mode, some agents have [tools to ask users and to report](../tasks/answer-a-question.md) in addition to their own.

| runtime | available | Interactive | Deterministic | asks in Interactive mode | reads messages as | paused by | |
|---|---|---|---|---|---|---|---|
`)
	word := map[bool]string{true: "yes", false: "no"}
	for _, r := range runtimes.All() {
		name := "`" + r.Name + "`"
		if r.Available {
			name = fmt.Sprintf("[%s](runtimes/%s.md)", name, r.Name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n",
			name, word[r.Available], word[r.Interactive], word[r.Deterministic], word[r.MCP], r.Channel, r.Pause, r.Doc)
	}
	return []byte(b.String()), nil
}
