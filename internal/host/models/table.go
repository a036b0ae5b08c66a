// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// Table is a configuration that can be used: backends with their keys and connections. It does not change.
type Table struct {
	config  models.Config
	keys    map[string]string
	clients map[string]*http.Transport
}

// NewTable checks a configuration and makes ready what it needs. The keys are by name. A backend whose key is missing is
// there, and says so when it is asked.
func NewTable(config models.Config, keys map[string]string) (*Table, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	t := &Table{config: config, keys: keys, clients: map[string]*http.Transport{}}
	var errs []error
	for i, b := range config.Backends {
		roots := (*x509.CertPool)(nil) // the system's
		if b.CA != "" {
			roots = x509.NewCertPool()
			if !roots.AppendCertsFromPEM([]byte(b.CA)) {
				errs = append(errs, fmt.Errorf("backends[%d].ca: no certificate in PEM form is in it", i))
			}
		}
		t.clients[b.Name] = transport(roots)
	}
	return t, errors.Join(errs...)
}

// transport keeps enough connections for a provider that is asked all the time. It follows no proxy of the environment, and
// asks for answers as they are: what is compressed could not be looked at.
func transport(roots *x509.CertPool) *http.Transport {
	dialer := net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: dialTime,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        1024,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		WriteBufferSize:     64 << 10, ReadBufferSize: 64 << 10,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// Ready says of each backend whether it has the key that it needs.
func (t *Table) Ready() map[string]bool {
	ready := make(map[string]bool, len(t.config.Backends))
	for _, b := range t.config.Backends {
		ready[b.Name] = b.Key == "" || t.keys[b.Key] != ""
	}
	return ready
}

// Close gives idle connections back. Answers under way go on.
func (t *Table) Close() {
	for _, c := range t.clients {
		c.CloseIdleConnections()
	}
}
