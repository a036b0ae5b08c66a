// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import "time"

// PauseRequest asks an agent to reach a good point and to say so before the freeze.
type PauseRequest struct {
	Type         string `json:"type"`
	CheckpointID string `json:"checkpoint_id"`
	Reason       string `json:"reason"`
	TimeoutMS    int64  `json:"timeout_ms"`
}

// Resume says that the pause is over.
type Resume struct {
	Type         string `json:"type"`
	CheckpointID string `json:"checkpoint_id"`
}

// Pause asks for a pause before a checkpoint; the watchdog waits for the answer for the given time. After says that the pause is over.
func Pause(checkpoint string, within time.Duration) (ask PauseRequest, after Resume) {
	ask = PauseRequest{Type: "pause_request", CheckpointID: checkpoint, Reason: "checkpoint_validation", TimeoutMS: within.Milliseconds()}
	return ask, Resume{Type: "resume", CheckpointID: checkpoint}
}
