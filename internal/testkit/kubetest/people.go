// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Users that tests act as.
const (
	// Manager is the ServiceAccount of the manager, with the roles that are shipped.
	Manager = "system:serviceaccount:" + SystemNamespace + ":tidewaiter-manager"
	// Gateway is the ServiceAccount of the gateway, with the roles that are shipped.
	Gateway = "system:serviceaccount:" + SystemNamespace + ":tidewaiter-gateway"
	// JobController makes the pods of Jobs in a real cluster.
	JobController = "system:serviceaccount:kube-system:job-controller"
)

// ConfigAs is Config for another user: its roles count, and admission sees its name.
func (e *Env) ConfigAs(user string, groups ...string) *rest.Config {
	cfg := rest.CopyConfig(e.Config)
	groups = append([]string{"system:authenticated"}, groups...)
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(account, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return cfg
}

// As is a client that acts as another user.
func (e *Env) As(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	c, err := client.New(e.ConfigAs(user, groups...), client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatalf("connect as %s: %v", user, err)
	}
	return c
}

// Person is a client that acts as a new person, who has these ClusterRoles in the namespace and no others.
func (e *Env) Person(t testing.TB, namespace, name string, clusterRoles ...string) client.Client {
	t.Helper()
	for _, role := range clusterRoles {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "person-"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name + "@" + namespace}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
		if err := e.Client.Create(t.Context(), binding); err != nil {
			t.Fatalf("give %s the role %s: %v", name, role, err)
		}
	}
	person := e.As(t, name+"@"+namespace)
	for _, role := range clusterRoles {
		e.awaitRole(t, person, namespace, role)
	}
	return person
}

// awaitRole waits until the API server's authorizer has seen the binding: it reads RBAC from a cache.
func (e *Env) awaitRole(t testing.TB, person client.Client, namespace, name string) {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: name}, role); err != nil {
		t.Fatalf("look for the role %s: %v", name, err)
	}
	attributes, ok := firstRight(role, namespace)
	if !ok {
		return
	}
	err := until(t.Context(), func(ctx context.Context) (bool, error) {
		return allowed(ctx, person, attributes)
	})
	if err != nil {
		t.Fatalf("the role %s of a new person does not come into effect: %v", name, err)
	}
}

// Project makes a namespace in which Pod Security "restricted" is enforced, and returns its name.
func (e *Env) Project(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "project-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := e.Client.Create(t.Context(), ns); err != nil {
		t.Fatalf("make a project: %v", err)
	}
	return ns.Name
}
