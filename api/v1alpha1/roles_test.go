// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// allVerbs and allResources are what roles for people are tried against; what a role does not list it must not allow.
var (
	allVerbs     = strings.Fields("get list watch create update patch delete deletecollection approve")
	allResources = strings.Fields("features features/status features/finalizers supervisorpolicies supervisorpolicies/status " +
		"templates templates/status checkpoints checkpoints/status")
)

const (
	read  = "get list watch "
	write = "create update patch delete deletecollection "
)

func TestRolesOfPeople(t *testing.T) {
	project := env.Project(t)
	cases := map[string]map[string]string{
		"tidewaiter-viewer":   {"features": read, "supervisorpolicies": read, "templates": read, "checkpoints": read},
		"tidewaiter-editor":   {"features": read + write, "supervisorpolicies": read, "templates": read, "checkpoints": read},
		"tidewaiter-approver": {"features": read + "update patch approve", "checkpoints": read},
		"tidewaiter-admin": {
			"features": read + write, "supervisorpolicies": read + write, "templates": read + write, "checkpoints": read + "delete deletecollection",
		},
	}
	for role, want := range cases {
		t.Run(role, func(t *testing.T) {
			person := env.Person(t, project, "somebody-"+role, role)
			for _, resource := range allResources {
				for _, verb := range allVerbs {
					wanted := slices.Contains(strings.Fields(want[resource]), verb)
					if got := may(t, person, project, verb, "tidewaiter.dev/"+resource); got != wanted {
						t.Errorf("may %s %s: want %v, got %v", verb, resource, wanted, got)
					}
				}
			}
			if may(t, person, kubetest.SystemNamespace, "get", "tidewaiter.dev/features") {
				t.Error("a role in one project reaches into another namespace")
			}
		})
	}
}

// TestRolesAreAggregated: people who have Kubernetes' own view, edit or admin have ours with it (edit contains view,
// and admin contains edit). The verb approve comes with admin alone.
func TestRolesAreAggregated(t *testing.T) {
	want := map[string]string{
		"tidewaiter-viewer": "view", "tidewaiter-editor": "edit", "tidewaiter-approver": "admin", "tidewaiter-admin": "admin",
	}
	for name, into := range want {
		role := &rbacv1.ClusterRole{}
		if err := env.Client.Get(t.Context(), client.ObjectKey{Name: name}, role); err != nil {
			t.Fatal(err)
		}
		for _, builtin := range []string{"view", "edit", "admin"} {
			got := role.Labels["rbac.authorization.k8s.io/aggregate-to-"+builtin] == "true"
			if got != (builtin == into) {
				t.Errorf("%s aggregated to %s: want %v, got %v", name, builtin, builtin == into, got)
			}
		}
	}
}

// TestRolesOfThePrograms: what manager and gateway need they may do, and what would make a stolen token worth having
// they may not.
func TestRolesOfThePrograms(t *testing.T) {
	project := env.Project(t)
	system := kubetest.SystemNamespace
	cases := map[string]struct{ may, mayNot map[string][]string }{
		kubetest.Manager: {
			may: map[string][]string{
				project: {
					"list tidewaiter.dev/features", "patch tidewaiter.dev/features", "patch tidewaiter.dev/features/status", "delete tidewaiter.dev/features",
					"create tidewaiter.dev/checkpoints", "delete tidewaiter.dev/checkpoints", "list tidewaiter.dev/supervisorpolicies",
					"list tidewaiter.dev/templates", "patch tidewaiter.dev/templates/status", "patch tidewaiter.dev/supervisorpolicies/status",
					"list /nodes", "watch /nodes", "get node.k8s.io/runtimeclasses", "create batch/jobs", "delete batch/jobs", "get /pods", "delete /pods", "create /persistentvolumeclaims",
					"patch networking.k8s.io/networkpolicies", "get /configmaps", "patch /configmaps/tidewaiter-ca", "list /configmaps/tidewaiter-ca", "watch /configmaps/tidewaiter-ca", "create events.k8s.io/events",
					"create authentication.k8s.io/tokenreviews",
				},
				system: {
					"create /secrets", "get /secrets/tidewaiter-ca", "update /secrets/tidewaiter-intake-tls", "update /secrets/tidewaiter-gateway-tls",
					"create coordination.k8s.io/leases", "update coordination.k8s.io/leases", "list /services",
				},
			},
			mayNot: map[string][]string{
				project: {
					"get /secrets", "list /secrets", "watch /secrets", "create /secrets", "get /secrets/shop-git", "get /secrets/tidewaiter-ca",
					"create /pods", "patch /pods", "create /pods/exec", "get /pods/log", "create /pods/ephemeralcontainers", "create /serviceaccounts/token",
					"create tidewaiter.dev/features", "approve tidewaiter.dev/features", "update tidewaiter.dev/checkpoints", "patch tidewaiter.dev/templates",
					"patch tidewaiter.dev/supervisorpolicies", "patch /configmaps/prompts", "create /configmaps", "delete /configmaps", "list /configmaps", "watch /configmaps",
					"patch batch/jobs", "update batch/jobs", "patch /persistentvolumeclaims", "delete /persistentvolumeclaims",
					"create rbac.authorization.k8s.io/rolebindings", "create rbac.authorization.k8s.io/clusterrolebindings", "impersonate /users",
					"get /nodes", "patch /nodes", "create /namespaces", "create apps/deployments", "delete admissionregistration.k8s.io/validatingadmissionpolicies",
				},
				system: {"list /secrets", "watch /secrets", "get /secrets/somebody-elses", "delete /secrets", "create /pods/exec", "patch apps/deployments"},
			},
		},
		kubetest.Gateway: {
			may: map[string][]string{
				project: {
					"list tidewaiter.dev/features", "watch tidewaiter.dev/supervisorpolicies", "get /pods", "get batch/jobs",
					"create authentication.k8s.io/tokenreviews",
				},
				system: {"get /secrets/tidewaiter-gateway-tls"},
			},
			mayNot: map[string][]string{
				project: {
					"get /secrets", "list /secrets", "list /pods", "delete /pods", "create batch/jobs", "patch tidewaiter.dev/features",
					"patch tidewaiter.dev/features/status", "create tidewaiter.dev/checkpoints", "get /configmaps", "create /serviceaccounts/token",
				},
				system: {"get /secrets/tidewaiter-ca", "get /secrets/tidewaiter-intake-tls", "update /secrets/tidewaiter-gateway-tls", "list /secrets", "get coordination.k8s.io/leases"},
			},
		},
	}
	for user, c := range cases {
		program := env.As(t, user)
		for want, byNamespace := range map[bool]map[string][]string{true: c.may, false: c.mayNot} {
			for namespace, acts := range byNamespace {
				for _, act := range acts {
					verb, what, _ := strings.Cut(act, " ")
					if got := may(t, program, namespace, verb, what); got != want {
						t.Errorf("%s may %s in %s: want %v, got %v", user, act, namespace, want, got)
					}
				}
			}
		}
	}
}

// subresources that can be told from names.
var subresources = strings.Fields("status finalizers exec log token ephemeralcontainers")

// may asks whether somebody may do something with group/resource, group/resource/subresource or group/resource/name.
func may(t *testing.T, who client.Client, namespace, verb, what string) bool {
	t.Helper()
	parts := strings.Split(what, "/")
	attributes := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: parts[0], Resource: parts[1]}
	if len(parts) == 3 {
		if slices.Contains(subresources, parts[2]) {
			attributes.Subresource = parts[2]
		} else {
			attributes.Name = parts[2]
		}
	}
	return kubetest.Allowed(t, who, attributes)
}
