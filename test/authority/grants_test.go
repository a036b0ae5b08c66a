// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// grant is one verb on one resource, such as "create pods/exec" or "patch tidewaiter.dev/features".
type grant struct{ verb, resource string }

func (g grant) String() string { return g.verb + " " + g.resource }

// grants are what the roles for people allow: Kubernetes' own view, edit and admin, and ours. There is no controller
// here that aggregates ClusterRoles: this reads the parts by the labels that it would go by.
func grants(t *testing.T) map[grant][]string {
	t.Helper()
	var roles rbacv1.ClusterRoleList
	if err := env.Client.List(t.Context(), &roles); err != nil {
		t.Fatal(err)
	}
	all := map[grant][]string{}
	for _, role := range roles.Items {
		if !forPeople(role) {
			continue
		}
		for _, rule := range role.Rules {
			for _, g := range expand(t, role.Name, rule) {
				all[g] = append(all[g], role.Name)
			}
		}
	}
	if len(all) < 100 {
		t.Fatalf("only %d grants: the roles are not read as they should be", len(all))
	}
	return all
}

// forPeople reports whether a ClusterRole is a part of view, edit or admin, or one of ours for people.
func forPeople(role rbacv1.ClusterRole) bool {
	for _, builtin := range []string{"view", "edit", "admin"} {
		if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+builtin] == "true" || role.Name == builtin {
			return true
		}
	}
	ours := strings.HasPrefix(role.Name, "tidewaiter-")
	return ours && !slices.Contains([]string{"tidewaiter-manager", "tidewaiter-gateway", "tidewaiter-view-registration"}, role.Name)
}

func expand(t *testing.T, role string, rule rbacv1.PolicyRule) []grant {
	t.Helper()
	var list []grant
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				name := strings.TrimPrefix(group+"/"+resource, "/")
				if slices.Contains([]string{group, resource, verb}, "*") {
					t.Errorf("role %s grants %q: what it allows cannot be looked at one by one", role, verb+" "+name)
				}
				list = append(list, grant{verb, name})
			}
		}
	}
	return list
}
