// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestIssue(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	authority, err := NewAuthority("test", now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM)
	tests := map[string]struct {
		subject Subject
		usage   x509.ExtKeyUsage
		host    string
		wantErr bool
	}{
		"client":                  {subject: Subject{Name: "a", Groups: []string{"g"}}, usage: x509.ExtKeyUsageClientAuth},
		"client as server":        {subject: Subject{Name: "a"}, usage: x509.ExtKeyUsageServerAuth, wantErr: true},
		"server by name":          {subject: Subject{Name: "a", Hosts: []string{"a.b", "10.0.0.1"}}, usage: x509.ExtKeyUsageServerAuth, host: "a.b"},
		"server by address":       {subject: Subject{Name: "a", Hosts: []string{"a.b", "10.0.0.1"}}, usage: x509.ExtKeyUsageServerAuth, host: "10.0.0.1"},
		"server of another name":  {subject: Subject{Name: "a", Hosts: []string{"a.b"}}, usage: x509.ExtKeyUsageServerAuth, host: "c.d", wantErr: true},
		"common name is no host":  {subject: Subject{Name: "a.b", Hosts: []string{"c.d"}}, usage: x509.ExtKeyUsageServerAuth, host: "a.b", wantErr: true},
		"server is a client, too": {subject: Subject{Name: "a", Hosts: []string{"a.b"}}, usage: x509.ExtKeyUsageClientAuth},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pair, err := authority.Issue(test.subject, now)
			if err != nil {
				t.Fatal(err)
			}
			both, err := tls.X509KeyPair(pair.Certificate, pair.Key)
			if err != nil {
				t.Fatal(err)
			}
			_, err = both.Leaf.Verify(x509.VerifyOptions{
				Roots: roots, DNSName: test.host, CurrentTime: now.Add(time.Hour), KeyUsages: []x509.ExtKeyUsage{test.usage},
			})
			if (err != nil) != test.wantErr {
				t.Errorf("verification: %v, want an error: %t", err, test.wantErr)
			}
			if both.Leaf.Subject.CommonName != test.subject.Name {
				t.Errorf("common name %q, want %q", both.Leaf.Subject.CommonName, test.subject.Name)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	root := t.TempDir()
	cluster := Cluster{Node: "n", NodeIP: "10.0.0.2", ServiceIP: "10.1.0.1"}
	if err := Write(root, cluster, time.Now()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(root, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && path != root && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(root, cluster, time.Now()); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(root, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("a second write made another authority")
	}
}

func TestEtcdTrustsOnlyItsOwn(t *testing.T) {
	root := t.TempDir()
	if err := Write(root, Cluster{Node: "n", NodeIP: "10.0.0.2", ServiceIP: "10.1.0.1"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	load := func(name string) (tls.Certificate, *x509.CertPool) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(root, "pki", name+".crt"), filepath.Join(root, "pki", name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(root, "pki", "etcd-ca.crt"))
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(content)
		return pair, pool
	}
	for name, wantTrusted := range map[string]bool{"apiserver-etcd-client": true, "apiserver-kubelet-client": false, "front-proxy-client": false} {
		pair, pool := load(name)
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if (err == nil) != wantTrusted {
			t.Errorf("%s: %v, want it trusted: %t", name, err, wantTrusted)
		}
	}
}
