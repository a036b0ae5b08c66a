// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backends reaches the providers of models: connections, proxies and client certificates, and credentials. internal/core/models
// decides where a call goes; this package sends it.
package backends

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/dialect"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// Options of clients. Zero values mean the defaults.
type Options struct {
	// Ping is how long an HTTP/2 connection may be silent before the client sends a ping; it defaults to 15 s. Pong is how long the answer may
	// take; it defaults to 10 s. The client gives up a connection on which it cannot write after both.
	Ping, Pong time.Duration
	// Now is the time that signatures have; nil: the clock's.
	Now func() time.Time
}

// A provider counts pings as abuse where they come every few seconds; a load balancer forgets a connection after minutes.
const (
	defaultPing = 15 * time.Second
	defaultPong = 10 * time.Second
)

// Client sends requests to one backend.
type Client struct {
	backend models.Backend
	access  access
	missing []string
	route   *route

	mu sync.Mutex
	// transport has the connections that are in use; another one takes its place where they are not trusted any more.
	transport *http.Transport
}

// access makes a request one that the provider accepts.
type access interface {
	grant(ctx context.Context, r *http.Request, body []byte, key string) error
}

// CredentialError says that there is nothing that the provider could accept.
type CredentialError struct{ err error }

// Error implements error.
func (e *CredentialError) Error() string { return e.err.Error() }

// Unwrap returns its cause.
func (e *CredentialError) Unwrap() error { return e.err }

// New makes the client of a backend with the entries of the gateway's Secret. An entry that is not there is Missing; the error names
// each field that cannot be used.
func New(b models.Backend, entries map[string]string, o Options) (*Client, error) {
	if o.Ping == 0 {
		o.Ping = defaultPing
	}
	if o.Pong == 0 {
		o.Pong = defaultPong
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Client{backend: b}
	for _, name := range []string{b.Key, b.ProxyKey, b.ClientCertificate} {
		if name != "" && entries[name] == "" {
			c.missing = append(c.missing, name)
		}
	}
	route, err := newRoute(b, entries, o)
	if err != nil {
		return nil, err
	}
	c.route, c.transport = route, route.transport()
	kind, _ := models.FindKind(b.Kind)
	switch kind.Credential {
	case models.Key:
	case models.Google:
		c.access = newGoogle(route)
	case models.AWS:
		c.access = newAWS(b.Region, route, o)
	}
	return c, nil
}

// Missing are the entries of the Secret that the backend needs and that are not there.
func (c *Client) Missing() []string { return c.missing }

// Do sends a request with a body, and with a key if there is one. Its answer is in the dialect. Call renew after a request without an
// answer. The next request then makes a new connection, because a device on the way may have forgotten this one, or its server may hang.
// Requests in progress continue. If many requests share a connection, the first call renews it.
func (c *Client) Do(r *http.Request, d dialect.Dialect, key string, body []byte) (answer *http.Response, renew func(), err error) {
	used := c.current()
	renew = func() { c.renew(used) }
	switch {
	case c.access != nil:
		if err := c.access.grant(r.Context(), r, body, key); err != nil {
			return nil, renew, &CredentialError{err}
		}
	case key != "":
		r.Header.Set(c.backend.SendKey(d, key))
	}
	if answer, err = used.RoundTrip(r); err != nil {
		return nil, renew, err
	}
	if _, is := c.access.(*aws); is {
		translate(answer, d)
	}
	return answer, renew, nil
}

func (c *Client) current() *http.Transport {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.transport
}

func (c *Client) renew(used *http.Transport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if used == c.transport {
		c.transport.CloseIdleConnections()
		c.transport = c.route.transport()
	}
}

// Close closes idle connections. Answers in progress continue.
func (c *Client) Close() { c.current().CloseIdleConnections() }

// Accepts says whether the provider accepts the credentials, as far as the status shows: false only for a status that means that it does not.
func (c *Client) Accepts(status int, key string) bool {
	if status == http.StatusForbidden { // AWS and Google say so of a credential, and of a model that the account has no access to
		return c.access == nil && key != ""
	}
	return status != http.StatusUnauthorized
}

// errNoCertificate says that a text in PEM form has no certificate.
var errNoCertificate = errors.New("no certificate in PEM form is in it")

// roots vouch for a backend; nil: the system's.
func roots(ca string) (*x509.CertPool, error) {
	if ca == "" {
		return nil, nil //nolint:nilnil // which is what TLS takes for the system's
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		return nil, errNoCertificate
	}
	return pool, nil
}

// certificate of a client, from an entry with a chain and its key.
func certificate(entry string) ([]tls.Certificate, error) {
	if entry == "" {
		return nil, nil
	}
	pair, err := tls.X509KeyPair([]byte(entry), []byte(entry))
	if err != nil {
		return nil, fmt.Errorf("the entry has no chain of certificates and its key, both in PEM form: %w", err)
	}
	return []tls.Certificate{pair}, nil
}
