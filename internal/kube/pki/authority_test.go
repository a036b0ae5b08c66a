// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"maps"
	"net/netip"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func intakeNames() names {
	return names{dns: []string{"tidewaiter-intake.tidewaiter-system.svc"}, addresses: []netip.Addr{netip.MustParseAddr("10.96.0.7")}}
}

// verify is what a client does that trusts a bundle.
func verify(bundle []byte, leaf *x509.Certificate, name string, now time.Time) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: now})
	return err
}

// TestFiveYears lets replicas look after the certificates once a day, while a pod reads the bundle only every six days
// (its kubelet is in trouble) and a gateway takes its certificate six days late. At no time does a client refuse a
// server.
func TestFiveYears(t *testing.T) {
	var state authorityState
	var leaf *keyPair
	var lateBundle []byte
	var lateLeaf *x509.Certificate
	signers, leaves, largest := map[string]bool{}, 0, 0
	for day := range 5 * 365 {
		now := start.AddDate(0, 0, day)
		var err error
		if state, _, err = advance(state, now); err != nil {
			t.Fatal(err)
		}
		if stale(leaf, state, intakeNames(), now) != "" {
			if leaf, err = newLeaf(state.signer, intakeNames(), now); err != nil {
				t.Fatal(err)
			}
			leaves++
		}
		signers[state.signer.certificate.Subject.CommonName] = true
		largest = max(largest, len(state.all()))
		if day%6 == 0 {
			lateBundle, lateLeaf = state.bundle(), leaf.certificate
		}
		for name, err := range map[string]error{
			"a pod that is up to date": verify(state.bundle(), leaf.certificate, intakeNames().dns[0], now),
			"a pod by address":         verify(state.bundle(), leaf.certificate, "10.96.0.7", now),
			"a pod with a late bundle": verify(lateBundle, leaf.certificate, intakeNames().dns[0], now),
			"a late server":            verify(state.bundle(), lateLeaf, intakeNames().dns[0], now),
		} {
			if err != nil {
				t.Fatalf("day %d, %s: %v", day, name, err)
			}
		}
		if end := leaf.certificate.NotAfter; end.After(state.signer.certificate.NotAfter) {
			t.Fatalf("day %d: the certificate outlives its CA", day)
		}
	}
	if len(signers) != 8 || largest > 3 {
		t.Errorf("%d CAs in five years, up to %d in the bundle", len(signers), largest)
	}
	// A certificate has 30 days and is renewed after 20, and once more for each new CA.
	if leaves < 90 || leaves > 105 {
		t.Errorf("%d serving certificates in five years", leaves)
	}
}

func TestAdvance(t *testing.T) {
	first, changed, err := advance(authorityState{}, start)
	if err != nil || !changed || first.signer == nil {
		t.Fatalf("no CA at the start: %v, %v", changed, err)
	}
	same, changed, err := advance(first, start.AddDate(0, 0, 200))
	if err != nil || changed || same.signer != first.signer {
		t.Errorf("after 200 days: %v, %v", changed, err)
	}
	announced, changed, err := advance(first, start.AddDate(0, 0, 250))
	if err != nil || !changed || announced.signer != first.signer || announced.next == nil {
		t.Fatalf("after 250 days: %v, %v, %+v", changed, err, announced)
	}
	if _, changed, _ := advance(announced, start.AddDate(0, 0, 256)); changed {
		t.Error("the next CA signs before everybody can know it")
	}
	taken, changed, err := advance(announced, start.AddDate(0, 0, 257))
	if err != nil || !changed || taken.signer != announced.next || taken.next != nil || len(taken.retired) != 1 {
		t.Fatalf("after 257 days: %v, %v, %+v", changed, err, taken)
	}
	if without, _, _ := advance(taken, start.AddDate(0, 0, 366)); len(without.retired) != 0 {
		t.Error("an expired CA still vouches")
	}
	asleep, changed, err := advance(first, start.AddDate(3, 0, 0))
	if err != nil || !changed || asleep.signer == first.signer || len(asleep.all()) != 1 {
		t.Errorf("a cluster that slept for three years starts anew: %v, %v", changed, err)
	}
}

func TestStale(t *testing.T) {
	state, _, err := advance(authorityState{}, start)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := advance(authorityState{}, start)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := newLeaf(state.signer, intakeNames(), start)
	if err != nil {
		t.Fatal(err)
	}
	moved := intakeNames()
	moved.addresses = []netip.Addr{netip.MustParseAddr("10.96.0.8")}
	tests := map[string]struct {
		leaf   *keyPair
		state  authorityState
		wanted names
		now    time.Time
		want   string
	}{
		"fresh":       {leaf, state, intakeNames(), start.AddDate(0, 0, 19), ""},
		"missing":     {nil, state, intakeNames(), start, "there is none"},
		"old":         {leaf, state, intakeNames(), start.AddDate(0, 0, 20), "it is due for renewal"},
		"another CA":  {leaf, other, intakeNames(), start, "the certificate authority has changed"},
		"new address": {leaf, state, moved, start, "names or addresses have changed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stale(test.leaf, test.state, test.wanted, test.now); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestTheSecretIsChecked: a Secret that somebody edited is an error that says so, not a CA that vouches for nothing.
func TestTheSecretIsChecked(t *testing.T) {
	state, _, err := advance(authorityState{}, start)
	if err != nil {
		t.Fatal(err)
	}
	if state, _, err = advance(state, start.AddDate(0, 0, 250)); err != nil {
		t.Fatal(err)
	}
	good, err := encodeAuthority(state)
	if err != nil {
		t.Fatal(err)
	}
	read, err := decodeAuthority(good)
	if err != nil || !read.signer.key.Equal(state.signer.key) || !read.next.certificate.Equal(state.next.certificate) {
		t.Fatalf("it does not come back as it was: %v", err)
	}
	for name, change := range map[string]func(map[string][]byte){
		"no key":          func(d map[string][]byte) { delete(d, "tls.key") },
		"no certificate":  func(d map[string][]byte) { delete(d, "tls.crt") },
		"key of another":  func(d map[string][]byte) { d["tls.key"] = d["next.key"] },
		"garbage":         func(d map[string][]byte) { d["tls.crt"] = []byte("garbage") },
		"key as a key":    func(d map[string][]byte) { d["tls.crt"] = d["tls.key"] },
		"half a next one": func(d map[string][]byte) { delete(d, "next.crt") },
		"retired garbage": func(d map[string][]byte) { d["retired.crt"] = []byte("x") },
		"broken PEM of key": func(d map[string][]byte) {
			d["tls.key"] = []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := maps.Clone(good)
			change(data)
			if _, err := decodeAuthority(data); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}
