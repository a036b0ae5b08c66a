// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package agentproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// heard keeps what a server of the watchdog is asked.
type heard struct {
	*httptest.Server

	mu       sync.Mutex
	requests []string
}

// local is a server of the watchdog that answers with what it was asked.
func (w *world) localServer() *heard {
	w.Helper()
	h := &heard{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		said := fmt.Sprintf("%s %s Host: %s Body: %s Error: %v", r.Method, r.RequestURI, r.Host, body, err)
		h.mu.Lock()
		h.requests = append(h.requests, said)
		h.mu.Unlock()
		for name, values := range r.Header {
			rw.Header()["Seen-"+name] = values
		}
		_, _ = io.WriteString(rw, said)
	}))
	w.Cleanup(h.Close)
	return h
}

func (h *heard) address() string { return h.Listener.Addr().String() }

func (h *heard) port() string {
	_, port, _ := net.SplitHostPort(h.address())
	return port
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.requests...)
}

// withLocal is a world whose proxy serves requests for these servers.
func withLocal(t *testing.T) (w *world, models, tools *heard) {
	t.Helper()
	w = newWorld(t, http.HandlerFunc(hello))
	models, tools = w.localServer(), w.localServer()
	w.local = []string{models.address(), tools.address()}
	w.serve()
	return w, models, tools
}

// TestTheWatchdogsOwnServersAreReached by clients that do not know NO_PROXY, in both forms of asking a proxy, and as often as they
// ask: the pace of connections to other hosts is not theirs.
func TestTheWatchdogsOwnServersAreReached(t *testing.T) {
	w, models, tools := withLocal(t)
	for _, h := range []*heard{models, tools} {
		for _, authority := range []string{h.address(), "localhost:" + h.port(), "LocalHost:" + h.port()} {
			want := "POST /v1/x?y=1 Host: " + h.address() + " Body: {} Error: <nil>"
			request := "POST http://" + authority + "/v1/x?y=1 HTTP/1.1\r\nHost: other.example\r\nContent-Length: 2\r\n\r\n{}"
			if response, _, conn := w.send(request); response.StatusCode != http.StatusOK {
				t.Errorf("%s in absolute form: %s", authority, response.Status)
			} else {
				_ = conn.Close()
			}
			response, _, conn := w.connect(authority)
			if response.StatusCode != http.StatusOK {
				t.Errorf("%s by CONNECT: %s", authority, response.Status)
				continue
			}
			_, _ = io.WriteString(conn, "POST /v1/x?y=1 HTTP/1.1\r\nHost: "+h.address()+"\r\nContent-Length: 2\r\n\r\n{}")
			inner, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Errorf("%s by CONNECT: %v", authority, err)
				continue
			}
			if body, err := io.ReadAll(inner.Body); string(body) != want {
				t.Errorf("%s by CONNECT: %s, %v", authority, body, err)
			}
			for _, got := range h.all() {
				if got != want {
					t.Errorf("the server was asked %s, want %s", got, want)
				}
			}
		}
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.proxy})}}
	defer client.CloseIdleConnections()
	for range 4 * burst {
		response, err := client.Get("http://localhost:" + models.port() + "/")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
			t.Fatal(response.Status)
		}
	}
	if len(w.records) > 0 {
		t.Errorf("the gateway was asked: %+v", <-w.records)
	}
}

// TestNothingElseOfThePodIsReached: other ports, other spellings and other addresses of the pod and of its node are refused as ever.
func TestNothingElseOfThePodIsReached(t *testing.T) {
	w, models, _ := withLocal(t)
	other := w.localServer()
	port := models.port()
	for _, authority := range []string{
		other.address(), "localhost:" + other.port(), "127.0.0.1", "localhost", "127.0.0.1:80", "127.0.0.2:" + port, "127.1:" + port, "2130706433:" + port, "0.0.0.0:" + port,
		"[::1]:" + port, "[::ffff:127.0.0.1]:" + port, "169.254.169.254:80", "localhost.:" + port, "evil.localhost:" + port, "127.0.0.1:0" + port, "x@127.0.0.1:" + port, "127.0.0.1:" + port + "@evil.example:443",
		w.proxy,
	} {
		if response, body, _ := w.connect(authority); response.StatusCode < 400 {
			t.Errorf("CONNECT %s: %s %s", authority, response.Status, body)
		}
		response, body, _ := w.send("GET http://" + authority + "/ HTTP/1.1\r\nHost: " + models.address() + "\r\n\r\n")
		if response.StatusCode == http.StatusOK {
			t.Errorf("GET http://%s/: %s %s", authority, response.Status, body)
		}
		if response.StatusCode == http.StatusMethodNotAllowed && !strings.Contains(body, "http://"+models.address()) {
			t.Errorf("GET http://%s/ is not told what may be asked: %s", authority, body)
		}
	}
	for _, request := range []string{
		"GET https://" + models.address() + "/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET ftp://" + models.address() + "/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET //" + models.address() + "/ HTTP/1.1\r\nHost: " + models.address() + "\r\n\r\n", "GET / HTTP/1.1\r\nHost: " + models.address() + "\r\n\r\n",
	} {
		if response, body, _ := w.send(request); response.StatusCode < 400 {
			t.Errorf("%q: %s %s", request, response.Status, body)
		}
	}
	if asked := append(models.all(), other.all()...); len(asked) > 0 {
		t.Errorf("a server was asked %v", asked)
	}
}

// TestOneRequestStaysOne: whatever a client says of where its request ends, the server is asked at most what the proxy was asked,
// and nothing that is for the proxy alone reaches it.
func TestOneRequestStaysOne(t *testing.T) {
	const second = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, headers := range map[string]string{
		"two lengths":                   "Content-Length: 0\r\nContent-Length: %d\r\n\r\n",
		"a length and chunks":           "Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"an unknown encoding":           "Content-Length: %d\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"two encodings":                 "Content-Length: %d\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		"a space before the colon":      "Content-Length : %d\r\n\r\n",
		"a folded line":                 "X: y\r\n Content-Length: %d\r\n\r\n",
		"a length with a sign":          "Content-Length: +%d\r\n\r\n",
		"a length that is for one hop":  "Connection: Content-Length\r\nContent-Length: %d\r\n\r\n",
		"an encoding that is for a hop": "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\nX-L: %d\r\n\r\n0\r\n\r\n",
		"bare line feeds":               "X: %d\n\n",
		"another protocol":              "Connection: Upgrade\r\nUpgrade: websocket\r\nX: %d\r\n\r\n",
		"an expectation":                "Expect: 100-continue\r\nContent-Length: %d\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w, models, _ := withLocal(t)
			conn := w.dial()
			_, _ = fmt.Fprintf(conn, "POST http://"+models.address()+"/first HTTP/1.1\r\nHost: x\r\n"+headers+second, len(second))
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.ReadAll(conn) // until the proxy is done with it
			for _, asked := range models.all() {
				if !strings.HasPrefix(asked, "POST /first ") {
					t.Errorf("the server was asked %s", asked)
				}
			}
		})
	}
	w, models, _ := withLocal(t)
	response, _, _ := w.send("GET http://" + models.address() + "/ HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n" +
		"Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-Api-Key: none\r\nForwarded: for=1.1.1.1\r\nX-Forwarded-For: 1.1.1.1\r\n\r\n")
	for _, name := range []string{"Proxy-Authorization", "Proxy-Connection", "Keep-Alive", "Connection", "X-Hop", "Forwarded", "X-Forwarded-For"} {
		if got := response.Header["Seen-"+name]; got != nil {
			t.Errorf("the server was sent %s: %v", name, got)
		}
	}
	if response.Header.Get("Seen-X-Api-Key") != "none" {
		t.Errorf("the server was not sent the client's header: %v", response.Header)
	}
}

// TestAStreamComesAsItIsSent: the first part of an answer reaches the client before the last one is written.
func TestAStreamComesAsItIsSent(t *testing.T) {
	w := newWorld(t, nil)
	more := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, "data: 1\n\n")
		_ = http.NewResponseController(rw).Flush()
		<-more
		_, _ = io.WriteString(rw, "data: 2\n\n")
	}))
	defer server.Close()
	w.local = []string{server.Listener.Addr().String()}
	w.serve()
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.proxy})}}
	defer client.CloseIdleConnections()
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	first := make([]byte, len("data: 1\n\n"))
	if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != "data: 1\n\n" {
		t.Fatalf("%q, %v", first, err)
	}
	close(more)
	if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != "data: 2\n\n" {
		t.Errorf("%q, %v", rest, err)
	}
}
