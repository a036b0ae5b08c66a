// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// cascade is different tools that fail one after the other: what they share is wrong, such as the directory. A tool that has succeeded
// since does not count, and calls of a single turn do not count either: when one of them fails, clients give up the others.
var cascade = detector{
	name: Cascade, kind: CascadeFailure,
	doc:    "Different tools fail one after the other: what they share is wrong, such as the directory.",
	advice: always("Stop and verify the working directory, the paths and the environment before you continue."),
	look: func(l look) sight {
		const window = 5
		steps := l.t.Steps[max(0, len(l.t.Steps)-window):]
		tools, turns := failing(steps, func(x step) string { return x.Tool })
		if len(tools) < l.r.Cascade {
			// Programs of a shell count as different tools if none has succeeded. A search without a result is not a failure.
			if len(steps) == window && !slices.ContainsFunc(steps, func(x step) bool { return x.Failure == conversation.FailureNone || x.Bare || x.Waits }) {
				tools, turns = failing(steps, func(x step) string { return cmp.Or(x.Program, x.Tool) })
			}
		}
		slices.Sort(tools)
		v := sight{lasts: len(tools) >= l.r.Cascade-1 && len(tools) > 1, count: len(tools)}
		if len(tools) >= l.r.Cascade && turns > 1 {
			v.tier = Warn
			return v.says("%d different tools have failed within the last %d calls (%s)", len(tools), window, strings.Join(tools, ", "))
		}
		return v
	},
}

// failing tools, by what is one, that have not succeeded since; and in how many turns they have failed.
func failing(steps []step, by func(x step) string) (tools []string, turns int) {
	var decided []string
	in := map[int64]bool{}
	for _, x := range slices.Backward(steps) {
		if x.Failure == conversation.FailureDenied { // each has a rule of its own: what they share is not the directory
			continue
		}
		if slices.Contains(decided, by(x)) {
			continue
		}
		decided = append(decided, by(x))
		if x.Failure != conversation.FailureNone {
			tools, in[x.Turn] = append(tools, by(x)), true
		}
	}
	return tools, len(in)
}
