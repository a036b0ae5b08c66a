// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle decides what happens next to a Feature. Next is a pure function of what is observed, and its only memory is the status.
// So a crash between any two effects, a repeated event or a stale cache leads to the same end.
//
// Next decides in three stages, each a function of the ones before it. A situation is what Next observes, and the memory with what the
// facts add to it. A plan says what to do, and conditions what to report. A plan may lack a fact; the decision then names it (see Need),
// and is taken again once it is gathered.
//
// Three properties carry the design and are tested as such:
//
//   - Next asks for a new Job only if a live read showed no Job and no pod of any attempt: never two agents on one
//     workspace.
//   - Next derives what was done from what it sees, never from memory: an attempt counts from the moment its Job is seen.
//   - Next decides anything that cannot be undone (a new attempt, a deletion, the end of an attempt, the choice of the one
//     pod that may report) only on live facts. On cached ones it needs live facts first (see Need).
package lifecycle
