// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WantMetrics reads the metrics at an address with the certificate of a Service: without a token, as an account without permission, and as
// one with permission. It fails the test unless only the last one gets them, with all wanted names.
func (e *Env) WantMetrics(t *testing.T, address, service string, pool *x509.CertPool, want ...string) {
	t.Helper()
	url := "https://" + address + "/metrics"
	if code, body := Ask(t, pool, service, url, ""); code != http.StatusUnauthorized || strings.Contains(body, "tidewaiter") {
		t.Errorf("metrics are given without a token: %d", code)
	}
	if code, body := Ask(t, pool, service, url, e.account(t)); code != http.StatusForbidden || strings.Contains(body, "tidewaiter_") {
		t.Errorf("metrics are given to an account without the right: %d", code)
	}
	token := e.account(t, "tidewaiter-metrics-reader")
	var body string
	// The binding of an account counts once the API server has seen it.
	if err := until(t.Context(), func(context.Context) (bool, error) {
		var code int
		code, body = Ask(t, pool, service, url, token)
		return code == http.StatusOK, nil
	}); err != nil {
		t.Fatalf("metrics are not given to an account that may read them: %v", err)
	}
	for _, metric := range want {
		if !strings.Contains(body, metric) {
			t.Errorf("there is no metric %s", metric)
		}
	}
}

// account is the token of a new ServiceAccount with these ClusterRoles.
func (e *Env) account(t *testing.T, roles ...string) string {
	t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.Project(t), Name: "scraper"}}
	if err := e.Client.Create(t.Context(), sa); err != nil {
		t.Fatal(err)
	}
	for _, role := range roles {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "scraper-"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: sa.Namespace, Name: sa.Name}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
		if err := e.Client.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := e.Client.SubResource("token").Create(t.Context(), sa, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// Ask gets a URL that is served with the certificate of a Service, with a token, if there is one.
func Ask(t *testing.T, pool *x509.CertPool, service, url, token string) (code int, body string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: pool, ServerName: service + "." + SystemNamespace + ".svc", MinVersion: tls.VersionTLS13,
	}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}
