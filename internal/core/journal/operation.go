// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

// Recall says whether the agent asked for an operation before.
type Recall string

// Recalls.
const (
	// RecallNew: the id was never used in this task.
	RecallNew Recall = "new"
	// RecallReplay: the agent asked for the same with the same id, and gets the same answer as then.
	RecallReplay Recall = "replay"
	// RecallMismatch: the id was used for something else.
	RecallMismatch Recall = "mismatch"
)

// Recall looks an operation up, by its id and the sum of its patch. The operation is that of a replay.
func (t Task) Recall(id, patch string) (Operation, Recall) {
	o, known := t.Operations[id]
	switch {
	case !known:
		return Operation{}, RecallNew
	case o.Patch != patch:
		return Operation{}, RecallMismatch
	}
	return o, RecallReplay
}
