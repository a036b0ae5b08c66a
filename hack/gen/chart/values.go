// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// value is a value of the chart.
type value struct {
	// name has dots: controller.replicas.
	name string
	// help says what it does. It is in values.yaml, in the schema and on the page.
	help string
	// schema is what the JSON schema says about it, besides help and default.
	schema schema
	// standard is what it is if nobody gives it: a from stands for what an object has.
	standard any
}

// schema is a JSON schema.
type schema map[string]any

// from is a part of an object, by its path.
type from struct {
	object workload
	path   string
}

var (
	boolean = schema{"type": "boolean"}
	words   = schema{"type": "string"}
	dicts   = schema{"type": "object"}
	labels  = schema{"type": "object", "additionalProperties": words}
	lists   = schema{"type": "array", "items": dicts}
	nothing = map[string]any{}
	none    = []any{}
)

func oneOf(choices ...any) schema { return schema{"enum": choices} }
func atLeast(n int) schema        { return schema{"type": "integer", "minimum": n} }
func like(pattern string) schema  { return schema{"type": "string", "pattern": pattern} }

// values lists all values, in the order of values.yaml. Each is in rows, in places or in a template that is written by hand.
func values() []value {
	const claim workload = "PersistentVolumeClaim/tidewaiter-ledger"
	return slices.Concat(
		[]value{
			{"image.repository", "Repository of the image of manager, gateway and watchdogs.", like("^.+$"), "tidewaiter"},
			{"image.tag", "Tag of the image. Defaults to the chart's appVersion.", words, ""},
			{"image.digest", "Digest of the image, such as sha256:…. The nodes then pull this image, whatever the tag says.", like("^(sha256:[0-9a-f]{64})?$"), ""},
			{"image.pullPolicy", "When the nodes pull the image for manager and gateway. Defaults to what Kubernetes does.", oneOf("", "Always", "IfNotPresent", "Never"), ""},
			{"imagePullSecrets", "Secrets in tidewaiter-system to pull the image with, each as {name: …}. Projects need Secrets of their own: `agents.imagePullSecrets` of a SupervisorPolicy names them.", schema{
				"type":  "array",
				"items": schema{"type": "object", "required": []string{"name"}, "properties": schema{"name": words}, "additionalProperties": false},
			}, none},
			{"log.level", "1 logs more than 0.", atLeast(0), 0},
			{"log.format", "Format of the logs of manager and gateway.", oneOf("json", "text"), "json"},
		},
		workloadValues("controller", "manager", manager),
		[]value{
			{
				"controller.userNamespaces", "Whether the pods of Features run in user namespaces. auto means: if all nodes that may run them report user namespaces. Use false for volumes that cannot be mounted with mapped users.",
				oneOf("auto", true, false), "auto",
			},
		},
		workloadValues("gateway", "gateway", gateway),
		[]value{
			{
				"gateway.ledger.postgresSecretName", "Secret in tidewaiter-system whose key url has the URL of a PostgreSQL for the ledger. Then the gateway needs no volume and may have several replicas. If you set it later, Helm deletes the volume claim with the records in it.",
				words, "",
			},
			{"gateway.ledger.maxBytes", "How many bytes the ledger may store before it drops the oldest of the largest Feature. 0 means what its volume has room for, and no limit in PostgreSQL.", atLeast(0), 0},
			{"gateway.ledger.volume.size", "Size of the ledger's volume. You cannot make it smaller later.", like("^[0-9]"), from{claim, "spec.resources.requests.storage"}},
			{"gateway.ledger.volume.storageClassName", "StorageClass of the ledger's volume. Defaults to the cluster's default class.", words, ""},
			{"view.enabled", "Whether the manager serves the aggregated API view.tidewaiter.dev: diffs, turns, the journal.", boolean, true},
			{"crds.install", "Whether the chart has the CRDs. Use false if another tool installs them.", boolean, true},
			{"crds.keep", "Whether `helm uninstall` leaves the CRDs, with all Features, Checkpoints, policies and templates.", boolean, false},
			{"metrics.serviceMonitor.enabled", "Whether to create ServiceMonitors for the Prometheus operator.", boolean, false},
			{"metrics.serviceMonitor.additionalLabels", "Labels by which your Prometheus selects ServiceMonitors.", labels, nothing},
			{"metrics.serviceMonitor.interval", "How often Prometheus scrapes, such as 30s. Defaults to what your Prometheus does.", like("^([0-9]+(ms|s|m|h))*$"), ""},
			{"metrics.prometheusRule.enabled", "Whether to create a PrometheusRule with the alerts.", boolean, false},
			{"metrics.prometheusRule.additionalLabels", "Labels by which your Prometheus selects rules.", labels, nothing},
			{"metrics.prometheusRule.interval", "How often Prometheus evaluates the alerts, such as 1m. Defaults to what your Prometheus does.", like("^([0-9]+(ms|s|m|h))*$"), ""},
			{"metrics.grafanaDashboard.enabled", "Whether to create a ConfigMap with the dashboard for Grafana.", boolean, false},
			{"metrics.grafanaDashboard.additionalLabels", "Labels by which your Grafana finds dashboards.", labels, map[string]any{"grafana_dashboard": "1"}},
			{"networkPolicy.enabled", "Whether NetworkPolicies bound who reaches manager and gateway. The manager isolates the pods of Features in any case.", boolean, true},
		},
	)
}

// workloadValues are those that the two Deployments have alike.
func workloadValues(name, container string, w workload) []value {
	in := w.container(container)
	return []value{
		{name + ".replicas", "Number of pods of the " + container + ". " + map[workload]string{
			manager: "One of them reconciles; all of them serve watchdogs.",
			gateway: "More than one need a PostgreSQL for the ledger.",
		}[w], atLeast(1), from{w, "spec.replicas"}},
		{name + ".resources", "Requests and limits of the " + container + ".", dicts, from{w, in + ".resources"}},
		{name + ".priorityClassName", "PriorityClass of the " + container + "'s pods.", words, ""},
		{name + ".nodeSelector", "Labels of nodes that the " + container + "'s pods may run on.", labels, nothing},
		{name + ".tolerations", "Tolerations of the " + container + "'s pods.", lists, none},
		{name + ".affinity", "Affinity of the " + container + "'s pods.", dicts, nothing},
		{name + ".topologySpreadConstraints", "How the " + container + "'s pods are spread.", lists, from{w, podSpec + ".topologySpreadConstraints"}},
		{name + ".podSecurityContext", "Security context of the " + container + "'s pods.", dicts, from{w, podSpec + ".securityContext"}},
		{name + ".securityContext", "Security context of the " + container + "'s container.", dicts, from{w, in + ".securityContext"}},
		{name + ".podDisruptionBudget.enabled", "Whether a drained node takes one pod of the " + container + " at a time.", boolean, true},
		{name + ".extraArgs", "More flags of the " + container + ", such as --log-format=text.", schema{"type": "array", "items": words}, none},
	}
}

// withDefaults takes defaults from objects where values say so.
func withDefaults(all []value, objects []*object) ([]value, error) {
	for i, v := range all {
		if f, is := v.standard.(from); is {
			part, err := find(objects, f.object, f.path)
			if err != nil {
				return nil, fmt.Errorf("default of %s: %w", v.name, err)
			}
			all[i].standard = part
		}
	}
	return all, nil
}

// valuesFile is values.yaml.
func valuesFile(all []value) []byte {
	var b strings.Builder
	b.WriteString("# Generated by hack/gen/chart. docs/reference/helm-values.md has the same as a table.\n")
	var open []string
	for _, v := range all {
		path := strings.Split(v.name, ".")
		parents, leaf := path[:len(path)-1], path[len(path)-1]
		shared := 0
		for shared < min(len(open), len(parents)) && open[shared] == parents[shared] {
			shared++
		}
		for i := shared; i < len(parents); i++ {
			if i == 0 {
				b.WriteString("\n")
			}
			b.WriteString(strings.Repeat("  ", i) + parents[i] + ":\n")
		}
		if len(parents) == 0 {
			b.WriteString("\n")
		}
		open = parents
		indent := strings.Repeat("  ", len(parents))
		b.WriteString(indent + "# " + v.help + "\n")
		out, err := yaml.Marshal(map[string]any{leaf: plain(v.standard)})
		if err != nil {
			panic(err) // it is a literal, or has been read from YAML
		}
		for line := range strings.Lines(string(out)) {
			b.WriteString(indent + line)
		}
	}
	return []byte(b.String())
}

// plain is a part of an object without the numbers' source text.
func plain(part any) any {
	content, err := json.Marshal(part)
	if err != nil {
		panic(err) // it is a literal, or has been read from YAML
	}
	var out any
	if err := json.Unmarshal(content, &out); err != nil {
		panic(err)
	}
	return out
}

// schemaFile is values.schema.json. It refuses what is not among the values.
func schemaFile(all []value) ([]byte, error) {
	closed := func() schema {
		return schema{"type": "object", "additionalProperties": false, "properties": schema{}}
	}
	top := closed()
	top["$schema"] = "http://json-schema.org/draft-07/schema#"
	top["properties"].(schema)["global"] = schema{"type": "object", "description": "Values of a chart that has this one as a part. Nothing here reads them."}
	for _, v := range all {
		path := strings.Split(v.name, ".")
		at := top["properties"].(schema)
		for _, parent := range path[:len(path)-1] {
			if at[parent] == nil {
				at[parent] = closed()
			}
			at = at[parent].(schema)["properties"].(schema)
		}
		leaf := maps.Clone(v.schema)
		leaf["description"], leaf["default"] = v.help, v.standard
		at[path[len(path)-1]] = leaf
	}
	content, err := json.MarshalIndent(top, "", "  ")
	return append(content, '\n'), err
}

// page is docs/reference/helm-values.md.
func page(all []value) []byte {
	var b strings.Builder
	b.WriteString(`# Helm values

This page lists the values of the chart ` + "`tidewaiter`" + `. [Install](../get-started/install.md#install-with-helm) shows how you use them.
The chart's ` + "`values.schema.json`" + ` refuses values that are not here.

| Value | Type | Default | What it does |
|---|---|---|---|
`)
	for _, v := range all {
		standard, err := json.Marshal(v.standard)
		if err != nil {
			panic(err) // it is a literal, or has been read from YAML
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", v.name, v.schema.kind(), standard, strings.ReplaceAll(v.help, "|", `\|`))
	}
	return []byte(b.String())
}

// kind is how the page calls a type.
func (s schema) kind() string {
	choices, are := s["enum"].([]any)
	if !are {
		return fmt.Sprint(s["type"])
	}
	names := make([]string, 0, len(choices))
	for _, c := range choices {
		if c != "" {
			names = append(names, fmt.Sprintf("`%v`", c))
		}
	}
	return strings.Join(names, ", ")
}
