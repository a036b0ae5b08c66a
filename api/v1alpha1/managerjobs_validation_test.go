// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/internal/testkit/kubetest"
)

// TestTheManagerMakesJobsOfFeaturesOnly: the holder of the manager's token gets no pod with more rights than an agent has.
// That the Jobs which it does make are let through is shown by the tests of controllers/feature, which act as the manager.
func TestTheManagerMakesJobsOfFeaturesOnly(t *testing.T) {
	project := env.Project(t)
	manager := env.As(t, kubetest.Manager)
	base := "metadata: {" + ourJob + ", " + ourLabels + "}\n" + strings.Replace(hardened, "template: {", "template: {metadata: {"+ourLabels+"}, ", 1)
	good := func() string { return base }
	container := func(fields string) string {
		return strings.Replace(base, "{name: agent,", "{name: agent, "+fields+",", 1)
	}
	security := func(fields string) string {
		return strings.Replace(base, "allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}", fields, 1)
	}
	spec := func(fields string) string {
		return strings.Replace(base, "spec: {automount", "spec: {"+fields+", automount", 1)
	}
	const (
		rights     = "the manager makes Jobs whose pods have no rights only"
		alone      = "the manager makes Jobs whose pods stay by themselves only"
		owned      = "the manager makes Jobs of Features only"
		volume     = `volume "v": the manager mounts claims of Features, `
		containers = `container "agent": the manager runs containers without privileges, `
	)
	cases := map[string]struct{ job, wantDenied string }{
		"as it should be":      {good(), ""},
		"another name":         {strings.Replace(base, "name: twf-add-login-1", "name: x", 1), owned},
		"no owner":             {strings.Replace(base, "kind: Feature", "kind: ConfigMap", 1), owned},
		"another owner":        {strings.Replace(base, "apiVersion: tidewaiter.dev/v1alpha1", "apiVersion: v1", 1), owned},
		"another label":        {strings.Replace(base, "tidewaiter.dev/feature: add-login", "tidewaiter.dev/feature: other", 1), owned},
		"a service account":    {spec("serviceAccountName: admin"), rights},
		"its token":            {strings.Replace(base, "automountServiceAccountToken: false", "automountServiceAccountToken: true", 1), rights},
		"its token by default": {strings.Replace(base, "automountServiceAccountToken: false, ", "", 1), rights},
		"host network":         {spec("hostNetwork: true"), alone},
		"host processes":       {spec("hostPID: true"), alone},
		"host memory":          {spec("hostIPC: true"), alone},
		"a node":               {spec("nodeName: control-plane"), alone},
		"root":                 {strings.Replace(base, "{runAsNonRoot: true}", "{}", 1), alone},
		"host path":            {spec("volumes: [{name: v, hostPath: {path: /}}]"), volume},
		"another ConfigMap":    {spec("volumes: [{name: v, configMap: {name: prompts}}]"), volume},
		"another claim":        {spec("volumes: [{name: v, persistentVolumeClaim: {claimName: shop}}]"), volume},
		"a Secret":             {spec("volumes: [{name: v, secret: {secretName: shop-git}}]"), volume},
		"a token":              {spec("volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]"), volume},
		"a token of another":   {spec("volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t, audience: vault}}]}}]"), volume},
		"a projected Secret":   {spec("volumes: [{name: v, projected: {sources: [{secret: {name: shop-git}}]}}]"), volume},
		"CSI":                  {spec("volumes: [{name: v, csi: {driver: x}}]"), volume},
		"a Feature's volumes": {spec("volumes: [{name: v, persistentVolumeClaim: {claimName: twf-add-login-trusted}}, {name: git, secret: {secretName: shop-git}}, " +
			"{name: ca, configMap: {name: tidewaiter-ca}}, {name: tmp, emptyDir: {}}, {name: token, projected: {sources: [{serviceAccountToken: {path: t, audience: tidewaiter}}]}}]"), ""},
		"privileged":             {security("privileged: true, capabilities: {drop: [ALL]}"), containers},
		"escalation":             {security("allowPrivilegeEscalation: true, capabilities: {drop: [ALL]}"), containers},
		"escalation by default":  {security("capabilities: {drop: [ALL]}"), containers},
		"capabilities":           {security("allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [SYS_ADMIN]}"), containers},
		"capabilities that stay": {security("allowPrivilegeEscalation: false"), containers},
		"host port":              {container("ports: [{containerPort: 80, hostPort: 80}]"), containers},
		"env from a Secret":      {container("env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]"), containers},
		"all env of a Secret":    {container("envFrom: [{secretRef: {name: s}}]"), containers},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := create(t, manager, project, object(t, job, c.job), client.DryRunAll)
			if c.wantDenied == "" {
				wantAllowed(t, err)
			} else {
				wantDenied(t, err, "tidewaiter-manager-jobs", c.wantDenied)
			}
		})
	}
	for _, namespace := range []string{"kube-system", "kube-public", kubetest.SystemNamespace} {
		wantDenied(t, create(t, manager, namespace, object(t, job, good())), "tidewaiter-manager-jobs", "no Feature runs in the system namespace "+namespace)
	}
}
