// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/kube/flow"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
)

// TestALongNoteKeepsItsEvent: the API server takes 1,024 bytes of a note, and refuses the Event of a longer one.
func TestALongNoteKeepsItsEvent(t *testing.T) {
	set, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: set.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer broadcaster.Shutdown()
	f := attempt.Feature(t, env, env.Project(t), "login")
	recorder := flow.Recorder{Inner: broadcaster.NewRecorder(env.Scheme, "tidewaiter")}
	recorder.Eventf(f, nil, "Warning", "CheckpointInvalid", "Reconcile", "%s", strings.Repeat("€", 2000))
	var list eventsv1.EventList
	until(t, "the Event is stored", func() bool {
		return env.Client.List(t.Context(), &list, client.InNamespace(f.Namespace)) == nil && len(list.Items) > 0
	})
	if note := list.Items[0].Note; len(note) > 1024 || !strings.HasSuffix(note, "…") {
		t.Errorf("a note of %d bytes: %q", len(note), note)
	}
}
