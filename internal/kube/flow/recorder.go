// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// maxNote bounds the note of an Event in bytes: the API server refuses a longer one
// (k8s.io/kubernetes/pkg/apis/core/validation, NoteLengthLimit), and the Event is then lost without a word.
const maxNote = 1024

// Recorder sends Events that the API server takes: a note that is too long is cut, and says so.
type Recorder struct {
	Inner events.EventRecorder
}

// Eventf sends an Event.
func (r Recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	r.Inner.Eventf(regarding, related, kind, reason, action, "%s", plain.CutBytes(fmt.Sprintf(note, args...), maxNote))
}
