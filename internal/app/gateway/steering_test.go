// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/postgres"
)

// TestSteeringIsRecorded: what the watchdog of a Feature's current attempt hands in is recorded once and read back, with the call in whose
// request it was decided; nobody else's is, and nothing that is too large.
func TestSteeringIsRecorded(t *testing.T) {
	f := newFleet(t, postgres.URL(t), 2)
	project := env.Project(t)
	login := f.attempt(project, "login")
	const asked = `{"model":"steered","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`
	f.until("a call is recorded", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+f.gateways[0].address+"/anthropic/v1/messages", strings.NewReader(asked))
		f.must(err)
		request.Header.Set("Authorization", "Bearer "+login.Token)
		request.Header.Set("Content-Type", "application/json")
		client := f.gateways[0].client(t)
		defer client.CloseIdleConnections()
		if answer, err := client.Do(request); err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			f.must(errors.Join(err, answer.Body.Close()))
		}
		return len(f.turns(login.Feature)) > 0
	})
	calls := f.turns(login.Feature)
	digest := sha256.Sum256([]byte(asked))
	if len(calls) == 0 || calls[0].RequestDigest != hex.EncodeToString(digest[:]) {
		t.Fatalf("%+v", calls)
	}
	body := func(s protocol.SteeringStep) []byte {
		text, err := json.Marshal(s)
		f.must(err)
		return zipped(text)
	}
	first := protocol.SteeringStep{
		Sequence: 1, Time: calls[0].EndTime.Add(-time.Second).Truncate(time.Second), Attempt: 1, Task: "form", Thread: 1, Turn: 7, Request: calls[0].RequestDigest,
		Anomaly: "AgentLooping", Detector: "same-failure", Evidence: "it has failed 3 times", Rung: "Surgery", Message: "[SUPERVISOR] Stop.",
		Channel: protocol.ChannelRequest, Before: "[1]", After: "tried",
	}
	for n, g := range append(f.gateways, f.gateways...) {
		s := first
		if n > 0 { // the first is kept
			s.Evidence = fmt.Sprint("time ", n)
		}
		if code := g.handInAt(t, protocol.SteeringPath, http.MethodPost, login.Token, "gzip", body(s)); code != http.StatusNoContent {
			t.Fatalf("handed in for the time %d: %d", n+1, code)
		}
	}
	feature := "feature=" + string(login.Feature.UID)
	want := first
	want.Call = calls[0].Sequence
	var got protocol.SteeringSteps
	if code := f.gateways[1].read(t, protocol.SteeringListPath, feature+"&step=1", &got); code != http.StatusOK || len(got.Steps) != 1 {
		t.Fatalf("%d %+v", code, got)
	}
	if diff := cmp.Diff(want, got.Steps[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.Before, want.After, got = "", "", protocol.SteeringSteps{}
	if code := f.gateways[0].read(t, protocol.SteeringListPath, feature, &got); code != http.StatusOK || !cmp.Equal([]protocol.SteeringStep{want}, got.Steps) {
		t.Errorf("%d %+v", code, got)
	}
	if code := f.gateways[0].read(t, protocol.SteeringListPath, feature+"&after=1", &got); code != http.StatusOK || len(got.Steps) != 0 {
		t.Errorf("after the last: %d %+v", code, got)
	}
	for query, want := range map[string]int{feature + "&step=2": http.StatusNotFound, "step=1": http.StatusBadRequest, feature + "&step=x": http.StatusBadRequest} {
		if code := f.gateways[0].read(t, protocol.SteeringListPath, query, &got); code != want {
			t.Errorf("%s: %d, want %d", query, code, want)
		}
	}
	bomb := zipped(append([]byte(`{"sequence":2,"before":"`), bytes.Repeat([]byte("a"), 64<<20)...))
	for name, tc := range map[string]struct {
		token string
		body  []byte
		want  int
	}{
		"no token":         {"", body(first), http.StatusUnauthorized},
		"another audience": {attempt.Token(t, env, login.Pod), body(first), http.StatusUnauthorized},
		"no number":        {login.Token, zipped([]byte("{}")), http.StatusBadRequest},
		"a bomb":           {login.Token, bomb, http.StatusBadRequest},
	} {
		if code := f.gateways[0].handInAt(t, protocol.SteeringPath, http.MethodPost, tc.token, "gzip", tc.body); code != tc.want {
			t.Errorf("%s: %d, want %d", name, code, tc.want)
		}
	}
}
