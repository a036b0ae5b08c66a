// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/intake"
)

// shop has the Feature add-login, whose checkpoints are 1 to 7, and nothing else.
type shop struct{ client.Reader }

// Get implements client.Reader.
func (shop) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch o := o.(type) {
	case *v1alpha1.Feature:
		if key.Name == "add-login" {
			o.UID = "uid"
			o.Status.Run = &v1alpha1.RunStatus{LastCheckpoint: &v1alpha1.CheckpointSummary{Name: "add-login-7"}}
			return nil
		}
	case *v1alpha1.Checkpoint:
		o.Spec.FeatureName, o.Spec.Sequence = "add-login", 3
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "features"}, key.Name)
}

// record is a ledger; asked is the last question.
type record struct {
	changes map[string]protocol.Changes
	events  []protocol.FileEvent
	steps   []protocol.SteeringStep
	entries []protocol.HistoryEntry
	err     error
	asked   url.Values
}

// Turns implements Ledger.
func (r *record) Turns(_ context.Context, query url.Values) ([]protocol.Turn, error) {
	r.asked = query
	return nil, r.err
}

// Changes implements Ledger.
func (r *record) Changes(_ context.Context, query url.Values) (protocol.Changes, error) {
	r.asked = query
	c, is := r.changes[query.Get("feature")+" "+query.Get("checkpoint")]
	if r.err == nil && !is {
		return c, ErrNotRecorded
	}
	return c, r.err
}

// Events implements Ledger.
func (r *record) Events(_ context.Context, query url.Values) ([]protocol.FileEvent, error) {
	r.asked = query
	return r.events, r.err
}

// Steering implements Ledger.
func (r *record) Steering(_ context.Context, query url.Values) ([]protocol.SteeringStep, error) {
	r.asked = query
	return r.steps, r.err
}

// History implements Ledger.
func (r *record) History(_ context.Context, query url.Values) ([]protocol.HistoryEntry, error) {
	r.asked = query
	return r.entries, r.err
}

// TestDiffsOfTheLedger: what the ledger has is answered from it, and the trusted volume is asked for everything else.
func TestDiffsOfTheLedger(t *testing.T) {
	const ofCheckpoint = base + "/namespaces/shop/checkpoints/add-login-3/diff"
	whole := func(n, previous int64) protocol.Changes {
		return protocol.Changes{Checkpoint: n, Previous: previous, Verdict: "Valid", Action: "Promoted", Patch: "+from the ledger\n"}
	}
	part := whole(5, 4)
	part.Missing = "1 files of more than 1024 KiB"
	const fromVolume = "from the volume"
	told := func(n, before string) string {
		return "checkpoint " + n + ": Valid, Promoted; compared with " + before + "\n+from the ledger\n"
	}
	for name, tc := range map[string]struct {
		target string
		fails  error // of the ledger
		gone   bool  // the volume
		want   string
		asked  protocol.Inquiry
	}{
		"a checkpoint":                      {ofCheckpoint, nil, true, told("3", "checkpoint 1"), protocol.Inquiry{}},
		"since the one before":              {ofCheckpoint + "?from=1", nil, true, told("3", "checkpoint 1"), protocol.Inquiry{}},
		"since another":                     {ofCheckpoint + "?from=2", nil, false, fromVolume, protocol.Inquiry{Kind: "diff", From: 2, To: 3}},
		"since the base":                    {ofCheckpoint + "?from=base", nil, false, fromVolume, protocol.Inquiry{Kind: "diff", Base: true, To: 3}},
		"to apply":                          {ofCheckpoint + "?patch=true", nil, false, fromVolume, protocol.Inquiry{Kind: "diff", Patch: true, To: 3}},
		"the newest":                        {ofFeature + "diff", nil, true, told("7", "checkpoint 6"), protocol.Inquiry{}},
		"the first, since the base":         {ofFeature + "diff?to=1&from=base", nil, true, told("1", "the base"), protocol.Inquiry{}},
		"one that the ledger lacks":         {ofFeature + "diff?to=2", nil, false, fromVolume, protocol.Inquiry{Kind: "diff", To: 2}},
		"a ledger that is away":             {ofFeature + "diff?to=3", errors.New("away"), false, fromVolume, protocol.Inquiry{Kind: "diff", To: 3}},
		"a part, and the volume has it":     {ofFeature + "diff?to=5", nil, false, fromVolume, protocol.Inquiry{Kind: "diff", To: 5}},
		"a part, and the volume is gone":    {ofFeature + "diff?to=5", nil, true, told("5", "checkpoint 4") + "\ntidewaiter: this diff is not complete: 1 files of more than 1024 KiB\n", protocol.Inquiry{}},
		"a Feature that is not in the shop": {strings.Replace(ofFeature, "add-login", "other", 1) + "diff", nil, false, fromVolume, protocol.Inquiry{Kind: "diff"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t)
			r.options.Live = shop{}
			r.options.Ledger = &record{err: tc.fails, changes: map[string]protocol.Changes{"uid 1": whole(1, 0), "uid 3": whole(3, 1), "uid 5": part, "uid 7": whole(7, 6)}}
			if r.asker.answer = says(fromVolume, ""); tc.gone {
				r.asker.answer, r.asker.err = nil, intake.ErrGone
			}
			got := r.do(r.request(http.MethodGet, tc.target))
			if got.Code != http.StatusOK || got.Body.String() != tc.want || got.Header().Get("Cache-Control") != "no-store" || got.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%d %q %v, want %q", got.Code, got.Body, got.Header(), tc.want)
			}
			if tc.gone { // it is asked for what the ledger has a part of, and gives nothing
				return
			}
			if diff := cmp.Diff(tc.asked, r.asker.q); diff != "" {
				t.Errorf("asked of the volume (-want +got):\n%s", diff)
			}
		})
	}
	r := newHarness(t)
	r.options.Live, r.options.Ledger = shop{}, &record{}
	r.asker.err = intake.ErrGone
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"diff?to=3")), http.StatusGone, metav1.StatusReasonGone, "volume of this Feature is gone")
}

// TestEvents: file events of the ledger, for programs and for people.
func TestEvents(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	events := []protocol.FileEvent{
		{Sequence: 7000001, CaptureTime: at, Checkpoint: 7, Type: protocol.ChangeAdd, Path: "web/login.html", Size: 12, Mode: 0o100644},
		{Sequence: 7000002, CaptureTime: at, Checkpoint: 7, Type: protocol.ChangeOmitted, Count: 5},
	}
	r := newHarness(t)
	ledger := &record{events: events}
	r.options.Live, r.options.Ledger = shop{}, ledger
	got := r.do(r.request(http.MethodGet, ofFeature+"events?after=6000003&limit=2"))
	var list protocol.FileEvents
	if err := json.Unmarshal(got.Body.Bytes(), &list); err != nil || got.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%v %v %s", err, got.Header(), got.Body)
	}
	if diff := cmp.Diff(events, list.Events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(url.Values{"feature": {"uid"}, "after": {"6000003"}, "limit": {"2"}}, ledger.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	got = r.do(r.request(http.MethodGet, ofFeature+"events?output=text"))
	const want = `EVENT    TIME                  CHECKPOINT   TYPE     SIZE  PATH
7000001  2026-02-03T04:05:06Z  add-login-7  add      12    web/login.html
7000002  2026-02-03T04:05:06Z  add-login-7  omitted  0     (5 more files)
`
	if diff := cmp.Diff(want, got.Body.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const bad = metav1.StatusReasonBadRequest
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"events?after=-1")), 400, bad, `after: "-1" is not a number of 0 or more`)
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"events?turn=1")), 400, bad, `"turn" is not known here: use after, limit, output`)
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"events?output=yaml")), 400, bad, "json or text")
	wantStatus(t, r.do(r.request(http.MethodGet, strings.Replace(ofFeature, "add-login", "other", 1)+"events")), 404, metav1.StatusReasonNotFound, `"other" not found`)
	ledger.err = errors.New("the password is secret")
	unavailable := r.do(r.request(http.MethodGet, ofFeature+"events"))
	wantStatus(t, unavailable, 503, metav1.StatusReasonServiceUnavailable, "cannot read the gateway's ledger at the moment")
	if strings.Contains(unavailable.Body.String(), "password") {
		t.Error("an error of ours is told to everybody")
	}
	ledger.err = ErrNotRecorded
	wantStatus(t, r.do(r.request(http.MethodGet, ofFeature+"turns?call=9")), 404, metav1.StatusReasonNotFound, "the Feature add-login has no call 9")
}
