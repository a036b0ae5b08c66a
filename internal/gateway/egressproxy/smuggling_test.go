// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egressproxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// TestRequestsThatAreReadInTwoWays: what one server takes for the end of a request, another may take for its middle. Each
// of these is refused or cut off, and nothing that follows is taken for another request.
func TestRequestsThatAreReadInTwoWays(t *testing.T) {
	credentials := "Proxy-Authorization: " + basic(user, goodToken) + "\r\n"
	connect := "CONNECT git.example.com:443 HTTP/1.1\r\nHost: git.example.com:443\r\n" + credentials
	second := "CONNECT second.example.com:443 HTTP/1.1\r\nHost: second.example.com:443\r\n" + credentials + "\r\n"
	for name, request := range map[string]string{
		"length and chunks":             connect + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second,
		"chunks and chunks":             connect + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + second,
		"two lengths":                   connect + "Content-Length: 0\r\nContent-Length: 5\r\n\r\nabcde" + second,
		"a length that is none":         connect + "Content-Length: +5\r\n\r\nabcde" + second,
		"body":                          connect + "Content-Length: 5\r\n\r\nabcde" + second,
		"obscure chunks":                connect + "Transfer-Encoding: xchunked\r\n\r\n" + second,
		"folded header":                 "CONNECT git.example.com:443 HTTP/1.1\r\nHost: a\r\n b\r\n" + credentials + "\r\n" + second,
		"space before the colon":        "CONNECT git.example.com:443 HTTP/1.1\r\nHost : a\r\n" + credentials + "\r\n" + second,
		"two hosts":                     connect + "Host: second.example.com:443\r\n\r\n" + second,
		"no host":                       "CONNECT git.example.com:443 HTTP/1.1\r\n" + credentials + "Host:\r\nX\r\n\r\n" + second,
		"absolute form":                 "CONNECT https://git.example.com:443/ HTTP/1.1\r\nHost: git.example.com:443\r\n" + credentials + "\r\n" + second,
		"absolute form of GET":          "GET https://git.example.com/ HTTP/1.1\r\nHost: git.example.com\r\n" + credentials + "\r\n" + second,
		"origin form":                   "CONNECT /git.example.com:443 HTTP/1.1\r\nHost: git.example.com:443\r\n" + credentials + "\r\n" + second,
		"two targets":                   "CONNECT git.example.com:443 second.example.com:443 HTTP/1.1\r\nHost: a\r\n" + credentials + "\r\n" + second,
		"NUL in the target":             "CONNECT git.example.com\x00:443 HTTP/1.1\r\nHost: a\r\n" + credentials + "\r\n" + second,
		"bare carriage return":          "CONNECT git.example.com:443 HTTP/1.1\r\nHost: a\rX: y\r\n" + credentials + "\r\n" + second,
		"HTTP/0.9":                      "CONNECT git.example.com:443\r\n" + second,
		"HTTP/2 preface":                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + second,
		"lower-case method":             "connect git.example.com:443 HTTP/1.1\r\nHost: a\r\n" + credentials + "\r\n" + second,
		"a header beyond the limit":     connect + "X: " + strings.Repeat("x", 64<<10) + "\r\n\r\n" + second,
		"ten thousand headers":          connect + strings.Repeat("X: y\r\n", 10_000) + "\r\n" + second,
		"upgrade to HTTP/2":             "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n" + second,
		"a refused target, then others": "CONNECT evil.example:443 HTTP/1.1\r\nHost: a\r\n" + credentials + "\r\n" + second,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Limits{}, git(false), policy.Host{Name: "second.example.com", Port: 443})
			w.server("second.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
			response, reader, _ := w.connect(request)
			_, _ = io.Copy(io.Discard, response.Body)
			if response.StatusCode < 400 {
				t.Errorf("answered %d", response.StatusCode)
			}
			rest, _ := io.ReadAll(reader) // it may be cut off
			if strings.Contains(string(rest), "HTTP/1.1") {
				t.Errorf("what follows is answered: %q", rest)
			}
			if dialled := w.dials(); len(dialled) > 0 {
				t.Errorf("dialled %q", dialled)
			}
		})
	}
}

// TestSlowCallersAreCutOff: a connection that says nothing, or a little at a time, is not kept.
func TestSlowCallersAreCutOff(t *testing.T) {
	w := newWorld(t, Limits{}, git(false))
	conn, err := tls.Dial("tcp", w.proxy, &tls.Config{RootCAs: w.ca.pool, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "CONNECT git.example.com:443 HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(3 * headerTime)); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	_, err = io.ReadAll(conn)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("after %s it is still open", time.Since(started))
	}
}
