// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

const (
	head  = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	other = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
)

// wantDenied checks that an admission policy refused, with a message that says what to do.
func wantDenied(t *testing.T, err error, policy, message string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "'"+policy+"'") || !strings.Contains(err.Error(), message) {
		t.Errorf("want denied by %s with %q, got %v", policy, message, err)
	}
}

func wantAllowed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("want allowed, got %v", err)
	}
}

// patch changes an object as somebody, by a JSON merge patch in YAML.
func patch(t *testing.T, who client.Client, u *unstructured.Unstructured, change string, opts ...client.PatchOption) error {
	t.Helper()
	return who.Patch(t.Context(), u.DeepCopy(), client.RawPatch(types.MergePatchType, mergePatch(t, change)), opts...)
}

// existing makes an object as a member of system:masters.
func existing(t *testing.T, namespace, base, change string) *unstructured.Unstructured {
	t.Helper()
	u := object(t, base, change)
	u.SetNamespace(namespace)
	if err := env.Client.Create(t.Context(), u); err != nil {
		t.Fatalf("create %s %s: %v", u.GetKind(), u.GetName(), err)
	}
	return u
}

// reader makes a ClusterRole that lets its holder read one object of a resource, and nothing else.
func reader(t *testing.T, resource, name string) string {
	t.Helper()
	return granted(t, resource, name, "get")
}

// granted makes a ClusterRole that grants one verb on one object of a resource.
func granted(t *testing.T, resource, name, verb string) string {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "reader-"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: []string{verb}},
		},
	}
	if err := env.Client.Create(t.Context(), role); err != nil {
		t.Fatalf("create a role: %v", err)
	}
	return role.Name
}

func TestReferencesNeedTheRightToRead(t *testing.T) {
	project := env.Project(t)
	editor := env.Person(t, project, "editor", "tidewaiter-editor")
	shop := env.Person(t, project, "shop", "tidewaiter-editor", reader(t, "secrets", "shop-git"), reader(t, "configmaps", "prompts"))
	admin := env.Person(t, project, "admin", "tidewaiter-admin")
	author := env.Person(t, project, "author", "tidewaiter-admin", reader(t, "configmaps", "texts"))

	const (
		policy  = "tidewaiter-feature-references"
		secret  = "spec: {repository: {credentialsSecretRef: {name: shop-git}}}"
		foreign = "spec: {repository: {credentialsSecretRef: {name: bank-git}}}"
		prompt  = "spec: {prompt: null, promptFrom: {configMapKeyRef: {name: prompts, key: k}}}"
	)
	message := `names the Secret "shop-git", which you may neither read nor use: ask for the verb "use" (or "get") on it in namespace ` + project
	wantDenied(t, create(t, editor, project, object(t, feature, secret)), policy, message)
	wantDenied(t, create(t, shop, project, object(t, feature, foreign)), policy, `names the Secret "bank-git"`)
	wantAllowed(t, create(t, shop, project, object(t, feature, secret), client.DryRunAll))
	user := env.Person(t, project, "user", "tidewaiter-editor", granted(t, "secrets", "shop-git", "use"))
	wantAllowed(t, create(t, user, project, object(t, feature, secret), client.DryRunAll))
	wantDenied(t, create(t, user, project, object(t, feature, foreign)), policy, `names the Secret "bank-git"`)
	wantDenied(t, create(t, env.Person(t, project, "lister", "tidewaiter-editor", granted(t, "secrets", "shop-git", "list")), project, object(t, feature, secret)), policy, message)
	wantAllowed(t, create(t, editor, project, object(t, feature, ""), client.DryRunAll))

	wantDenied(t, create(t, editor, project, object(t, feature, prompt)), policy, `names the ConfigMap "prompts", which you may not read yourself`)
	wantAllowed(t, create(t, shop, project, object(t, feature, prompt), client.DryRunAll))

	made := existing(t, project, feature, secret)
	wantAllowed(t, patch(t, editor, made, "spec: {suspend: true}"))
	wantDenied(t, patch(t, editor, made, prompt), policy, `names the ConfigMap "prompts"`)

	const text = "spec: {text: null, configMapKeyRef: {name: texts, key: k}}"
	wantDenied(t, create(t, admin, project, object(t, template, text)), "tidewaiter-template-references", `names the ConfigMap "texts", which you may not read yourself`)
	wantAllowed(t, create(t, author, project, object(t, template, text), client.DryRunAll))
	wantAllowed(t, create(t, admin, project, object(t, template, ""), client.DryRunAll))
}

func TestApprovalIsAWordOfItsOwn(t *testing.T) {
	project := env.Project(t)
	people := map[string]client.Client{
		"editor":   env.Person(t, project, "editor", "tidewaiter-editor"),
		"approver": env.Person(t, project, "approver", "tidewaiter-approver"),
		"admin":    env.Person(t, project, "admin", "tidewaiter-admin"),
	}
	const (
		waiting  = "spec: {delivery: {approval: Required}}"
		approved = "spec: {delivery: {approval: Required, approvedCommit: " + head + "}}"
		setting  = `setting spec.delivery.approvedCommit needs the verb "approve" on features: ask an approver of namespace `
		lowering = `lowering it needs the verb "approve" on features: ask an approver of namespace `
	)
	cases := map[string]struct {
		who, from, change string
		wantDenied        string
	}{
		"an editor approves":                     {"editor", waiting, approved, setting},
		"an admin approves":                      {"admin", waiting, approved, setting},
		"an approver approves":                   {"approver", waiting, approved, ""},
		"an editor moves the approval":           {"editor", approved, "spec: {delivery: {approvedCommit: " + other + "}}", setting},
		"an approver moves the approval":         {"approver", approved, "spec: {delivery: {approvedCommit: " + other + "}}", ""},
		"an editor withdraws the approval":       {"editor", approved, "spec: {delivery: {approvedCommit: null}}", ""},
		"an editor changes something else":       {"editor", approved, "spec: {priority: 5}", ""},
		"an editor lowers the need":              {"editor", waiting, "spec: {delivery: {approval: None}}", lowering},
		"an editor lowers the need by leaving":   {"editor", waiting, "spec: {delivery: null}", lowering},
		"an editor lowers it when approved":      {"editor", approved, "spec: {delivery: {approval: None}}", lowering},
		"an approver lowers the need":            {"approver", waiting, "spec: {delivery: null}", ""},
		"an editor asks for approval":            {"editor", "", waiting, ""},
		"an editor approves what needs none":     {"editor", "", "spec: {delivery: {approvedCommit: " + head + "}}", setting},
		"an editor asks and approves in one act": {"editor", "", approved, setting},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := existing(t, project, feature, c.from)
			defer func() { wantAllowed(t, env.Client.Delete(t.Context(), u)) }()
			if err := patch(t, people[c.who], u, c.change); c.wantDenied != "" {
				wantDenied(t, err, "tidewaiter-approval", c.wantDenied+project)
			} else {
				wantAllowed(t, err)
			}
		})
	}
	t.Run("an editor creates what is approved", func(t *testing.T) {
		wantDenied(t, create(t, people["editor"], project, object(t, feature, approved)), "tidewaiter-approval", setting+project)
	})
	t.Run("an editor creates what needs approval", func(t *testing.T) {
		wantAllowed(t, create(t, people["editor"], project, object(t, feature, waiting), client.DryRunAll))
	})
}

// TestRecordsAreTheManagers: not even a role with wildcards lets a project's admin write what only Tidewaiter has seen.
func TestRecordsAreTheManagers(t *testing.T) {
	project := env.Project(t)
	everything := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "everything-"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"tidewaiter.dev"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}
	wantAllowed(t, env.Client.Create(t.Context(), everything))
	owner := env.Person(t, project, "owner", everything.Name)
	manager := env.As(t, kubetest.Manager)

	const wantMessage = "is written by the manager of Tidewaiter alone"
	wantDenied(t, create(t, owner, project, object(t, checkpoint, "")), "tidewaiter-records", "checkpoints "+wantMessage)
	wantAllowed(t, create(t, manager, project, object(t, checkpoint, ""), client.DryRunAll))
	changes := map[string]string{
		feature:    "status: {phase: Delivered, head: " + head + "}",
		policy:     "status: {features: 9}",
		template:   "status: {hash: x}",
		checkpoint: "status: {conditions: []}",
	}
	for base, change := range changes {
		u := existing(t, project, base, "")
		status := mergePatch(t, change)
		err := owner.Status().Patch(t.Context(), u.DeepCopy(), client.RawPatch(types.MergePatchType, status))
		wantDenied(t, err, "tidewaiter-records", "/status "+wantMessage)
		wantAllowed(t, manager.Status().Patch(t.Context(), u.DeepCopy(), client.RawPatch(types.MergePatchType, status)))
		if base == checkpoint {
			wantDenied(t, patch(t, owner, u, "metadata: {labels: {tidewaiter.dev/verdict: Invalid}}"), "tidewaiter-records", "checkpoints "+wantMessage)
			continue
		}
		if err := patch(t, owner, u, change); err != nil {
			t.Errorf("%s: a status beside the spec is ignored, not refused: %v", u.GetKind(), err)
		}
	}
}

// TestLabelsForPoliciesAreTheirWriters: an editor who could set or remove them would choose what judges a Feature, and
// people of a project would leave global policies.
func TestLabelsForPoliciesAreTheirWriters(t *testing.T) {
	project := env.Project(t)
	editor := env.Person(t, project, "editor", "tidewaiter-editor")
	admin := env.Person(t, project, "admin", "tidewaiter-admin")
	const (
		name   = "tidewaiter-policy-labels"
		web    = "metadata: {labels: {policy.tidewaiter.dev/team: web}}"
		mobile = "metadata: {labels: {policy.tidewaiter.dev/team: mobile}}"
		empty  = `metadata: {labels: {policy.tidewaiter.dev/tier: ""}}`
		none   = "metadata: {labels: {policy.tidewaiter.dev/team: null}}"
		global = "metadata: {labels: {policy.tidewaiter.dev/global.tier: gold}}"
		left   = "metadata: {labels: {policy.tidewaiter.dev/global.tier: null}}"
	)
	message := "metadata.labels: policy.tidewaiter.dev/team decides which policies apply to the Feature, so it is set by people who may write SupervisorPolicies in namespace " + project
	wantDenied(t, create(t, editor, project, object(t, feature, web)), name, message)
	wantAllowed(t, create(t, editor, project, object(t, feature, "metadata: {labels: {team: web}}"), client.DryRunAll))
	wantAllowed(t, create(t, admin, project, object(t, feature, web)))
	made := object(t, feature, web)
	made.SetNamespace(project)
	wantDenied(t, patch(t, editor, made, mobile), name, message)
	wantDenied(t, patch(t, editor, made, none), name, message)
	wantDenied(t, patch(t, editor, made, empty), name, "policy.tidewaiter.dev/tier decides")
	wantAllowed(t, patch(t, editor, made, "metadata: {labels: {team: web}}\nspec: {priority: 3}"))
	wantAllowed(t, patch(t, admin, made, mobile))
	wantAllowed(t, patch(t, admin, made, none))

	wantDenied(t, patch(t, admin, made, global), name, "policy.tidewaiter.dev/global.tier decides which global policies apply")
	wantAllowed(t, patch(t, env.Client, made, global))
	wantDenied(t, patch(t, admin, made, left), name, "people who may write SupervisorPolicies in namespace "+kubetest.SystemNamespace)
	wantDenied(t, patch(t, editor, made, left), name, "policy.tidewaiter.dev/global.tier decides which global policies apply")
}

// TestWhoPlacesPodsMayCreateThem: a Feature gives its editor no node, priority or image that the editor could not have with a pod.
func TestWhoPlacesPodsMayCreateThem(t *testing.T) {
	project := env.Project(t)
	developer := env.Person(t, project, "developer", "tidewaiter-editor")
	builder := env.Person(t, project, "builder", "tidewaiter-editor", "system:aggregate-to-edit")
	const policy = "tidewaiter-feature-pods"
	for field, change := range map[string]string{
		"spec.agent.scheduling":       "spec: {agent: {scheduling: {nodeSelector: {pool: gpu}}}}",
		"spec.agent.imagePullSecrets": "spec: {agent: {imagePullSecrets: [{name: registry}]}}",
		"spec.agent.runtimeClassName": "spec: {agent: {runtimeClassName: sandbox}}",
	} {
		t.Run(field, func(t *testing.T) {
			plain := existing(t, project, feature, "")
			t.Cleanup(func() { wantAllowed(t, env.Client.Delete(context.Background(), plain)) })
			wantDenied(t, create(t, developer, project, object(t, feature, change)), policy, field+" ")
			wantDenied(t, patch(t, developer, plain, change), policy, "and you may not create pods in namespace "+project)
			wantAllowed(t, create(t, builder, project, object(t, feature, change+"\nmetadata: {name: other}"), client.DryRunAll))
			wantAllowed(t, patch(t, builder, plain, change))
			wantAllowed(t, patch(t, developer, plain, "spec: {suspend: true}"))
			wantDenied(t, patch(t, developer, plain, strings.NewReplacer("gpu", "cpu", "registry", "bank", "sandbox", "other").Replace(change)), policy, field+" ")
			wantAllowed(t, patch(t, developer, plain, "spec: {agent: {scheduling: null, imagePullSecrets: null, runtimeClassName: null}}"))
			wantDenied(t, patch(t, developer, plain, change), policy, field+" ")
		})
	}
}

// TestSecretsAreForTheirImage: a user without permission to create pods cannot have another image pulled with Secrets that somebody else has set.
func TestSecretsAreForTheirImage(t *testing.T) {
	project := env.Project(t)
	developer := env.Person(t, project, "developer", "tidewaiter-editor")
	made := existing(t, project, feature, "spec: {agent: {imagePullSecrets: [{name: registry}]}}")
	wantDenied(t, patch(t, developer, made, "spec: {agent: {image: 'registry.example.com/bank:1'}}"), "tidewaiter-feature-pods", "spec.agent.image is pulled with")
	wantAllowed(t, patch(t, developer, made, "spec: {priority: 2}"))
	wantAllowed(t, patch(t, developer, made, "spec: {agent: {image: 'registry.example.com/bank:1', imagePullSecrets: null}}"))
}

// TestWhoPlacesPodsByPolicyMayCreateThem: the right to write policies alone gives nobody a node, a priority or an image.
func TestWhoPlacesPodsByPolicyMayCreateThem(t *testing.T) {
	project := env.Project(t)
	admin := env.Person(t, project, "admin", "tidewaiter-admin")
	builder := env.Person(t, project, "builder", "tidewaiter-admin", "system:aggregate-to-edit")
	const name = "tidewaiter-policy-pods"
	for _, level := range []string{"defaults", "overrides"} {
		for field, value := range map[string]string{
			"scheduling":       "{tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]}",
			"imagePullSecrets": "[{name: registry}]",
		} {
			path := "spec." + level + ".agents." + field
			t.Run(path, func(t *testing.T) {
				change := fmt.Sprintf("spec: {%s: {agents: {%s: %s}}}", level, field, value)
				plain := existing(t, project, policy, "")
				t.Cleanup(func() { wantAllowed(t, env.Client.Delete(context.Background(), plain)) })
				wantDenied(t, create(t, admin, project, object(t, policy, change+"\nmetadata: {name: other}")), name, path+" ")
				wantDenied(t, patch(t, admin, plain, change), name, "and you may not create pods in namespace "+project)
				wantAllowed(t, patch(t, builder, plain, change))
				wantAllowed(t, patch(t, admin, plain, "spec: {priority: 7}"))
				wantAllowed(t, patch(t, admin, plain, fmt.Sprintf("spec: {%s: {agents: {%s: null}}}", level, field)))
				wantDenied(t, patch(t, admin, plain, change), name, path+" ")
			})
		}
	}
}
