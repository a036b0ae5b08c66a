// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// TestTheAgentHasAProxy: its process finds it by the usual variables, whatever the Feature sets, and what it asks for comes to the
// gateway in the name of an agent. Git's connections do not.
func TestTheAgentHasAProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", seldom)
	registry := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a package")) }))
	t.Cleanup(registry.Close)
	users := make(chan string, 100)
	run, _ := w.withModels(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		credentials := &http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
		user, password, _ := credentials.BasicAuth()
		target := r.Host
		if target == "registry.example.com:443" {
			target = registry.Listener.Addr().String()
		}
		if r.Method == http.MethodConnect {
			users <- user + " for " + r.Host
			if password == "" {
				t.Error("without a token")
			}
			tunnel(w, target)
		}
	}), nil, func(o *protocol.Orders) {
		o.Agent.Env = append(o.Agent.Env, "HTTPS_PROXY=http://proxy.example.com:3128", "no_proxy=*")
		o.Agent.Command[2] = `env > "$HOME/env.new"; mv "$HOME/env.new" "$HOME/env"; ` + o.Agent.Command[2]
	})
	env := map[string]string{}
	w.eventually("the agent runs", func() bool {
		text, err := os.ReadFile(filepath.Join(w.paths.Home, "env"))
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			env[name] = value
		}
		return err == nil
	})
	proxy, err := url.Parse(env["HTTPS_PROXY"])
	if err != nil || proxy.Hostname() != "127.0.0.1" {
		t.Fatalf("HTTPS_PROXY is %q", env["HTTPS_PROXY"])
	}
	for _, name := range []string{"https_proxy", "HTTP_PROXY", "http_proxy"} {
		if env[name] != env["HTTPS_PROXY"] {
			t.Errorf("%s is %q", name, env[name])
		}
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if !strings.HasPrefix(env[name], "127.0.0.1,localhost") {
			t.Errorf("%s is %q", name, env[name])
		}
	}
	for len(users) > 0 {
		if user := <-users; !strings.HasPrefix(user, "tidewaiter for ") {
			t.Errorf("before the agent there was a connection of %s", user)
		}
	}
	client := registry.Client()
	transport := client.Transport.(*http.Transport).Clone()
	transport.Proxy, transport.DialContext = http.ProxyURL(proxy), nil
	t.Cleanup(transport.CloseIdleConnections)
	answer, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Get("https://registry.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if user := <-users; user != "tidewaiter-agent for registry.example.com:443" {
		t.Errorf("the gateway was asked by %s", user)
	}
	w.signal("end")
	run.finish()
}
