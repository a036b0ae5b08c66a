// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egressproxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
)

func TestOnlyTLSForTheHostPasses(t *testing.T) {
	var reached atomic.Bool
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	tests := map[string]struct {
		speak func(net.Conn) error
		want  egress.Reason
	}{
		"another server name": {func(c net.Conn) error {
			return tls.Client(c, &tls.Config{ServerName: "evil.example", MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
		}, egress.ReasonServerName},
		"no server name": {func(c net.Conn) error {
			return tls.Client(c, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context())
		}, egress.ReasonServerName},
		"plain HTTP": {func(c net.Conn) error {
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: git.example.com\r\n\r\n"); err != nil {
				return err
			}
			_, err := http.ReadResponse(bufio.NewReader(c), nil)
			return err
		}, egress.ReasonNotTLS},
		"nothing": {func(c net.Conn) error {
			_, err := c.Read(make([]byte, 1))
			return err
		}, reasonConnected},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Limits{Total: 9, PerFeature: 9, Dial: time.Second, Hello: 300 * time.Millisecond, Idle: time.Minute, Linger: time.Minute}, git(false))
			w.server("git.example.com", "1.1.1.1:443", handler)
			response, _, conn := w.connectTo("git.example.com:443")
			if response.StatusCode != http.StatusOK {
				t.Fatalf("answered %d", response.StatusCode)
			}
			if err := test.speak(conn); err == nil {
				t.Error("it was let through")
			}
			if r := <-w.records; r.Reason != string(test.want) || r.Sent != 0 || r.Feature != "shop/login" {
				t.Errorf("recorded %+v, want reason %s and nothing sent", r, test.want)
			}
		})
	}
	if reached.Load() {
		t.Error("a request reached the server")
	}
}

func TestTooManyConnections(t *testing.T) {
	w := newWorld(t, Limits{Total: 9, PerFeature: 2, Dial: time.Second, Hello: 10 * time.Second, Idle: time.Minute, Linger: time.Minute}, git(false))
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	_, _, first := w.connectTo("git.example.com:443")
	w.connectTo("git.example.com:443")
	third, _, _ := w.connectTo("git.example.com:443")
	if third.StatusCode != http.StatusServiceUnavailable || third.Header.Get("Retry-After") == "" {
		t.Fatalf("the third connection was answered %d", third.StatusCode)
	}
	_ = first.Close()
	for range 200 { // until the proxy has noticed
		if again, _, conn := w.connectTo("git.example.com:443"); again.StatusCode == http.StatusOK {
			_ = conn.Close()
			return
		}
	}
	t.Error("a closed connection still counts")
}

func TestIdleTunnelEnds(t *testing.T) {
	w := newWorld(t, Limits{Total: 9, PerFeature: 9, Dial: time.Second, Hello: 5 * time.Second, Idle: 300 * time.Millisecond, Linger: time.Second}, git(false))
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	_, _, conn := w.connectTo("git.example.com:443")
	inner := tls.Client(conn, &tls.Config{ServerName: "git.example.com", RootCAs: w.ca.pool, MinVersion: tls.VersionTLS12})
	if err := inner.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := inner.Read(make([]byte, 1)); err == nil {
		t.Error("something came through an idle connection")
	}
}

// TestStopLetsTunnelsFinish: a new version of the gateway does not cut a clone in two.
func TestStopLetsTunnelsFinish(t *testing.T) {
	w := newWorld(t, Limits{}, git(false))
	started, finish := make(chan struct{}), make(chan struct{})
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(rw).Flush()
		close(started)
		<-finish
		_, _ = io.WriteString(rw, "late")
	}))
	client := w.client(goodToken)
	body := make(chan string, 1)
	go func() {
		response, err := client.Get("https://git.example.com/")
		if err != nil {
			body <- err.Error()
			return
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		client.CloseIdleConnections()
		body <- fmt.Sprint(string(text), err)
	}()
	<-started
	w.stop()
	close(finish)
	if got := <-body; got != "late<nil>" {
		t.Errorf("the tunnel ended with %q", got)
	}
}
