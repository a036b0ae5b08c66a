// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// failuresPage is docs/reference/failures.md: who is to blame for a failed model call.
func failuresPage(string) ([]byte, error) {
	var b strings.Builder
	b.WriteString(`<!-- Made from internal/core/failures by ` + "`make reference`" + `. Do not edit. -->
# Failed model calls

An agent that ends with an error after failed model calls may not be at fault. The watchdog looks at the calls since the last good answer. The attempt
ends with the reason ` + "`ProviderUnavailable`" + ` if there is at least one, none of them is of the class ` + "`Agent`" + `, and the last one failed at most ` + fmt.Sprintf("%d minutes", int(failures.Recent.Minutes())) + ` before the agent ended.
The class is that of the last call. Calls of the class ` + "`Budget`" + ` and calls that the agent gives up do not count.

| Class | Who is to blame | What follows |
|---|---|---|
`)
	for _, row := range [][3]string{
		{protocol.FailureProvider, "the provider, or the account there", "the Feature spends no retry; the next attempt follows after 30 s, then 1, 2, 4, 8 and 10 minutes"},
		{protocol.FailureInfrastructure, "Tidewaiter or the cluster", "the same"},
		{protocol.FailurePolicy, "the configuration of policies and backends", "the same, and at once when the policy or the configuration of backends changes"},
		{protocol.FailureBudget, "a budget", "the watchdog holds the call and freezes the agent until there is more"},
		{protocol.FailureAgent, "the agent", "the Feature spends a retry"},
	} {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row[0], row[1], row[2])
	}
	b.WriteString(`
After 51 such attempts in a row, which is some eight hours, the Feature is ` + "`Blocked`" + ` until a user requests a retry. The pauses do not count towards ` + "`spec.activeDeadline`" + `, but the
running time of the attempts does. ` + "`status.unserved`" + ` has the count, and the message of the condition ` + "`Succeeded`" + ` says when the next attempt starts.

| Reason or status | Class | Meaning | What to do |
|---|---|---|---|
`)
	for _, r := range failures.Rows() {
		name := "`" + r.Reason + "`"
		switch {
		case r.Reason == "" && r.First == r.Last:
			name = fmt.Sprintf("status %d of the provider", r.First)
		case r.Reason == "":
			name = fmt.Sprintf("other status from %d to %d of the provider", r.First, r.Last)
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", name, r.Class, r.Meaning, r.Fix)
	}
	return []byte(b.String()), nil
}
