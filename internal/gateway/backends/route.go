// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// dialTime bounds a connection to a backend.
const dialTime = 15 * time.Second

// route is the way to a backend.
type route struct {
	tls     tls.Config
	ca      string
	proxy   *url.URL
	headers http.Header // for the proxy
	options Options
}

func newRoute(b models.Backend, entries map[string]string, o Options) (*route, error) {
	r := &route{ca: b.CA, options: o}
	var err error
	r.tls.MinVersion = tls.VersionTLS12
	if r.tls.RootCAs, err = roots(b.CA); err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	if r.tls.Certificates, err = certificate(entries[b.ClientCertificate]); err != nil && b.ClientCertificate != "" {
		return nil, fmt.Errorf("clientCertificate: %w", err)
	}
	if b.Proxy != "" {
		if r.proxy, err = url.Parse(b.Proxy); err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
	}
	if key := entries[b.ProxyKey]; b.ProxyKey != "" && key != "" {
		// A URL with a password in it would be in errors.
		r.headers = http.Header{"Proxy-Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(key))}}
	}
	return r, nil
}

// transport keeps enough connections for a provider with constant calls. It ignores proxies of the environment, and asks for uncompressed
// answers, because the gateway reads them.
func (r *route) transport() *http.Transport {
	dialer := net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext:         dialer.DialContext,
		TLSClientConfig:     r.tls.Clone(),
		TLSHandshakeTimeout: dialTime,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: r.options.Ping, PingTimeout: r.options.Pong, WriteByteTimeout: r.options.Ping + r.options.Pong},
		MaxIdleConns:        1024,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		WriteBufferSize:     64 << 10, ReadBufferSize: 64 << 10,
		MaxResponseHeaderBytes: 64 << 10,
		ProxyConnectHeader:     r.headers,
	}
	if r.proxy != nil {
		t.Proxy = r.through
	}
	return t
}

// through the proxy goes what is encrypted. The servers that give a pod its credentials are on its node and speak plain HTTP.
func (r *route) through(request *http.Request) (*url.URL, error) {
	if request.URL.Scheme != "https" {
		return nil, nil //nolint:nilnil // which is no proxy
	}
	return r.proxy, nil
}

// tokens is the client that asks for tokens: on the same way, and trusting the system's certificates as well, because what gives tokens is
// another server than the backend. It shows no client certificate, and follows no redirects.
func (r *route) tokens() *http.Client {
	t := r.transport()
	t.TLSClientConfig.Certificates = nil
	if r.ca != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pool.AppendCertsFromPEM([]byte(r.ca))
		t.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{Transport: t, Timeout: tokenTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// tokenTime bounds a question for a token: calls wait for it.
const tokenTime = 10 * time.Second
