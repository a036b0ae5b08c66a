// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errNoCertificate is what clients and probes meet until the first certificate is there.
var errNoCertificate = errors.New("no serving certificate yet")

// Certificate is a serving certificate that is replaced while it is in use.
type Certificate struct {
	current atomic.Pointer[tls.Certificate]
}

func (c *Certificate) set(pair *keyPair) { c.current.Store(pair.tlsCertificate()) }

// TLS is the configuration of a server with this certificate; a renewed one counts from the next handshake on.
func (c *Certificate) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if current := c.current.Load(); current != nil {
				return current, nil
			}
			return nil, errNoCertificate
		},
	}
}

// Check is a readiness check: it fails until there is a certificate.
func (c *Certificate) Check(*http.Request) error {
	if c.current.Load() == nil {
		return errNoCertificate
	}
	return nil
}

// Follower takes a serving certificate from a Secret that a manager keeps. It never sees the CA's key.
type Follower struct {
	options Options
	secret  string
	Certificate
}

// NewFollower makes a Follower of a Secret; Start lets it work.
func NewFollower(options Options, secret string) *Follower {
	return &Follower{options: options, secret: secret}
}

// NeedLeaderElection is false: each replica serves.
func (f *Follower) NeedLeaderElection() bool { return false }

// Start follows the Secret until the context ends.
func (f *Follower) Start(ctx context.Context) error {
	return every(ctx, f.options.Clock, func() time.Duration {
		if err := f.Sync(ctx); err != nil {
			if ctx.Err() == nil {
				f.options.Logger.Error(err, "Cannot take the serving certificate; trying again")
			}
			return retryEvery
		}
		return checkEvery
	})
}

// Sync takes the certificate as it is now.
func (f *Follower) Sync(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := f.options.Live.Get(ctx, client.ObjectKey{Namespace: f.options.Namespace, Name: f.secret}, secret); err != nil {
		return fmt.Errorf("read secret %s, which a manager makes: %w", f.secret, err)
	}
	pair, err := decodePair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("secret %s: %w", f.secret, err)
	}
	if pair == nil {
		return fmt.Errorf("secret %s is empty: %w", f.secret, errNoCertificate)
	}
	f.set(pair)
	return nil
}
