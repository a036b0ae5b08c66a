// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"time"
)

// requestTimeout is for one request; a start makes many.
const requestTimeout = 5 * time.Second

// api asks the API server as the administrator. It exists because polling with kubectl would cost a fifth of a second
// of a core each time.
type api struct {
	server string
	client *http.Client
}

// newAPI reads a kubeconfig of the form that this driver writes.
func newAPI(kubeconfig string) (*api, error) {
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	field := func(name string) string {
		found := regexp.MustCompile(`(?m)^\s*` + name + `: (\S+)$`).FindSubmatch(content)
		if found == nil {
			return ""
		}
		return string(found[1])
	}
	data := func(name string) []byte {
		decoded, err := base64.StdEncoding.DecodeString(field(name))
		if err != nil {
			return nil // found wanting below
		}
		return decoded
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(data("certificate-authority-data")) {
		return nil, fmt.Errorf("kubeconfig %s: it has no certificate authority", kubeconfig)
	}
	pair, err := tls.X509KeyPair(data("client-certificate-data"), data("client-key-data"))
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return &api{
		server: field("server"),
		client: &http.Client{
			Timeout: requestTimeout,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{
				RootCAs: authorities, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
			}},
		},
	}, nil
}

// get reads an object into into, which may be nil.
func (a *api) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server+path, nil)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", path, response.Status, body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}

// nodeReady checks that the node is ready, by its own word after since.
func (a *api) nodeReady(ctx context.Context, name string, since time.Time) error {
	var lease struct {
		Spec struct{ RenewTime time.Time }
	}
	if err := a.get(ctx, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+name, &lease); err != nil {
		return err
	}
	if lease.Spec.RenewTime.Before(since) {
		return errors.New("it has not reported yet")
	}
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := a.get(ctx, "/api/v1/nodes/"+name, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" {
			if condition.Status == "True" {
				return nil
			}
			return errors.New(condition.Message)
		}
	}
	return errors.New("it has not reported its condition yet")
}

// resolves checks that a DNS server knows a name.
func resolves(ctx context.Context, server, name string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(server, "53"))
	}}
	_, err := resolver.LookupHost(ctx, name)
	return err
}
