// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/postgres"
)

// TestHistoryIsRecorded: what the watchdog of a Feature's current attempt hands in is recorded once, by whatever replica, and read back; nobody
// else's is, and nothing that is too large.
func TestHistoryIsRecorded(t *testing.T) {
	f := newFleet(t, postgres.URL(t), 2)
	project := env.Project(t)
	login := f.attempt(project, "login")
	body := func(e protocol.HistoryEntry) []byte {
		text, err := json.Marshal(e)
		f.must(err)
		return zipped(text)
	}
	first := protocol.HistoryEntry{
		Sequence: 7000, Time: time.Now().Add(-time.Minute).UTC().Truncate(time.Second), Attempt: 1, Kind: protocol.HistoryGate, Event: "Failed", Task: "form", Name: "unit", Tree: "t1",
		Duration: 1500, ExitCode: 1, Message: "exited with code 1", Text: "--- FAIL\n",
	}
	second := protocol.HistoryEntry{Sequence: 8000, Time: first.Time, Attempt: 1, Kind: protocol.HistoryTask, Event: protocol.HistoryAdded, Cause: protocol.CauseDeliveryGate, Task: protocol.GatesPrefix + "1"}
	for n, g := range append(f.gateways, f.gateways...) {
		e := first
		if n > 0 { // the first is kept
			e.Message = fmt.Sprint("time ", n)
		}
		if code := g.handInAt(t, protocol.HistoryPath, http.MethodPost, login.Token, "gzip", body(e)); code != http.StatusNoContent {
			t.Fatalf("handed in for the time %d: %d", n+1, code)
		}
	}
	asked := protocol.HistoryEntry{Sequence: 8500, Time: first.Time, Attempt: 1, Kind: protocol.HistoryReviewQuestion, Event: protocol.HistoryAsked, Task: "page", Name: protocol.SourceDesign, Text: "What is wrong?"}
	if code := f.gateways[0].handInAt(t, protocol.HistoryPath, http.MethodPost, login.Token, "gzip", body(asked)); code != http.StatusNoContent {
		t.Fatal(code)
	}
	if code := f.gateways[1].handInAt(t, protocol.HistoryPath, http.MethodPost, login.Token, "gzip", body(second)); code != http.StatusNoContent {
		t.Fatal(code)
	}
	feature := "feature=" + string(login.Feature.UID)
	short, page := first, asked
	short.Text, page.Text = "", ""
	for query, want := range map[string][]protocol.HistoryEntry{
		feature: {short, second, page}, feature + "&after=7000": {second, page}, feature + "&reviewer=Design": {asked}, feature + "&limit=1": {short}, feature + "&task=form": {short}, feature + "&entry=7000": {first},
		feature + "&task=delivery%2Fgates%2F1": {second}, feature + "&after=8500": nil,
	} {
		var got protocol.History
		if code := f.gateways[0].read(t, protocol.HistoryListPath, query, &got); code != http.StatusOK {
			t.Errorf("%s: %d", query, code)
		}
		if diff := cmp.Diff(append([]protocol.HistoryEntry{}, want...), got.Entries); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for query, want := range map[string]int{feature + "&entry=2": http.StatusNotFound, feature + "&reviewer=Assessor": http.StatusNotFound, "entry=1": http.StatusBadRequest, feature + "&entry=x": http.StatusBadRequest} {
		var got protocol.History
		if code := f.gateways[0].read(t, protocol.HistoryListPath, query, &got); code != want {
			t.Errorf("%s: %d, want %d", query, code, want)
		}
	}
	bomb := zipped(append([]byte(`{"sequence":2,"text":"`), bytes.Repeat([]byte("a"), 8<<20)...))
	for name, tc := range map[string]struct {
		token string
		body  []byte
		want  int
	}{
		"no token":  {"", body(first), http.StatusUnauthorized},
		"no number": {login.Token, zipped([]byte("{}")), http.StatusBadRequest},
		"a bomb":    {login.Token, bomb, http.StatusBadRequest},
	} {
		if code := f.gateways[0].handInAt(t, protocol.HistoryPath, http.MethodPost, tc.token, "gzip", tc.body); code != tc.want {
			t.Errorf("%s: %d, want %d", name, code, tc.want)
		}
	}
}
