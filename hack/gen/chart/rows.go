// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// placement says in which template objects are, and when they are there. The first that holds an object counts.
type placement struct {
	file string
	// kinds and component select objects; empty ones select all.
	kinds     []string
	component string
	// when is a template expression; empty means always.
	when string
}

func (p placement) holds(o *object) bool {
	return (p.kinds == nil || slices.Contains(p.kinds, o.kind)) && (p.component == "" || p.component == o.component)
}

func places() []placement {
	kinds := func(names ...string) []string { return names }
	return []placement{
		// The namespace of a release exists before its objects: whoever makes it there has made it.
		{"namespace.yaml", kinds("Namespace"), "", `ne .Release.Namespace "tidewaiter-system"`},
		{"crds.yaml", kinds("CustomResourceDefinition"), "", ".Values.crds.install"},
		{"view.yaml", kinds("NetworkPolicy"), "view", "and .Values.view.enabled .Values.networkPolicy.enabled"},
		{"view.yaml", kinds("APIService"), "", ".Values.view.enabled"},
		{"view.yaml", nil, "view", ".Values.view.enabled"},
		{"network-policy.yaml", kinds("NetworkPolicy"), "", ".Values.networkPolicy.enabled"},
		{"admission.yaml", kinds("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"), "", ""},
		{"metrics.yaml", kinds("ServiceMonitor"), "", ".Values.metrics.serviceMonitor.enabled"},
		{"metrics.yaml", kinds("PrometheusRule"), "", ".Values.metrics.prometheusRule.enabled"},
		{"rbac.yaml", kinds("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"), "", ""},
		{"manager.yaml", kinds("PodDisruptionBudget"), "manager", ".Values.controller.podDisruptionBudget.enabled"},
		{"manager.yaml", nil, "manager", ""},
		{"manager.yaml", nil, "metrics", ""},
		{"gateway.yaml", kinds("PodDisruptionBudget"), "gateway", ".Values.gateway.podDisruptionBudget.enabled"},
		{"gateway.yaml", kinds("PersistentVolumeClaim"), "gateway", "not " + postgres},
		{"gateway.yaml", nil, "gateway", ""},
		{"gateway.yaml", nil, "gateway-metrics", ""},
	}
}

// workload is a Deployment.
type workload string

const (
	manager workload = "Deployment/tidewaiter-manager"
	gateway workload = "Deployment/tidewaiter-gateway"
)

// podSpec is the path of its pod's spec.
const podSpec = "spec.template.spec"

// container is the path of a container.
func (workload) container(name string) string { return podSpec + ".containers[" + name + "]" }

// rest, as the name of an added field, stands for fields of a map that users name.
const rest = "*"

// postgres is true where the ledger is in a PostgreSQL.
const postgres = ".Values.gateway.ledger.postgresSecretName"

// row is one thing that values change in objects.
type row struct {
	// object is Kind/name; the name * stands for all of a kind.
	object string
	// path of a part that is there. See descend.
	path string
	// add is the name of a field that is added to the map at the path, rest for several of them, and "-" for an element behind those of a list.
	add string
	// put is what stands there: text or a block. The part stays as it is if put is nil.
	put any
	// when is a template expression: the part is there if it is true.
	when string
}

func rows() []row {
	const ledger = podSpec + ".volumes[ledger]"
	return slices.Concat(
		[]row{
			{object: "CustomResourceDefinition/*", path: "metadata.annotations", add: "helm.sh/resource-policy", put: text("keep"), when: ".Values.crds.keep"},
			{object: "ServiceMonitor/*", path: "metadata.labels", add: rest, put: block(".Values.metrics.serviceMonitor.additionalLabels")},
			{object: "ServiceMonitor/*", path: "spec.endpoints[0]", add: "interval", put: text("{{ .Values.metrics.serviceMonitor.interval | quote }}"), when: ".Values.metrics.serviceMonitor.interval"},
			{object: "PrometheusRule/*", path: "metadata.labels", add: rest, put: block(".Values.metrics.prometheusRule.additionalLabels")},
			{object: "PrometheusRule/*", path: "spec.groups[tidewaiter]", add: "interval", put: text("{{ .Values.metrics.prometheusRule.interval | quote }}"), when: ".Values.metrics.prometheusRule.interval"},

			{object: string(manager), path: manager.container("manager") + ".args[--image=]", put: text(`{{ printf "--image=%s" (include "tidewaiter.image" .) | quote }}`)},
			{object: string(manager), path: manager.container("manager") + ".args[--view-bind-address=]", when: ".Values.view.enabled"},
			{object: string(manager), path: manager.container("manager") + ".ports[view]", when: ".Values.view.enabled"},
			{object: string(manager), path: manager.container("manager") + ".args", add: "-", put: text("--user-namespaces={{ .Values.controller.userNamespaces }}"), when: `ne (toString .Values.controller.userNamespaces) "auto"`},

			{object: string(gateway), path: gateway.container("gateway") + ".args", add: "-", put: text("--ledger-size={{ int64 .Values.gateway.ledger.maxBytes }}"), when: ".Values.gateway.ledger.maxBytes"},
			{object: string(gateway), path: podSpec + ".volumes[ledger-url].secret.secretName", put: text("{{ " + postgres + ` | default "tidewaiter-ledger" | quote }}`)},
			{object: string(gateway), path: podSpec + ".volumes[ledger-url].secret.optional", put: text("{{ empty " + postgres + " }}")},
			{object: string(gateway), path: ledger + ".persistentVolumeClaim", when: "not " + postgres},
			{object: string(gateway), path: ledger, add: "emptyDir", put: map[string]any{}, when: postgres},
			{object: "PersistentVolumeClaim/tidewaiter-ledger", path: "spec.resources.requests.storage", put: text("{{ .Values.gateway.ledger.volume.size | quote }}")},
			{
				object: "PersistentVolumeClaim/tidewaiter-ledger", path: "spec", add: "storageClassName", put: text("{{ .Values.gateway.ledger.volume.storageClassName | quote }}"),
				when: ".Values.gateway.ledger.volume.storageClassName",
			},
		},
		manager.rows("manager", ".Values.controller."), gateway.rows("gateway", ".Values.gateway."),
	)
}

// rows are those that the two Deployments have alike.
func (w workload) rows(container, values string) []row {
	in := w.container(container)
	all := []row{
		{path: "spec.replicas", put: text("{{ " + values + "replicas }}")},
		{path: in + ".image", put: text(`{{ include "tidewaiter.image" . | quote }}`)},
		{path: in, add: "imagePullPolicy", put: text("{{ .Values.image.pullPolicy }}"), when: ".Values.image.pullPolicy"},
		{path: in + ".resources", put: block(values + "resources")},
		{path: in + ".securityContext", put: block(values + "securityContext")},
		{path: in + ".args", add: "-", put: text("--log-level={{ .Values.log.level }}"), when: ".Values.log.level"},
		{path: in + ".args", add: "-", put: text("--log-format={{ .Values.log.format }}"), when: `ne .Values.log.format "json"`},
		{path: in + ".args", add: "-", put: block(values + "extraArgs")},
		{path: podSpec + ".securityContext", put: block(values + "podSecurityContext")},
		{path: podSpec + ".topologySpreadConstraints", put: block(values + "topologySpreadConstraints")},
		{path: podSpec, add: "imagePullSecrets", put: block(".Values.imagePullSecrets")},
		{path: podSpec, add: "priorityClassName", put: text("{{ " + values + "priorityClassName | quote }}"), when: values + "priorityClassName"},
		{path: podSpec, add: "nodeSelector", put: block(values + "nodeSelector")},
		{path: podSpec, add: "tolerations", put: block(values + "tolerations")},
		{path: podSpec, add: "affinity", put: block(values + "affinity")},
	}
	for i := range all {
		all[i].object = string(w)
	}
	return all
}
