// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package intakeclient_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/pod/intakeclient"
)

// TestOrdersKeepTheirConnection: behind a Service each connection may reach another replica, and intake notes in the Feature which one serves its
// watchdog. A report that ends after a poll does not lend its connection to the next poll.
func TestOrdersKeepTheirConnection(t *testing.T) {
	came := make(chan string, 2)
	endPoll, endReport := make(chan struct{}), make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == protocol.ReportsPath {
			came <- ""
			<-endReport
			_ = json.NewEncoder(w).Encode(protocol.ReportAck{})
			return
		}
		came <- r.RemoteAddr
		<-endPoll
		_ = json.NewEncoder(w).Encode(orders())
	}))
	defer server.Close()
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca"), filepath.Join(dir, "token")
	for path, text := range map[string][]byte{ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), token: []byte("t")} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := intakeclient.NewClient(intakeclient.Options{URL: server.URL, ServerName: "example.com", CAPath: ca, TokenPath: token})
	var from []string
	for range 2 {
		ordered, sent := make(chan error, 1), make(chan error, 1)
		go func() {
			_, _, _, err := c.Orders(t.Context(), "", 0)
			ordered <- err
		}()
		from = append(from, <-came)
		go func() {
			_, err := c.Send(t.Context(), nil)
			sent <- err
		}()
		<-came
		endPoll <- struct{}{}
		if err := <-ordered; err != nil {
			t.Fatal(err)
		}
		endReport <- struct{}{} // its connection is now the one that was used last
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	if from[0] != from[1] {
		t.Errorf("polls came by the connections %q", from)
	}
}
