// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"time"
)

// provider is a model call that the client repeats and that nobody answers. Clients try again for some minutes by themselves; what
// will be answered in the same way for ever, such as a key that is refused, they should not try again at all.
var provider = detector{
	name: Provider, kind: AgentStalled,
	doc:    "The agent calls a model again and again, and nobody answers.",
	advice: always(reassess),
	look: func(l look) sight {
		const (
			passing = 2 * time.Minute
			tries   = 12
		)
		n := max(l.t.Errors, l.t.Asks)
		if l.t.Troubled.IsZero() || l.t.Permanent < 2*l.r.Loop && (n < tries || l.now.Sub(l.t.Troubled) < passing) {
			return sight{}
		}
		status := ""
		if l.t.Status != 0 {
			status = fmt.Sprintf(", the last time with status %d", l.t.Status)
		}
		return sight{tier: Warn, mute: true, count: n, evidence: fmt.Sprintf("%d model calls in a row were in vain%s", n, status)}
	},
}
