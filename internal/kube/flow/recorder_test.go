// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// TestALongNoteIsCut: the API server would refuse the Event.
func TestALongNoteIsCut(t *testing.T) {
	fake := events.NewFakeRecorder(2)
	r := Recorder{Inner: fake}
	r.Eventf(&corev1.Pod{}, nil, "Normal", "Reason", "Act", "%s", strings.Repeat("ü", 1000))
	note := strings.TrimPrefix(<-fake.Events, "Normal Reason ")
	if len(note) > 1024 || len(note) < 1000 || !utf8.ValidString(note) || !strings.HasSuffix(note, "…") {
		t.Errorf("a note of %d bytes: %q", len(note), note)
	}
	r.Eventf(&corev1.Pod{}, nil, "Normal", "Reason", "Act", "100%% of %s", "%d")
	if got := <-fake.Events; got != "Normal Reason 100% of %d" {
		t.Errorf("a short note is %q", got)
	}
}
