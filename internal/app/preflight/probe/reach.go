// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/preflight"
)

// Wanted is a server to reach.
type Wanted struct {
	URL string `json:"url"`
	// CA vouches for it, as PEM; empty: the CAs of the system.
	CA string `json:"ca,omitempty"`
	// Proxy is an HTTP proxy on the way, or empty.
	Proxy string `json:"proxy,omitempty"`
}

const (
	// reachTries and reachTime bound the tries: names may take a moment until a new pod can look them up.
	reachTries = 3
	reachTime  = 4 * time.Second
)

// reach asks the server for an answer, whichever it is. It sends no credential, so the certificate is looked at, and no reason not to ask.
func (w Wanted) reach(ctx context.Context) preflight.Target {
	var t preflight.Target
	for range reachTries {
		if t = w.ask(ctx); t.Error == "" || ctx.Err() != nil {
			return t
		}
		rest(ctx, time.Second)
	}
	return t
}

func (w Wanted) ask(ctx context.Context) (t preflight.Target) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	transport, err := w.transport(&t)
	if err != nil {
		return preflight.Target{Error: brief(err)}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL, nil)
	if err != nil {
		return preflight.Target{Error: brief(err)}
	}
	answer, err := transport.RoundTrip(request)
	switch {
	case err != nil && strings.Contains(err.Error(), "remote error: tls"):
		// It wants a certificate of its client: somebody is there.
		t.Answer = brief(err)
	case err != nil:
		t.Error = brief(err)
	default:
		_ = answer.Body.Close()
		t.Answer = fmt.Sprintf("status %d", answer.StatusCode)
		if answer.StatusCode >= http.StatusInternalServerError {
			t.Answer, t.Error = "", t.Answer
		}
	}
	return t
}

// transport notes in t what it sees on the way.
func (w Wanted) transport(t *preflight.Target) (*http.Transport, error) {
	var roots *x509.CertPool
	if w.CA != "" {
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM([]byte(w.CA)) {
			return nil, errors.New("ca has no certificate in PEM")
		}
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				if at, err := netip.ParseAddrPort(connection.RemoteAddr().String()); err == nil {
					ip := at.Addr().Unmap()
					t.Private = ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast()
				}
			}
			return connection, err
		},
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			// Looked at below, and told.
			InsecureSkipVerify: true,
			VerifyConnection: func(state tls.ConnectionState) error {
				options := x509.VerifyOptions{DNSName: state.ServerName, Roots: roots, Intermediates: x509.NewCertPool()}
				for _, c := range state.PeerCertificates[1:] {
					options.Intermediates.AddCert(c)
				}
				if _, err := state.PeerCertificates[0].Verify(options); err != nil {
					t.Untrusted = brief(err)
				}
				return nil
			},
		},
	}
	if w.Proxy != "" {
		proxy, err := url.Parse(w.Proxy)
		if err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	return transport, nil
}
