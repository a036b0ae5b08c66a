// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egressproxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

func TestAllowedHostIsReached(t *testing.T) {
	w := newWorld(t, Limits{}, git(false))
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	response, err := w.client(goodToken).Get("https://git.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "hello" {
		t.Errorf("got %q, %v", body, err)
	}
	if len(w.names.asked) != 1 || w.names.asked[0] != "git.example.com." {
		t.Errorf("looked up %q, want the absolute name once", w.names.asked)
	}
}

func TestRefusals(t *testing.T) {
	header := "\r\nHost: git.example.com:443\r\nProxy-Authorization: " + basic(user, goodToken)
	tests := map[string]struct {
		request    string
		wantCode   int
		wantReason string
		wantText   string
		wantHeader string
	}{
		"the user of nobody":     {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: " + basic("", goodToken), 407, "Unauthenticated", "tidewaiter-agent", "Proxy-Authenticate"},
		"the agent's list":       {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: " + basic("tidewaiter-agent", goodToken), 403, "HostNotAllowed", "egress.agent of a SupervisorPolicy", ""},
		"no credentials":         {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x", 407, "Unauthenticated", "Basic", "Proxy-Authenticate"},
		"unknown token":          {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: " + basic(user, "stolen"), 407, "Unauthenticated", "unknown token", "Proxy-Authenticate"},
		"another user":           {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: " + basic("root", goodToken), 407, "Unauthenticated", "tidewaiter", "Proxy-Authenticate"},
		"bearer":                 {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer " + goodToken, 407, "Unauthenticated", "Basic", "Proxy-Authenticate"},
		"the wrong header":       {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nAuthorization: " + basic(user, goodToken), 407, "Unauthenticated", "Basic", "Proxy-Authenticate"},
		"credentials twice":      {"CONNECT git.example.com:443 HTTP/1.1" + header + "\r\nProxy-Authorization: " + basic(user, "x"), 407, "Unauthenticated", "Basic", "Proxy-Authenticate"},
		"pod not known yet":      {"CONNECT git.example.com:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: " + basic(user, pendingToken), 503, "Unavailable", "not known yet", "Retry-After"},
		"GET of a URL":           {"GET http://git.example.com/ HTTP/1.1" + header, 405, "NotConnect", "CONNECT", "Allow"},
		"GET of a path":          {"GET / HTTP/1.1" + header, 405, "NotConnect", "CONNECT", "Allow"},
		"body":                   {"CONNECT git.example.com:443 HTTP/1.1" + header + "\r\nContent-Length: 5", 400, "BadTarget", "body", ""},
		"chunked body":           {"CONNECT git.example.com:443 HTTP/1.1" + header + "\r\nTransfer-Encoding: chunked", 400, "BadTarget", "body", ""},
		"no port":                {"CONNECT git.example.com HTTP/1.1" + header, 400, "BadTarget", "host:port", ""},
		"user in the target":     {"CONNECT git.example.com:443@127.0.0.1:443 HTTP/1.1" + header, 400, "BadTarget", "", ""},
		"final dot":              {"CONNECT git.example.com.:443 HTTP/1.1" + header, 400, "BadTarget", "", ""},
		"decimal address":        {"CONNECT 2130706433:443 HTTP/1.1" + header, 400, "BadTarget", "", ""},
		"host not listed":        {"CONNECT evil.example:443 HTTP/1.1" + header, 403, "HostNotAllowed", "egress.git of a SupervisorPolicy", ""},
		"port not listed":        {"CONNECT git.example.com:22 HTTP/1.1" + header, 403, "HostNotAllowed", "egress.git of a SupervisorPolicy", ""},
		"address":                {"CONNECT 1.1.1.1:443 HTTP/1.1" + header, 403, "IPAddress", "egress.git of a SupervisorPolicy", ""},
		"metadata service":       {"CONNECT 169.254.169.254:443 HTTP/1.1" + header, 403, "IPAddress", "", ""},
		"loopback in IPv6":       {"CONNECT [::1]:443 HTTP/1.1" + header, 403, "IPAddress", "", ""},
		"address that is listed": {"CONNECT 127.0.0.1:443 HTTP/1.1" + header, 403, "IPAddress", "by its name", ""},
		"private address":        {"CONNECT private.example.com:443 HTTP/1.1" + header, 403, "PrivateAddress", "allowPrivate", ""},
		"mapped loopback":        {"CONNECT mapped.example.com:443 HTTP/1.1" + header, 403, "ForbiddenAddress", "loopback", ""},
		"name does not exist":    {"CONNECT gone.example.com:443 HTTP/1.1" + header, 502, "Unresolved", "gone.example.com", ""},
		"nobody listens":         {"CONNECT dark.example.com:443 HTTP/1.1" + header, 502, "Unreachable", "no route", ""},
		"nobody answers":         {"CONNECT slow.example.com:443 HTTP/1.1" + header, 504, "Unreachable", "deadline", ""},
	}
	hosts := []policy.Host{git(false), {Name: "127.0.0.1", Port: 443, AllowPrivate: true}, {Name: "mapped.example.com", Port: 443, AllowPrivate: true}}
	for _, name := range []string{"private", "gone", "dark", "slow"} {
		hosts = append(hosts, policy.Host{Name: name + ".example.com", Port: 443})
	}
	w := newWorld(t, Limits{Total: 9, PerFeature: 9, Dial: 200 * time.Millisecond, Hello: time.Second, Idle: time.Second, Linger: time.Second}, hosts...)
	w.names.answers["private.example.com"] = addresses("10.0.0.1", "fd00::1")
	w.names.answers["mapped.example.com"] = addresses("::ffff:127.0.0.1", "169.254.169.254", "64:ff9b::7f00:1")
	w.names.answers["dark.example.com"] = addresses("1.1.1.1")
	w.names.answers["slow.example.com"] = addresses("1.1.1.2", "1.1.1.3")
	w.servers["1.1.1.2:443"], w.servers["1.1.1.3:443"] = "hang", "hang"
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			response, reader, _ := w.connect(test.request + "\r\n\r\n")
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != test.wantCode || response.Header.Get(protocol.ReasonHeader) != test.wantReason {
				t.Errorf("answered %d %s, want %d %s", response.StatusCode, response.Header.Get(protocol.ReasonHeader), test.wantCode, test.wantReason)
			}
			if !strings.Contains(string(body), test.wantText) {
				t.Errorf("the body does not say %q: %q", test.wantText, body)
			}
			if test.wantHeader != "" && response.Header.Get(test.wantHeader) == "" {
				t.Errorf("no header %s", test.wantHeader)
			}
			if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
				t.Errorf("the connection goes on: %q, %v", rest, err)
			}
		})
	}
	for _, address := range w.dials() {
		if !strings.HasPrefix(address, "1.1.1.") {
			t.Errorf("dialled %s", address)
		}
	}
}

// TestRebinding: a name server that gives a good address first and a bad one then gains nothing, because the address
// that was judged is the one that is dialled.
func TestRebinding(t *testing.T) {
	w := newWorld(t, Limits{}, git(false))
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	w.names.answers["git.example.com"] = append(addresses("1.1.1.1"), addresses("127.0.0.1")...)
	response, err := w.client(goodToken).Get("https://git.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	second, _, _ := w.connectTo("git.example.com:443")
	if got := second.Header.Get(protocol.ReasonHeader); got != string(egress.ReasonForbiddenAddress) {
		t.Errorf("the second answer of the name server gave %d %s", second.StatusCode, got)
	}
	if got := w.dials(); len(got) != 1 || got[0] != "1.1.1.1:443" {
		t.Errorf("dialled %q", got)
	}
}

// TestTheNextAddressIsTried: servers have several addresses so that one may be down; bad ones among them are left out.
func TestTheNextAddressIsTried(t *testing.T) {
	w := newWorld(t, Limits{}, git(false))
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	w.names.answers["git.example.com"] = addresses("127.0.0.1", "8.8.8.8", "10.0.0.1", "1.1.1.1")
	response, err := w.client(goodToken).Get("https://git.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got := strings.Join(w.dials(), " "); got != "8.8.8.8:443 1.1.1.1:443" {
		t.Errorf("dialled %s", got)
	}
}

// TestInsideNamesUseTheSearchList: only a host that may be private is looked up as the cluster's DNS completes it.
func TestInsideNamesUseTheSearchList(t *testing.T) {
	w := newWorld(t, Limits{}, git(true))
	w.server("git.example.com", "10.0.0.7:443", http.HandlerFunc(hello))
	response, err := w.client(goodToken).Get("https://git.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if len(w.names.asked) != 1 || w.names.asked[0] != "git.example.com" {
		t.Errorf("looked up %q", w.names.asked)
	}
}
