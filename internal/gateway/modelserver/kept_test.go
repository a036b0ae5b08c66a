// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/conversation"
)

// TestShortAnswersHoldLittle: what is held for an answer that is recorded grows with it, so that many streams may be open that have said little.
func TestShortAnswersHoldLittle(t *testing.T) {
	s := New(Options{Limits: Limits{Memory: 64 << 20}, Now: time.Now})
	answer := turn{held: holding{server: s, feature: "shop/form"}, most: 1 << 20, reader: conversation.NewReader(nil, false)}
	for part := make([]byte, 1<<10); len(answer.raw) < 512<<10; {
		answer.see(part)
		has, held := int64(len(answer.raw)), answer.held.amount
		if want := has * keptTimes; held < want || held > max(2*want, leastKept*keptTimes) {
			t.Fatalf("%d bytes are held for %d of an answer", held, has)
		}
	}
}
