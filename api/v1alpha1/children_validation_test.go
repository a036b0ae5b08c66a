// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

const (
	claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shop}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	isolation = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: shop}
spec: {podSelector: {matchLabels: {app: shop}}, policyTypes: [Egress]}
`
	ourClaim   = "metadata: {name: twf-add-login-trusted, labels: {tidewaiter.dev/feature: add-login}, " + ownedByUs + "}"
	ourNetwork = "metadata: {name: twf-add-login, labels: {tidewaiter.dev/feature: add-login}, " + ownedByUs + "}"
	ownedByUs  = "ownerReferences: [{apiVersion: tidewaiter.dev/v1alpha1, kind: Feature, name: add-login, uid: 0b5f8f5e-0000-4000-8000-000000000001, controller: true}]"
)

// TestChildrenAreMadeByTheManager: a claim that was made beforehand under a Feature's name would be taken for the trusted
// volume.
func TestChildrenAreMadeByTheManager(t *testing.T) {
	project := env.Project(t)
	person, manager := editor(t, project), env.As(t, kubetest.Manager)
	for base, ours := range map[string]string{claim: ourClaim, isolation: ourNetwork} {
		resource := map[string]string{claim: "persistentvolumeclaims", isolation: "networkpolicies"}[base]
		reserved := `the label tidewaiter.dev/feature and names that begin with "twf-" are reserved for ` + resource + ` that Tidewaiter makes: choose another name and leave the label out`
		for _, metadata := range []string{ours, "metadata: {name: twf-x}", "metadata: {name: null, generateName: twf-}", "metadata: {labels: {tidewaiter.dev/feature: add-login}}"} {
			wantDenied(t, create(t, person, project, object(t, base, metadata)), "tidewaiter-children", reserved)
		}
		wantAllowed(t, create(t, person, project, object(t, base, "")))
		theirs := object(t, base, "")
		theirs.SetNamespace(project)
		wantAllowed(t, create(t, manager, project, object(t, base, ours)))
		made := object(t, base, ours)
		made.SetNamespace(project)

		wantDenied(t, patch(t, person, theirs, "metadata: {labels: {tidewaiter.dev/feature: add-login}}"), "tidewaiter-children", "says what belongs to a Feature: leave it as it is")
		wantDenied(t, patch(t, person, made, "metadata: {labels: {tidewaiter.dev/feature: null}}"), "tidewaiter-children", "says what belongs to a Feature: leave it as it is")
		wantDenied(t, patch(t, person, made, "metadata: {labels: {tidewaiter.dev/feature: other}}"), "tidewaiter-children", "says what belongs to a Feature: leave it as it is")
		wantDenied(t, patch(t, person, made, "metadata: {ownerReferences: null}"), "tidewaiter-children", "leave metadata.ownerReferences as they are")
		wantAllowed(t, patch(t, person, made, "metadata: {annotations: {team: web}}"))
		wantAllowed(t, patch(t, person, theirs, "metadata: {labels: {team: web}}"))
		wantDenied(t, person.Delete(t.Context(), made), "tidewaiter-children", `this object belongs to Feature "add-login" and goes with it: delete the Feature instead`)
		wantDenied(t, person.DeleteAllOf(t.Context(), made, client.InNamespace(project)), "tidewaiter-children", "delete the Feature instead")
		wantAllowed(t, env.As(t, "system:serviceaccount:kube-system:generic-garbage-collector", "system:masters").Delete(t.Context(), made))
	}
}

func TestTheIsolationOfFeaturesStays(t *testing.T) {
	project := env.Project(t)
	person := editor(t, project)
	wantAllowed(t, create(t, env.As(t, kubetest.Manager), project, object(t, isolation, ourNetwork)))
	made := object(t, isolation, ourNetwork)
	made.SetNamespace(project)
	wantDenied(t, patch(t, person, made, "spec: {egress: [{}]}"), "tidewaiter-children", "this network policy isolates the pods of a Feature: leave its spec as it is")
	theirs := existing(t, project, isolation, "")
	wantAllowed(t, patch(t, person, theirs, "spec: {egress: [{}]}"))
}

// TestVolumesOfFeaturesAreTheirOwn: no other pod mounts them, and nothing copies them.
func TestVolumesOfFeaturesAreTheirOwn(t *testing.T) {
	project := env.Project(t)
	person := editor(t, project)
	const (
		mounts = "spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: twf-add-login-trusted}}]}"
		mine   = "spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: shop}}]}"
		copied = `the volume claim "twf-add-login-trusted" belongs to a Feature and is not copied`
	)
	mounted := `the volume claim "twf-add-login-trusted" belongs to a Feature, and only the pods of that Feature mount it: use a claim of your own`
	wantDenied(t, create(t, person, project, object(t, pod, mounts)), "tidewaiter-pods", mounted)
	wantDenied(t, create(t, env.As(t, kubetest.JobController), project, object(t, pod, mounts)), "tidewaiter-pods", mounted)
	wantDenied(t, create(t, env.As(t, kubetest.JobController), project, object(t, pod, "metadata: {"+jobOwner+"}\n"+mounts)), "tidewaiter-pods", mounted)
	wantAllowed(t, create(t, person, project, object(t, pod, mine), client.DryRunAll))
	wantAllowed(t, create(t, env.As(t, kubetest.JobController), project, object(t, pod, "metadata: {"+ourName+", "+ourLabels+", "+jobOwner+"}\n"+mounts), client.DryRunAll))
	wantAllowed(t, create(t, env.Client, project, object(t, pod, mounts), client.DryRunAll))

	for _, source := range []string{
		"dataSource: {kind: PersistentVolumeClaim, name: twf-add-login-trusted}", "dataSourceRef: {kind: PersistentVolumeClaim, name: twf-add-login-trusted}",
	} {
		wantDenied(t, create(t, person, project, object(t, claim, "spec: {"+source+"}")), "tidewaiter-children", copied)
	}
	wantAllowed(t, create(t, person, project, object(t, claim, "spec: {dataSource: {kind: PersistentVolumeClaim, name: shop}}"), client.DryRunAll))
}
