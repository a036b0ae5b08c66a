// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki is Tidewaiter's own certificate authority. It vouches for intake and gateway towards the pods of Features,
// and nothing else. It lives in Secrets of the system namespace. The first manager replica makes it, and it renews itself.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const (
	// caLife is how long a CA vouches.
	caLife = 365 * 24 * time.Hour
	// caOverlap is how long the next CA is in the bundle before it signs. A kubelet brings a changed ConfigMap to a
	// mounted volume within its sync period and cache time, two minutes; the rest is for clusters in trouble.
	caOverlap = 7 * 24 * time.Hour
	// leafLife is how long a serving certificate is valid.
	leafLife = 30 * 24 * time.Hour
	// backdate forgives clocks that differ between nodes.
	backdate = 5 * time.Minute
)

// keyPair is a certificate and its key.
type keyPair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// authorityState is all that is known of the CA: what its Secret holds.
type authorityState struct {
	// signer signs.
	signer *keyPair
	// next is in the bundle already and signs once everybody has had time to take it.
	next *keyPair
	// retired ones still vouch for what they signed.
	retired []*x509.Certificate
}

// advance renews what is due: at two thirds of a CA's life its successor is announced, after the overlap it takes over,
// and a retired CA goes when it has expired. A nil signer is made. Without a change it gives state as it is.
func advance(state authorityState, now time.Time) (next authorityState, changed bool, err error) {
	next = authorityState{signer: state.signer, next: state.next}
	for _, old := range state.retired {
		if now.Before(old.NotAfter) {
			next.retired = append(next.retired, old)
		} else {
			changed = true
		}
	}
	if next.signer == nil || !now.Before(next.signer.certificate.NotAfter) {
		// Nothing to overlap with.
		if next.signer, err = newAuthority(now); err != nil {
			return state, false, err
		}
		next.next = nil
		return next, true, nil
	}
	if next.next == nil && !now.Before(renewAt(next.signer.certificate)) {
		if next.next, err = newAuthority(now); err != nil {
			return state, false, err
		}
		return next, true, nil
	}
	if next.next != nil && !now.Before(next.next.certificate.NotBefore.Add(backdate+caOverlap)) {
		next.retired = append(next.retired, next.signer.certificate)
		next.signer, next.next = next.next, nil
		return next, true, nil
	}
	return next, changed, nil
}

// renewAt is two thirds of a certificate's life.
func renewAt(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) * 2 / 3)
}

// bundle is the PEM of every CA that may vouch now or soon.
func (s authorityState) bundle() []byte {
	var out []byte
	for _, c := range s.all() {
		out = append(out, encodeCertificate(c)...)
	}
	return out
}

func (s authorityState) all() []*x509.Certificate {
	var all []*x509.Certificate
	for _, pair := range []*keyPair{s.signer, s.next} {
		if pair != nil {
			all = append(all, pair.certificate)
		}
	}
	return append(all, s.retired...)
}

func newAuthority(now time.Time) (*keyPair, error) {
	template := &x509.Certificate{
		// Successive CAs need names that differ, or chains could be built to the wrong one.
		Subject:   pkix.Name{Organization: []string{"Tidewaiter"}, CommonName: "Tidewaiter CA " + now.UTC().Format("2006-01-02T15:04:05Z")},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	return sign(template, nil)
}

// names that a serving certificate is for.
type names struct {
	dns       []string
	addresses []netip.Addr
}

func newLeaf(signer *keyPair, wanted names, now time.Time) (*keyPair, error) {
	notAfter := now.Add(leafLife)
	if end := signer.certificate.NotAfter; end.Before(notAfter) {
		notAfter = end
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"Tidewaiter"}, CommonName: wanted.dns[0]},
		NotBefore: now.Add(-backdate), NotAfter: notAfter, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: wanted.dns,
	}
	for _, address := range wanted.addresses {
		template.IPAddresses = append(template.IPAddresses, address.AsSlice())
	}
	return sign(template, signer)
}

// sign makes a key and a certificate for it; without a signer it signs itself.
func sign(template *x509.Certificate, signer *keyPair) (*keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	// 127 random bits: unique without a register (RFC 5280 §4.1.2.2 allows 20 octets).
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	parent, parentKey := template, key
	if signer != nil {
		parent, parentKey = signer.certificate, signer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back certificate: %w", err)
	}
	return &keyPair{certificate: certificate, key: key}, nil
}

// stale says why a serving certificate must be replaced; "" when it need not.
func stale(leaf *keyPair, state authorityState, wanted names, now time.Time) string {
	switch {
	case leaf == nil:
		return "there is none"
	case !now.Before(renewAt(leaf.certificate)):
		return "it is due for renewal"
	case leaf.certificate.CheckSignatureFrom(state.signer.certificate) != nil:
		return "the certificate authority has changed"
	case !wanted.equal(namesOf(leaf.certificate)):
		return "names or addresses have changed"
	}
	return ""
}

func namesOf(c *x509.Certificate) names {
	n := names{dns: c.DNSNames}
	for _, ip := range c.IPAddresses {
		if address, ok := netip.AddrFromSlice(ip); ok {
			n.addresses = append(n.addresses, address.Unmap())
		}
	}
	return n
}

func (n names) equal(other names) bool {
	byAddress := func(a, b netip.Addr) int { return a.Compare(b) }
	return slices.Equal(slices.Sorted(slices.Values(n.dns)), slices.Sorted(slices.Values(other.dns))) &&
		slices.Equal(slices.SortedFunc(slices.Values(n.addresses), byAddress), slices.SortedFunc(slices.Values(other.addresses), byAddress))
}

func encodeCertificate(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func decodeCertificates(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for len(strings.TrimSpace(string(text))) > 0 {
		block, rest := pem.Decode(text)
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("not a PEM certificate")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse certificate: %w", err)
		}
		all, text = append(all, c), rest
	}
	return all, nil
}

// decodePair reads a certificate and its key, which must belong together; nil when both are absent.
func decodePair(certificate, key []byte) (*keyPair, error) {
	if len(certificate) == 0 && len(key) == 0 {
		return nil, nil
	}
	all, err := decodeCertificates(certificate)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(key)
	if len(all) == 0 || block == nil {
		return nil, errors.New("certificate or key is missing")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse key: %w", err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !private.PublicKey.Equal(all[0].PublicKey) {
		return nil, errors.New("the key is not that of the certificate")
	}
	return &keyPair{certificate: all[0], key: private}, nil
}
