// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml" //nolint:depguard // the test reads the examples of the documentation as the gateway does

	coremodels "github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/gateway/backends"
	"github.com/tidewaiter/tidewaiter/internal/gateway/modelserver"
)

var update = flag.Bool("update", false, "write the golden requests anew")

// documented are the backends of the page for people.
func documented(t *testing.T) []coremodels.Backend {
	t.Helper()
	page, err := os.ReadFile("../../../docs/reference/backends.md")
	if err != nil {
		t.Fatal(err)
	}
	var all coremodels.Config
	for i, block := range strings.Split(string(page), "```yaml fragment\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		var config coremodels.Config
		if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
			t.Fatalf("example %d of docs/reference/backends.md: %v", i, err)
		}
		all.Backends = append(all.Backends, config.Backends...)
	}
	if err := all.Validate(); err != nil {
		t.Fatalf("the examples of docs/reference/backends.md: %v", err)
	}
	return all.Backends
}

// vendors are all providers in one: whatever its name, it is reached through a proxy, and writes down what it is asked.
type vendors struct {
	proxy *httptest.Server
	ca    string
	asked chan string
}

// newVendors serves hosts by their own names.
func newVendors(t *testing.T, hosts []string) *vendors {
	t.Helper()
	v := &vendors{asked: make(chan string, 1)}
	certificate, ca := certified(t, hosts)
	v.ca = ca
	server := httptest.NewUnstartedServer(v)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert} //nolint:gosec // a server of a test
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	v.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != "Basic dXNlcjpwYXNzd29yZA==" { // user:password
			http.Error(w, "CONNECT with a password", http.StatusProxyAuthRequired)
			return
		}
		to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusOK)
		from, read, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		go func() { _, _ = io.Copy(to, read); _ = to.Close() }() // the server may have read the first byte that follows the head
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}))
	t.Cleanup(v.proxy.Close)
	return v
}

// ServeHTTP implements http.Handler.
func (v *vendors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Host == "oauth2.googleapis.com" && r.URL.Path == "/token" {
		fmt.Fprint(w, `{"access_token":"token-of-google","token_type":"Bearer","expires_in":3600}`)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s https://%s%s\n", r.Method, r.Host, r.URL.RequestURI())
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		value := strings.Join(r.Header[name], ", ")
		fmt.Fprintf(&out, "%s: %s\n", name, value)
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		fmt.Fprintf(&out, "(client certificate of %s)\n", r.TLS.PeerCertificates[0].Subject.CommonName)
	}
	fmt.Fprintf(&out, "\n%s\n", body)
	v.asked <- out.String()
	fmt.Fprint(w, `{}`)
}

// certified is a certificate for hosts, and the CA that vouches for it.
func certified(t *testing.T, hosts []string) (certificate tls.Certificate, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tidewaiter"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: hosts, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// entries of the Secret, one for each backend.
func entries(t *testing.T) map[string]string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	// What the key says of where its tokens come from is not asked.
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "a@example.com", "private_key": string(private), "token_uri": "https://evil.example.com/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	certificate, ca := certified(t, nil)
	der, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"vertex": string(account), "bedrock": `{"AccessKeyId": "AKIAIOSFODNN7EXAMPLE", "SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}`,
		"proxy": "user:password", "certificate": ca + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
}

// questions are what agents ask, by dialect: streamed and not, and how many tokens a request has.
func questions() map[string][][2]string {
	return map[string][][2]string{
		"anthropic": {
			{messages + "?beta=true", `{"model":"any","max_tokens":10,"stream":true,"messages":[{"role":"user","content":"Hello"}]}`},
			{messages, `{"model":"any","max_tokens":10,"messages":[{"role":"user","content":"Hello"}]}`},
			{messages + "/count_tokens?beta=true", `{"model":"any","messages":[{"role":"user","content":"Hello"}]}`},
		},
		"openai-chat": {
			{"/openai/v1/chat/completions", `{"model":"any","messages":[{"role":"user","content":"Hello"}]}`},
			{"/openai/v1/chat/completions", `{"model":"any","stream":true,"messages":[{"role":"user","content":"Hello"}]}`},
		},
		"openai-responses": {{"/openai/v1/responses", `{"model":"any","store":false,"input":"Hello"}`}},
		"gemini": {
			{"/gemini/v1beta/models/any:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`},
			{"/gemini/v1beta/models/any:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`},
			{"/gemini/v1beta/models/any:countTokens", `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`},
		},
	}
}

// TestGoldenRequests: each documented backend is asked as its vendor documents it. The pages are cited in internal/core/models/kinds.go. Every kind
// has an example.
func TestGoldenRequests(t *testing.T) {
	list := documented(t)
	missing := map[string]bool{}
	for _, k := range coremodels.Kinds() {
		missing[k.Name] = true
	}
	keys := entries(t)
	hosts := []string{"oauth2.googleapis.com"}
	for _, b := range list {
		delete(missing, b.Kind)
		u, err := url.Parse(b.BaseURL)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, u.Hostname())
		if b.Key != "" && keys[b.Key] == "" {
			keys[b.Key] = "key-of-" + b.Key
		}
	}
	if len(missing) > 0 {
		t.Errorf("docs/reference/backends.md has no example of %v", missing)
	}
	v := newVendors(t, hosts)
	for _, b := range list {
		t.Run(b.Name, func(t *testing.T) {
			b.BaseURL = strings.Replace(b.BaseURL, "http://", "https://", 1) // the proxy of the test carries TLS alone
			b.Proxy, b.ProxyKey, b.CA = v.proxy.URL, "proxy", v.ca
			got := v.requests(t, b, keys)
			file := filepath.Join("testdata", "requests", b.Name+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // it is source code
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // it is source code
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the requests differ; where that is meant, run this test with -update (-want +got):\n%s", diff)
			}
		})
	}
}

// requests that a backend gets when it is asked every question of its dialects.
func (v *vendors) requests(t *testing.T, b coremodels.Backend, keys map[string]string) string {
	t.Helper()
	clock := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	table, err := modelserver.NewTable(coremodels.Config{Backends: []coremodels.Backend{b}}, keys, backends.Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	var log bytes.Buffer
	w := &world{t: t, silence: time.Minute, reserved: map[string]bool{}}
	limits := quick()
	limits.PerFeature = 0 // the slot of a call is free only after its answer has come
	w.server = httptest.NewServer(modelserver.New(modelserver.Options{
		Authorizer: w, Ledger: w, Table: func() *modelserver.Table { return table }, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil)), Limits: limits, Observe: w.observe,
	}))
	t.Cleanup(w.server.Close)
	w.refs = []policy.ModelRef{{Role: "primary", Backend: b.Name, Model: b.Models[0].Name}}
	var out strings.Builder
	for _, d := range b.Dialects {
		for _, q := range questions()[d] {
			answer, text := w.ask("documented", http.MethodPost, q[0], q[1], "Anthropic-Beta", "claude-code-20250219,interleaved-thinking-2025-05-14")
			if answer.StatusCode == http.StatusNotFound {
				fmt.Fprintf(&out, "# %s is not served\n\n", q[0])
				continue
			}
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d %s\n%s", q[0], answer.StatusCode, text, log.String())
			}
			fmt.Fprintf(&out, "# %s\n%s\n", q[0], <-v.asked)
		}
	}
	for name, key := range keys {
		if strings.Contains(log.String(), key) {
			t.Errorf("the log has the key %s", name)
		}
	}
	return out.String()
}
