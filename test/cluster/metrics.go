// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names that a scraper knows.
const (
	metricsPort   = 8445
	metricsReader = "tidewaiter-metrics-reader"
	bundle        = "tidewaiter-ca"
	bundleKey     = "ca.crt"
	// ManagerCertificate and GatewayCertificate are the Services that the certificates are for.
	ManagerCertificate = "tidewaiter-intake"
	GatewayCertificate = "tidewaiter-gateway"
)

// Scraper lets the account "default" of a namespace read metrics, as long as the namespace is there, and returns its token for ten minutes.
func (c *Cluster) Scraper(ctx context.Context, namespace string) (token string, err error) {
	ns := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return "", fmt.Errorf("find the namespace of the scraper: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: "scraper-" + namespace, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: namespace, UID: ns.UID}},
		},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "default"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReader},
	}
	if err := c.replace(ctx, binding); err != nil {
		return "", err
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + namespace + ":default", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}}
	if err := Until(ctx, "the scraper's binding to count", func(ctx context.Context) (bool, error) {
		r, err := c.Clientset.AuthorizationV1().SubjectAccessReviews().Create(ctx, may, metav1.CreateOptions{})
		return err == nil && r.Status.Allowed, err
	}); err != nil {
		return "", err
	}
	err = Until(ctx, "the scraper to have a token", func(ctx context.Context) (bool, error) {
		r, err := c.Clientset.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "default",
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}, metav1.CreateOptions{})
		if err == nil {
			token = r.Status.Token
		}
		return err == nil, err
	})
	return token, err
}

// Metrics reads the metrics of a pod of Tidewaiter, with a token if there is one. It trusts the bundle for scrapers, and wants the
// certificate of a Service.
func (c *Cluster) Metrics(ctx context.Context, pod, service, token string) (code int, body string, err error) {
	var ca corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: SystemNamespace, Name: bundle}, &ca); err != nil {
		return 0, "", fmt.Errorf("read the CA's bundle: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca.Data[bundleKey])) {
		return 0, "", errors.New("the CA's bundle has no certificate")
	}
	port, stop, err := c.Forward(SystemNamespace, pod, metricsPort)
	if err != nil {
		return 0, "", err
	}
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://localhost:%d/metrics", port), nil)
	if err != nil {
		return 0, "", fmt.Errorf("ask pod %s for metrics: %w", pod, err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	scraper := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: pool, ServerName: service + "." + SystemNamespace + ".svc", MinVersion: tls.VersionTLS12,
	}}}
	answer, err := scraper.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("ask pod %s for metrics: %w", pod, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, "", fmt.Errorf("read the metrics of pod %s: %w", pod, err)
	}
	return answer.StatusCode, string(text), nil
}
