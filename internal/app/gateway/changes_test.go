// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/ledger"
	"github.com/tidewaiter/tidewaiter/internal/testkit/attempt"
	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
	"github.com/tidewaiter/tidewaiter/internal/testkit/postgres"
)

// zipped is a text in gzip.
func zipped(text []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(text)
	_ = w.Close()
	return packed.Bytes()
}

// handIn changes as a watchdog does, and gives the status.
func (g *gateway) handIn(t *testing.T, method, token, encoding string, body []byte) int {
	t.Helper()
	return g.handInAt(t, protocol.ChangesPath, method, token, encoding, body)
}

// handInAt a path.
func (g *gateway) handInAt(t *testing.T, path, method, token, encoding string, body []byte) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+g.address+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Encoding", encoding)
	client := g.client(t)
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// read something of the ledger as a manager does.
func (g *gateway) read(t *testing.T, path, query string, to any) int {
	t.Helper()
	code, text := g.asked(t, protocol.ManagerAccount, protocol.LedgerAudience, path, query)
	if code == http.StatusOK {
		if err := json.Unmarshal(text, to); err != nil {
			t.Fatal(err)
		}
	}
	return code
}

// TestChangesAreRecorded: what the watchdog of a Feature's current attempt hands in is recorded once and read back; nobody else's is,
// and nothing that is too large.
func TestChangesAreRecorded(t *testing.T) {
	f := newFleet(t, postgres.URL(t), 2)
	project := env.Project(t)
	login := f.attempt(project, "login")
	body := func(c protocol.Changes) []byte {
		text, err := json.Marshal(c)
		f.must(err)
		return zipped(text)
	}
	first := protocol.Changes{
		Checkpoint: 1, At: time.Now().UTC().Truncate(time.Second), Task: "form", Verdict: "Valid", Action: "Promoted", Files: 1,
		Listed: []protocol.FileChange{{Type: protocol.ChangeAdd, Path: "web/login.html", Size: 7, Mode: 0o100644}}, Patch: "+<form>\n",
	}
	for n, g := range append(f.gateways, f.gateways...) {
		c := first
		c.Task = fmt.Sprint("form", n) // the first is kept
		if n == 0 {
			c = first
		}
		if code := g.handIn(t, http.MethodPost, login.Token, "gzip", body(c)); code != http.StatusNoContent {
			t.Fatalf("handed in for the time %d: %d", n+1, code)
		}
	}
	feature := "feature=" + string(login.Feature.UID)
	var got protocol.Changes
	for _, query := range []string{feature, feature + "&checkpoint=1"} {
		if code := f.gateways[1].read(t, protocol.CheckpointPath, query, &got); code != http.StatusOK || got.Task != "form" || got.Patch != first.Patch || !got.At.Equal(first.At) {
			t.Errorf("%s: %d %+v", query, code, got)
		}
	}
	var events protocol.FileEvents
	if code := f.gateways[1].read(t, protocol.EventsPath, feature, &events); code != http.StatusOK || len(events.Events) != 1 || events.Events[0].Path != "web/login.html" {
		t.Errorf("%d %+v", code, events)
	}
	if code := f.gateways[1].read(t, protocol.EventsPath, feature+fmt.Sprint("&after=", events.Events[0].Sequence), &events); code != http.StatusOK || len(events.Events) != 0 {
		t.Errorf("after the last: %d %+v", code, events)
	}
	for query, want := range map[string]int{feature + "&checkpoint=2": http.StatusNotFound, "checkpoint=1": http.StatusBadRequest, feature + "&checkpoint=x": http.StatusBadRequest} {
		if code := f.gateways[0].read(t, protocol.CheckpointPath, query, &got); code != want {
			t.Errorf("%s: %d, want %d", query, code, want)
		}
	}
	bomb := zipped(append([]byte(`{"checkpoint":2,"patch":"`), bytes.Repeat([]byte("a"), 64<<20)...))
	for name, tc := range map[string]struct {
		method, token, encoding string
		body                    []byte
		want                    int
	}{
		"read":                       {http.MethodGet, login.Token, "gzip", nil, http.StatusMethodNotAllowed},
		"no token":                   {http.MethodPost, "", "gzip", body(first), http.StatusUnauthorized},
		"another audience":           {http.MethodPost, attempt.Token(t, env, login.Pod), "gzip", body(first), http.StatusUnauthorized},
		"not packed":                 {http.MethodPost, login.Token, "", []byte(`{"checkpoint":2}`), http.StatusBadRequest},
		"no gzip":                    {http.MethodPost, login.Token, "gzip", []byte(`{"checkpoint":2}`), http.StatusBadRequest},
		"no JSON":                    {http.MethodPost, login.Token, "gzip", zipped([]byte("checkpoint 2")), http.StatusBadRequest},
		"no checkpoint":              {http.MethodPost, login.Token, "gzip", zipped([]byte("{}")), http.StatusBadRequest},
		"a bomb":                     {http.MethodPost, login.Token, "gzip", bomb, http.StatusBadRequest},
		"a body that is large as is": {http.MethodPost, login.Token, "gzip", append(zipped(nil), make([]byte, 5<<20)...), http.StatusBadRequest},
	} {
		if code := f.gateways[0].handIn(t, tc.method, tc.token, tc.encoding, tc.body); code != tc.want {
			t.Errorf("%s: %d, want %d", name, code, tc.want)
		}
	}
	f.must(login.Delete(t.Context()))
	next := attempt.Start(t, env, login.Feature)
	f.until("the next attempt is known", func() bool { _, err := f.gateways[0].allowance(t, next.Token); return err == nil })
	f.until("the pod of an earlier attempt is refused", func() bool {
		return f.gateways[0].handIn(t, http.MethodPost, login.Token, "gzip", body(first)) == http.StatusUnauthorized
	})
}

// TestRetentionByPolicy: what is kept of a Feature is what its policy says when records are removed; of one that is gone, what it
// said last; and a record begins with what the policy says.
func TestRetentionByPolicy(t *testing.T) {
	project := env.Project(t)
	policy := &v1alpha1.SupervisorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "short"}, Spec: v1alpha1.SupervisorPolicySpec{
		Defaults: &v1alpha1.Rules{Retention: &v1alpha1.RetentionRules{LedgerPeriod: &metav1.Duration{Duration: 2 * time.Hour}}},
	}}
	if err := env.Client.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	database := "sqlite://" + filepath.Join(t.TempDir(), "ledger.db")
	f := newFleet(t, database, 1)
	login := f.attempt(project, "login")
	old, recent := time.Now().Add(-90*time.Minute), time.Now()
	for n, at := range []time.Time{old, recent} {
		text, err := json.Marshal(protocol.Changes{Checkpoint: int64(n + 1), At: at})
		f.must(err)
		if code := f.gateways[0].handIn(t, http.MethodPost, login.Token, "gzip", zipped(text)); code != http.StatusNoContent {
			t.Fatal(code)
		}
	}
	f.gateways[0].End(t)
	l, err := ledger.Open(t.Context(), ledger.Options{URL: database, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	f.must(err)
	defer l.Close()
	owners := func() []ledger.Owner {
		t.Helper()
		list, err := l.Owners(t.Context(), "")
		f.must(err)
		return list
	}
	if have := owners(); len(have) != 1 || have[0].Feature != "login" || have[0].Namespace != project || have[0].Keep != 2*time.Hour {
		t.Errorf("%+v", have)
	}
	r := retention{pods: &pods{objects: env.Client, systemNamespace: kubetest.SystemNamespace}, log: slog.New(slog.DiscardHandler)}
	f.must(r.round(t.Context(), l))
	if _, err := l.Checkpoints().Changes(t.Context(), string(login.Feature.UID), 1); err != nil {
		t.Errorf("removed too early: %v", err)
	}
	policy.Spec.Defaults.Retention.LedgerPeriod.Duration = time.Hour
	f.must(env.Client.Update(t.Context(), policy))
	f.must(r.round(t.Context(), l))
	if _, err := l.Checkpoints().Changes(t.Context(), string(login.Feature.UID), 1); err == nil || !strings.Contains(err.Error(), ledger.ErrNotFound.Error()) {
		t.Errorf("not removed: %v", err)
	}
	if _, err := l.Checkpoints().Changes(t.Context(), string(login.Feature.UID), 2); err != nil {
		t.Errorf("removed: %v", err)
	}
	// The Feature is gone, and the policy that it had counts.
	gone := ledger.Owner{FeatureUID: "gone", Namespace: project, Feature: "gone", Keep: 100 * time.Hour}
	_, _, err = l.Checkpoints().Record(t.Context(), gone, protocol.Changes{Checkpoint: 1, At: old})
	f.must(err)
	f.must(r.round(t.Context(), l))
	if have := owners(); len(have) != 2 || have[0] != gone && have[1] != gone {
		t.Errorf("%+v", have)
	}
}
