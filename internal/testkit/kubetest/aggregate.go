// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// frontProxyName is the common name of the certificate with which the API server forwards requests.
const frontProxyName = "front-proxy-client"

// aggregate lets the API server forward requests to aggregated APIs, as every real one does: with a front-proxy
// certificate of its own CA. It returns the directory that the files are in.
func aggregate(server *envtest.Environment) (string, error) {
	dir, err := os.MkdirTemp("", "kubetest-front-proxy-")
	if err != nil {
		return "", fmt.Errorf("make a directory for the front proxy: %w", err)
	}
	ca, caKey, err := certify("front-proxy-ca", nil, nil)
	if err != nil {
		return dir, err
	}
	own, key, err := certify(frontProxyName, ca, caKey)
	if err != nil {
		return dir, err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return dir, fmt.Errorf("encode the front proxy's key: %w", err)
	}
	files := map[string]*pem.Block{
		"ca.crt":  {Type: "CERTIFICATE", Bytes: ca.Raw},
		"tls.crt": {Type: "CERTIFICATE", Bytes: own.Raw},
		"tls.key": {Type: "EC PRIVATE KEY", Bytes: raw},
	}
	for name, block := range files {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return dir, fmt.Errorf("write the front proxy's files: %w", err)
		}
	}
	server.ControlPlane.GetAPIServer().Configure().
		Set("requestheader-client-ca-file", filepath.Join(dir, "ca.crt")).
		Set("requestheader-allowed-names", frontProxyName).
		Set("requestheader-username-headers", "X-Remote-User").
		Set("requestheader-group-headers", "X-Remote-Group").
		Set("requestheader-extra-headers-prefix", "X-Remote-Extra-").
		Set("proxy-client-cert-file", filepath.Join(dir, "tls.crt")).
		Set("proxy-client-key-file", filepath.Join(dir, "tls.key"))
	return dir, nil
}

// certify makes a certificate; without a parent it is a CA.
func certify(name string, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.ExtKeyUsage = true, true, nil
		template.KeyUsage |= x509.KeyUsageCertSign
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("read a certificate: %w", err)
	}
	return certificate, key, nil
}

// Register registers the APIService of dist/install.yaml until the test ends, for a server at a loopback address: the API
// server reaches no Service here, but it follows an external name.
func (e *Env) Register(t testing.TB, address string) *unstructured.Unstructured {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := readManifests("dist/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() != apiService {
			continue
		}
		name, _, _ := unstructured.NestedString(object.Object, "spec", "service", "name")
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: name}}
		if err := errors.Join(client.IgnoreNotFound(e.Client.Delete(t.Context(), service)), e.Client.Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: name},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		}), unstructured.SetNestedField(object.Object, port, "spec", "service", "port"), e.apply(t.Context(), object)); err != nil {
			t.Fatalf("register the aggregated API: %v", err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(e.Client.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
				t.Errorf("remove the aggregated API: %v", err)
			}
		})
		return object
	}
	t.Fatal("dist/install.yaml has no APIService")
	return nil
}

// apiService is the kind that is not installed: no manager serves it here, and discovery would be incomplete for all tests.
const apiService = "APIService"
