// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/pod/agentproxy"
)

// The programs of clients take the proxy's URL and that of a server of the watchdog.
const (
	python = `import sys, urllib.request
proxy, url = sys.argv[1:]
opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy}))
print(opener.open(urllib.request.Request(url, data=b"{}")).read().decode())`
	// undici sends everything to its proxy: by CONNECT as it is built, in absolute form with proxyTunnel false.
	undici = `const { ProxyAgent, request } = require(process.argv[1])
const [uri, url, proxyTunnel] = process.argv.slice(2)
request(url, { method: "POST", body: "{}", dispatcher: new ProxyAgent({ uri, proxyTunnel: proxyTunnel === "true" }) })
  .then(r => r.body.text()).then(text => process.stdout.write(text), error => { console.error(error); process.exit(1) })`
)

// TestClientsOfTheAgentsProxy that send everything to their proxy reach the watchdog's own servers, by both spellings of the address.
func TestClientsOfTheAgentsProxy(t *testing.T) {
	folder := os.Getenv("TIDEWAITER_CLIENTS")
	if folder == "" {
		t.Fatal("TIDEWAITER_CLIENTS is not set: run `TIDEWAITER_CLIENTS=$(hack/clients.sh) go test -C test/sdk ./...`")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s %v", r.Method, r.RequestURI, body, err)
	}))
	defer server.Close()
	l, err := agentproxy.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := agentproxy.URL(l)
	done := make(chan error, 1)
	go func() {
		done <- agentproxy.Serve(t.Context(), l, agentproxy.Options{
			Gateway: "https://gateway.invalid", Local: []string{server.Listener.Addr().String()}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
	}()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	curl := []string{"curl", "--silent", "--show-error", "--noproxy", "", "--proxy", proxy, "--data", "{}"}
	node := []string{"node", "-e", undici, filepath.Join(folder, "undici")}
	for name, client := range map[string]struct{ before, after []string }{
		"curl":                    {curl, nil},
		"curl by CONNECT":         {append(curl[:len(curl):len(curl)], "--proxytunnel"), nil},
		"Python":                  {[]string{"python3", "-c", python, proxy}, nil},
		"undici":                  {append(node[:len(node):len(node)], proxy), []string{"true"}},
		"undici in absolute form": {append(node[:len(node):len(node)], proxy), []string{"false"}},
	} {
		for _, url := range []string{server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1)} {
			argv := append(append(client.before[:len(client.before):len(client.before)], url+"/v1/x?y=1"), client.after...)
			out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
			if want := "POST /v1/x?y=1 {} <nil>"; err != nil || strings.TrimSpace(string(out)) != want {
				t.Errorf("%s at %s: %v: %s", name, url, err, out)
			}
		}
	}
}
