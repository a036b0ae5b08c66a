// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reverseproxy is the baseline of the gateway's benchmarks: a reverse proxy of the standard library.
package reverseproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// headerTime bounds the wait for a request.
const headerTime = 5 * time.Second

// New makes a reverse proxy of the standard library in its fastest form: it keeps connections and reuses buffers. It removes the prefix
// from requests to the next server, whose certificate the PEM in ca verifies.
func New(next, prefix string, ca []byte) (http.Handler, error) {
	target, err := url.Parse(next)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("no certificate in PEM form is given")
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.URL.Path = strings.TrimPrefix(p.Out.URL.Path, prefix)
		},
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConns: 1024, MaxIdleConnsPerHost: 256,
			ForceAttemptHTTP2:  true, // where the next server speaks it, as a gateway does
			DisableCompression: true, WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10,
		},
		FlushInterval: -1, BufferPool: buffers{}, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise the server closes the body of a request when its answer begins. On a busy machine the transport may look only then
		// whether the body has ended, and it closes the connection (https://go.dev/issue/40747).
		_ = http.NewResponseController(w).EnableFullDuplex() // an error says that there is nothing to enable
		proxy.ServeHTTP(w, r)
	}), nil
}

// buffers are used again.
type buffers struct{}

var pool = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Get implements httputil.BufferPool.
func (buffers) Get() []byte { return pool.Get().(*[32 << 10]byte)[:] }

// Put implements httputil.BufferPool.
func (buffers) Put(b []byte) { pool.Put((*[32 << 10]byte)(b)) }

// Main serves calls to the next server, whose prefix it takes away, until the context ends. The directory has the certificate
// that is served with, which is that server's, too: cert.pem and key.pem.
func Main(ctx context.Context, l net.Listener, dir, next, prefix string) error {
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ca, err := os.ReadFile(cert)
	if err != nil {
		return err
	}
	handler, err := New(next, prefix, ca)
	if err != nil {
		return err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // as a gateway does
	server := &http.Server{
		Handler: handler, Protocols: protocols, ReadHeaderTimeout: headerTime, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ServeTLS(l, cert, key); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
