// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egressproxy

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/egress"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/testkit/script"
)

// TestEachListIsItsOwn: the agent reaches what its list has and nothing that only Git may reach, and the other way round.
func TestEachListIsItsOwn(t *testing.T) {
	w := newWorld(t, Limits{}, git(true))
	w.lists[egress.FieldAgent] = []policy.Host{{Name: "*.registry.example.com", Port: 443}, {Name: "inside.example.com", Port: 8443, AllowPrivate: true}}
	w.server("git.example.com", "10.0.0.7:443", http.HandlerFunc(hello))
	w.server("npm.registry.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	w.server("inside.example.com", "10.0.0.8:8443", http.HandlerFunc(hello))
	w.names.answers["private.registry.example.com"] = addresses("10.0.0.9")
	for _, test := range []struct {
		list         egress.Field
		target, want string
	}{
		{egress.FieldGit, "git.example.com:443", "200 "},
		{egress.FieldAgent, "npm.registry.example.com:443", "200 "},
		{egress.FieldAgent, "inside.example.com:8443", "200 "},
		{egress.FieldAgent, "git.example.com:443", "403 HostNotAllowed egress.agent"},
		{egress.FieldGit, "npm.registry.example.com:443", "403 HostNotAllowed egress.git"},
		{egress.FieldAgent, "inside.example.com:443", "403 HostNotAllowed egress.agent"},
		{egress.FieldAgent, "registry.example.com:443", "403 HostNotAllowed egress.agent"},
		{egress.FieldAgent, "private.registry.example.com:443", "403 PrivateAddress egress.agent"},
		{egress.FieldAgent, "10.0.0.8:8443", "403 IPAddress egress.agent"},
		{egress.FieldAgent, "[::1]:443", "403 IPAddress egress.agent"},
	} {
		response, _, conn := w.connectFor(test.list, test.target)
		status, rest, _ := strings.Cut(test.want, " ")
		reason, field, _ := strings.Cut(rest, " ")
		if !strings.HasPrefix(response.Status, status) || response.Header.Get(protocol.ReasonHeader) != reason {
			t.Errorf("%s of %s: %s %s, want %s", test.target, test.list, response.Status, response.Header.Get(protocol.ReasonHeader), test.want)
		}
		if response.StatusCode != http.StatusOK {
			if body, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(body), field) {
				t.Errorf("%s of %s: %q, %v; want %s named", test.target, test.list, body, err, field)
			}
		}
		_ = conn.Close()
		if r := <-w.records; r.List != test.list || response.StatusCode != http.StatusOK && (r.Target != test.target || r.Reason != reason) {
			t.Errorf("%s of %s is recorded as %+v", test.target, test.list, r)
		}
	}
	response, err := w.clientFor(egress.FieldAgent, goodToken).Get("https://npm.registry.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

// TestAnAgentTakesNothingOfGits: an agent that keeps all of its connections open is in the way of itself alone.
func TestAnAgentTakesNothingOfGits(t *testing.T) {
	w := newWorld(t, Limits{Total: 2, PerFeature: 2, Dial: time.Second, Hello: 10 * time.Second, Idle: time.Minute, Linger: time.Minute}, git(false))
	w.lists[egress.FieldAgent] = []policy.Host{git(false)}
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello))
	for _, want := range []int{http.StatusOK, http.StatusOK, http.StatusServiceUnavailable} {
		if response, _, _ := w.connectFor(egress.FieldAgent, "git.example.com:443"); response.StatusCode != want {
			t.Errorf("the agent is answered %d, want %d", response.StatusCode, want)
		}
	}
	if response, _, _ := w.connectTo("git.example.com:443"); response.StatusCode != http.StatusOK {
		t.Errorf("Git is answered %d", response.StatusCode)
	}
}

// TestAnAgentsTunnelEnds: however busy it is. One of Git does not.
func TestAnAgentsTunnelEnds(t *testing.T) {
	w := newWorld(t, Limits{Total: 9, PerFeature: 9, Dial: time.Second, Hello: 5 * time.Second, Idle: time.Minute, Linger: time.Second, AgentLife: 500 * time.Millisecond}, git(false))
	w.lists[egress.FieldAgent] = []policy.Host{git(false)}
	w.server("git.example.com", "1.1.1.1:443", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		for range 150 { // 1.5 s
			if _, err := io.WriteString(rw, "more"); err != nil || http.NewResponseController(rw).Flush() != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}))
	for list, whole := range map[egress.Field]bool{egress.FieldGit: true, egress.FieldAgent: false} {
		response, err := w.clientFor(list, goodToken).Get("https://git.example.com/")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if (err == nil) != whole || (len(text) == 600) != whole {
			t.Errorf("%s: %d bytes came, %v", list, len(text), err)
		}
	}
}

// TestAnotherClientHello: a server that does not know what the first one offers is sent another, which must ask for the host too:
// it may be the one that the server goes by.
func TestAnotherClientHello(t *testing.T) {
	for name, test := range map[string]struct {
		second string // server name
		ahead  bool   // it is sent before the server asks
		want   egress.Reason
	}{
		"for the host":       {"git.example.com", false, reasonConnected},
		"for another":        {"evil.example", false, egress.ReasonServerName},
		"for another, early": {"evil.example", true, egress.ReasonServerName},
		"for none":           {"", false, egress.ReasonServerName},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Limits{}, git(false))
			seen := make(chan string, 9)
			w.serverWith("git.example.com", "1.1.1.1:443", http.HandlerFunc(hello), func(config *tls.Config) {
				config.CurvePreferences = []tls.CurveID{tls.CurveP521}
				config.GetConfigForClient = func(info *tls.ClientHelloInfo) (*tls.Config, error) {
					seen <- info.ServerName
					return nil, nil
				}
			})
			if name == "for the host" { // as any client does it
				response, err := w.client(goodToken).Get("https://git.example.com/")
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				w.client(goodToken).CloseIdleConnections()
			} else {
				_, reader, conn := w.connectTo("git.example.com:443")
				first, second := helloOf(t, "git.example.com"), append([]byte{20, 3, 3, 0, 1, 1}, helloOf(t, test.second)...)
				if test.ahead {
					first = append(first, second...)
				}
				if _, err := conn.Write(first); err != nil {
					t.Fatal(err)
				}
				if !test.ahead {
					if _, err := reader.Peek(43); err != nil {
						t.Fatal(err)
					}
					if _, err := conn.Write(second); err != nil {
						t.Fatal(err)
					}
				}
				answer, _ := io.ReadAll(reader) // it is cut off
				if alert := string(accessDenied); !strings.HasSuffix(string(answer), alert) {
					t.Errorf("the answer ends with %x, want an alert", answer[max(0, len(answer)-9):])
				}
				if r := <-w.records; r.Reason != string(test.want) {
					t.Errorf("recorded %+v, want reason %s", r, test.want)
				}
			}
			close(seen)
			for name := range seen {
				if name != "git.example.com" {
					t.Errorf("the server was asked for %q", name)
				}
			}
		})
	}
}

// helloOf is what a TLS client sends first.
func helloOf(tb testing.TB, name string) []byte {
	tb.Helper()
	server := script.New()
	if err := tls.Client(server, &tls.Config{ServerName: name, InsecureSkipVerify: name == "", MinVersion: tls.VersionTLS13}).HandshakeContext(tb.Context()); err == nil {
		tb.Fatal("a handshake without a server")
	}
	return server.Heard()
}
