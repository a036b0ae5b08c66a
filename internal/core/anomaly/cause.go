// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// patient is how long a client may wait after a call that has failed. One that asks nothing for longer hangs.
const patient = time.Hour

// cause of what is wrong with a thread: protocol.CauseProvider while its model calls fail and that is not the agent's fault, else "". That one call
// fails says nothing: it happens now and then.
func (t *Thread) cause(now time.Time) string {
	f := t.Failing.Failure
	if failures.Excuses(f) && f.Calls > 1 && now.Sub(t.Failing.At) < patient {
		return protocol.CauseProvider
	}
	return ""
}
