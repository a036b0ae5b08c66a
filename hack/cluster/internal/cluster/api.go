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

func (a *api) nodeReady(ctx context.Context, name string) error {
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
	return errors.New("it has not reported yet")
}

func (a *api) deploymentReady(ctx context.Context, namespace, name string) error {
	var deployment struct {
		Metadata struct{ Generation int64 }
		Status   struct {
			ObservedGeneration int64
			ReadyReplicas      int
			UpdatedReplicas    int
		}
	}
	if err := a.get(ctx, "/apis/apps/v1/namespaces/"+namespace+"/deployments/"+name, &deployment); err != nil {
		return err
	}
	status := deployment.Status
	if status.ObservedGeneration < deployment.Metadata.Generation || status.ReadyReplicas == 0 || status.UpdatedReplicas == 0 {
		return fmt.Errorf("%s has no ready pod", name)
	}
	return nil
}
