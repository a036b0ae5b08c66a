// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestReach(t *testing.T) {
	status := http.StatusUnauthorized
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))

	trusted := Wanted{URL: server.URL, CA: ca}.ask(t.Context())
	if trusted.Answer != "status 401" || trusted.Error+trusted.Untrusted != "" || !trusted.Private {
		t.Errorf("with its CA: %+v", trusted)
	}
	if got := (Wanted{URL: server.URL}).ask(t.Context()); got.Answer != "status 401" || !strings.Contains(got.Untrusted, "unknown authority") {
		t.Errorf("without its CA: %+v", got)
	}
	status = http.StatusBadGateway
	if got := (Wanted{URL: server.URL, CA: ca}).ask(t.Context()); got.Error != "status 502" || got.Answer != "" {
		t.Errorf("a broken server: %+v", got)
	}
	if got := (Wanted{URL: server.URL, CA: "none"}).ask(t.Context()); !strings.Contains(got.Error, "PEM") {
		t.Errorf("a broken CA: %+v", got)
	}
	if got := (Wanted{URL: "https://example.invalid", Proxy: server.URL}).ask(t.Context()); got.Error == "" {
		t.Errorf("by a proxy that is none: %+v", got)
	}
	server.Close()
	if got := (Wanted{URL: server.URL, CA: ca}).ask(t.Context()); !strings.Contains(got.Error, "refused") {
		t.Errorf("nobody: %+v", got)
	}
}

func TestConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	got := connect(t.Context(), listener.Addr().String(), nobody)
	if len(got) != 2 || !got[0].Through || got[1].Through || !strings.Contains(got[1].Error, "refused") {
		t.Errorf("%+v", got)
	}
	all := refused(t.Context(), []string{listener.Addr().String(), nobody})
	through := 0
	for _, c := range all {
		if c.Through != (c.To != nobody) {
			t.Errorf("%+v", c)
		}
		if c.Through {
			through++
		}
	}
	if len(all) != 2*rounds || through != rounds {
		t.Errorf("%d tries, %d through", len(all), through)
	}
}
