// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/failures"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
)

// TestAFeatureIsNotBlamedForOthers: where the calls of other Features hold what a call needs, the reason is not one that is the agent's fault: its attempt
// would count as failed. Where its own calls hold its share, it is.
func TestAFeatureIsNotBlamedForOthers(t *testing.T) {
	large := strings.Replace(plainRequest, "{", `{"x":"`+strings.Repeat("x", 9<<20)+`",`, 1)
	small := func(l *modelserver.Limits) { l.Wait = 100 * time.Millisecond }
	for name, tc := range map[string]struct {
		limits func(*modelserver.Limits)
		// holds are calls of these Features, which are not answered meanwhile; asks is who asks then, both with this body.
		holds         []string
		asks, body    string
		reason, class string
		status        int
	}{
		"calls of others at the gateway": {func(l *modelserver.Limits) { l.Total = 2 }, []string{"a", "b"}, "login", plainRequest, "GatewayFull", protocol.FailureInfrastructure, 503},
		"its own calls at the gateway":   {func(l *modelserver.Limits) { l.PerFeature = 2 }, []string{"login", "login"}, "login", plainRequest, "TooManyCalls", protocol.FailureAgent, 429},
		"calls of others at the backend": {small, []string{"alone"}, "beside", plainRequest, "BackendFull", protocol.FailureInfrastructure, 503},
		"its own calls at the backend":   {small, []string{"alone"}, "alone", plainRequest, "TooManyCalls", protocol.FailureAgent, 503},
		"memory of others":               {func(l *modelserver.Limits) { small(l); l.Memory = 44 << 20 }, []string{"a", "b"}, "login", large, "MemoryFull", protocol.FailureInfrastructure, 503},
		"its own memory":                 {func(l *modelserver.Limits) { small(l); l.Memory = 56 << 20 }, []string{"login"}, "login", large, "MemoryShare", protocol.FailureAgent, 503},
	} {
		t.Run(name, func(t *testing.T) {
			release, arrived := make(chan struct{}), make(chan struct{}, 8)
			defer close(release)
			limits := quick()
			tc.limits(&limits)
			w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				arrived <- struct{}{}
				<-release
				answering(rw, r)
			}), limits)
			w.silence = time.Second
			for _, feature := range tc.holds {
				h := w.begin(feature, strings.NewReader(tc.body))
				select {
				case <-arrived:
				case answer := <-h:
					t.Fatalf("%s is answered %v", feature, answer)
				}
			}
			var answer *http.Response
			select {
			case answer = <-w.begin(tc.asks, strings.NewReader(tc.body)):
			case <-arrived:
				t.Fatal("there was room for the call")
			}
			if r := w.last(1); r.Reason != tc.reason || r.Status != tc.status {
				t.Errorf("%+v", r)
			}
			if answer != nil && answer.Header.Get(protocol.ReasonHeader) != tc.reason { // nil where it was answered before all of the request was sent
				t.Errorf("the agent is answered %d %v", answer.StatusCode, answer.Header)
			}
			if got := failures.Of(failures.Answer{Status: tc.status, Reason: tc.reason}); got.Class != tc.class {
				t.Errorf("to blame is %s, want %s", got.Class, tc.class)
			}
		})
	}
}
