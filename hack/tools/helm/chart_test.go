// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helm checks charts/tidewaiter with Helm's own engine, schema and linter. It is a module of its own, because nothing else of ours needs them.
package helm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

const (
	root     = "../../.."
	chartDir = root + "/charts/tidewaiter"
	notes    = "tidewaiter/templates/NOTES.txt"
)

// objects are Kubernetes objects by Kind/name.
type objects map[string]map[string]any

func load(t *testing.T) *chartv2.Chart {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

// template is what `helm template` gives with values in YAML: the objects, and the notes.
func template(t *testing.T, namespace, values string) (objects, string, error) {
	t.Helper()
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	chart := load(t)
	all, err := util.ToRenderValues(chart, given, common.ReleaseOptions{Name: "tidewaiter", Namespace: namespace, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, "", err
	}
	made := objects{}
	for name, content := range files {
		if strings.HasSuffix(name, ".yaml") {
			made.add(t, name, []byte(content))
		}
	}
	return made, files[notes], nil
}

// parsed has the objects of each content that was parsed: most values leave most templates as they are.
var parsed = map[string]objects{}

// add reads objects of a manifest.
func (o objects) add(t *testing.T, name string, content []byte) {
	t.Helper()
	of, known := parsed[string(content)]
	if !known {
		of = parse(t, name, content)
		parsed[string(content)] = of
	}
	for id, object := range of {
		if o[id] != nil {
			t.Fatalf("%s is there twice", id)
		}
		o[id] = object
	}
}

// parse reads the objects of a manifest.
func parse(t *testing.T, name string, content []byte) objects {
	t.Helper()
	all := objects{}
	for _, document := range bytes.Split(append([]byte("\n"), content...), []byte("\n---\n")) {
		object := map[string]any{}
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, document)
		}
		if len(object) == 0 {
			continue
		}
		metadata := object["metadata"].(map[string]any)
		id := fmt.Sprintf("%v/%v", object["kind"], metadata["name"])
		if all[id] != nil {
			t.Fatalf("%s is there twice", id)
		}
		all[id] = object
	}
	return all
}

// defaults are the objects without any value.
func defaults(t *testing.T) objects {
	t.Helper()
	made, _, err := template(t, "default", "")
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestDefaultsAreTheManifest: without values the chart has what `kustomize build config/default` has, object for object.
func TestDefaultsAreTheManifest(t *testing.T) {
	content, err := os.ReadFile(root + "/dist/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := objects{}
	want.add(t, "dist/install.yaml", content)
	if diff := cmp.Diff(want, defaults(t)); diff != "" {
		t.Errorf("the chart is not dist/install.yaml (-want +got):\n%s", diff)
	}
}

// TestWithoutView: view.enabled is what the kustomize component config/view brings.
func TestWithoutView(t *testing.T) {
	content, err := os.ReadFile(root + "/config/default/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kustomization := map[string]any{}
	if err := yaml.Unmarshal(content, &kustomization); err != nil {
		t.Fatal(err)
	}
	// kustomize takes no absolute paths.
	dir := t.TempDir()
	config, err := filepath.Abs(root + "/config/default")
	if err != nil {
		t.Fatal(err)
	}
	for i, resource := range kustomization["resources"].([]any) {
		kustomization["resources"].([]any)[i], err = filepath.Rel(dir, filepath.Join(config, resource.(string)))
		if err != nil {
			t.Fatal(err)
		}
	}
	if components := kustomization["components"]; !cmp.Equal(components, []any{"../view"}) {
		t.Fatalf("config/default has the components %v, and this test knows ../view", components)
	}
	delete(kustomization, "components")
	if content, err = yaml.Marshal(kustomization); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/kustomization.yaml", content, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+filepath.Join(config, "../../hack/tools/go.mod"), "kustomize", "build", dir)
	build.Dir, build.Stderr = config, os.Stderr
	manifest, err := build.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := objects{}
	want.add(t, "config without view", manifest)
	got, _, err := template(t, "default", "view: {enabled: false}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const (
	managerPod = "Deployment/tidewaiter-manager spec.template.spec."
	gatewayPod = "Deployment/tidewaiter-gateway spec.template.spec."
	someSecret = `"url-of-postgres"`
	digest     = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// changes lists values and all that each of them changes, leaf by leaf.
func changes() map[string][]string {
	image := func(image string) []string {
		return []string{
			gatewayPod + `containers.0.image: "tidewaiter:0.1.0" -> "` + image + `"`,
			managerPod + `containers.0.args.0: "--image=tidewaiter:0.1.0" -> "--image=` + image + `"`,
			managerPod + `containers.0.image: "tidewaiter:0.1.0" -> "` + image + `"`,
		}
	}
	both := func(change string) []string { return []string{gatewayPod + change, managerPod + change} }
	all := map[string][]string{
		"image: {repository: registry.example.com/team/tidewaiter}": image("registry.example.com/team/tidewaiter:0.1.0"),
		"image: {tag: 9.8.7}":              image("tidewaiter:9.8.7"),
		"image: {digest: " + digest + "}":  image("tidewaiter:0.1.0@" + digest),
		"image: {pullPolicy: Always}":      both(`containers.0.imagePullPolicy: nothing -> "Always"`),
		"imagePullSecrets: [{name: pull}]": both(`imagePullSecrets.0.name: nothing -> "pull"`),
		"log: {level: 1}": {
			gatewayPod + `containers.0.args.1: nothing -> "--log-level=1"`,
			managerPod + `containers.0.args.3: nothing -> "--log-level=1"`,
		},
		"log: {format: text}": {
			gatewayPod + `containers.0.args.1: nothing -> "--log-format=text"`,
			managerPod + `containers.0.args.3: nothing -> "--log-format=text"`,
		},
		"controller: {userNamespaces: false}":     {managerPod + `containers.0.args.3: nothing -> "--user-namespaces=false"`},
		"controller: {userNamespaces: true}":      {managerPod + `containers.0.args.3: nothing -> "--user-namespaces=true"`},
		"controller: {extraArgs: [--a=b, --c=d]}": {managerPod + `containers.0.args.3: nothing -> "--a=b"`, managerPod + `containers.0.args.4: nothing -> "--c=d"`},
		"gateway: {extraArgs: [--a=b]}":           {gatewayPod + `containers.0.args.1: nothing -> "--a=b"`},
		"controller: {replicas: 3}":               {`Deployment/tidewaiter-manager spec.replicas: 2 -> 3`},
		"gateway: {replicas: 2, ledger: {postgresSecretName: url-of-postgres}}": {
			`Deployment/tidewaiter-gateway spec.replicas: 1 -> 2`,
			gatewayPod + `volumes.0.secret.optional: true -> false`,
			gatewayPod + `volumes.0.secret.secretName: "tidewaiter-ledger" -> ` + someSecret,
			gatewayPod + `volumes.1.emptyDir: nothing -> {}`,
			gatewayPod + `volumes.1.persistentVolumeClaim.claimName: "tidewaiter-ledger" -> nothing`,
			`PersistentVolumeClaim/tidewaiter-ledger: removed`,
		},
		"gateway: {ledger: {maxBytes: 5000000000}}":               {gatewayPod + `containers.0.args.1: nothing -> "--ledger-size=5000000000"`},
		"gateway: {ledger: {volume: {size: 20Gi}}}":               {`PersistentVolumeClaim/tidewaiter-ledger spec.resources.requests.storage: "5Gi" -> "20Gi"`},
		"gateway: {ledger: {volume: {storageClassName: fast}}}":   {`PersistentVolumeClaim/tidewaiter-ledger spec.storageClassName: nothing -> "fast"`},
		"controller: {podDisruptionBudget: {enabled: false}}":     {`PodDisruptionBudget/tidewaiter-manager: removed`},
		"gateway: {podDisruptionBudget: {enabled: false}}":        {`PodDisruptionBudget/tidewaiter-gateway: removed`},
		"controller: {podSecurityContext: {runAsUser: 7}}":        {managerPod + `securityContext.runAsUser: 65532 -> 7`},
		"gateway: {podSecurityContext: {runAsUser: null}}":        {gatewayPod + `securityContext.runAsUser: 65532 -> nothing`},
		"controller: {securityContext: {runAsUser: 7}}":           {managerPod + `containers.0.securityContext.runAsUser: nothing -> 7`},
		"gateway: {securityContext: {runAsUser: 7}}":              {gatewayPod + `containers.0.securityContext.runAsUser: nothing -> 7`},
		"controller: {resources: {limits: {memory: 1Gi}}}":        {managerPod + `containers.0.resources.limits.memory: "512Mi" -> "1Gi"`},
		"gateway: {resources: {requests: {cpu: 1}}}":              {gatewayPod + `containers.0.resources.requests.cpu: "50m" -> 1`},
		"crds: {install: false}":                                  eachCRD(": removed"),
		"crds: {keep: true}":                                      eachCRD(` metadata.annotations.helm.sh/resource-policy: nothing -> "keep"`),
		"view: {enabled: false}":                                  withoutView(),
		"networkPolicy: {enabled: false}":                         {`NetworkPolicy/default-deny-ingress: removed`, `NetworkPolicy/tidewaiter-gateway: removed`, `NetworkPolicy/tidewaiter-manager: removed`, `NetworkPolicy/tidewaiter-view: removed`},
		"metrics: {serviceMonitor: {enabled: true}}":              {`ServiceMonitor/tidewaiter-gateway: added`, `ServiceMonitor/tidewaiter: added`},
		"metrics: {prometheusRule: {enabled: true}}":              {`PrometheusRule/tidewaiter: added`},
		"metrics: {grafanaDashboard: {enabled: true}}":            {`ConfigMap/tidewaiter-dashboard: added`},
		"metrics: {serviceMonitor: {interval: 30s}}":              nil,
		"metrics: {serviceMonitor: {additionalLabels: {a: b}}}":   nil,
		"metrics: {prometheusRule: {additionalLabels: {a: b}}}":   nil,
		"metrics: {prometheusRule: {interval: 2m}}":               nil,
		"metrics: {grafanaDashboard: {additionalLabels: {a: b}}}": nil,
	}
	for name, pod := range map[string]string{"controller": managerPod, "gateway": gatewayPod} {
		for value, want := range map[string]string{
			"{priorityClassName: high}":                                      `priorityClassName: nothing -> "high"`,
			"{nodeSelector: {pool: system}}":                                 `nodeSelector.pool: nothing -> "system"`,
			"{tolerations: [{operator: Exists}]}":                            `tolerations.0.operator: nothing -> "Exists"`,
			"{affinity: {nodeAffinity: {a: b}}}":                             `affinity.nodeAffinity.a: nothing -> "b"`,
			"{topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone}]}": "",
		} {
			if want != "" {
				all[name+": "+value] = []string{pod + want}
				continue
			}
			component := map[string]string{"controller": "manager", "gateway": "gateway"}[name]
			all[name+": "+value] = []string{
				pod + `topologySpreadConstraints.0.labelSelector.matchLabels.app.kubernetes.io/component: "` + component + `" -> nothing`,
				pod + `topologySpreadConstraints.0.labelSelector.matchLabels.app.kubernetes.io/name: "tidewaiter" -> nothing`,
				pod + `topologySpreadConstraints.0.topologyKey: "kubernetes.io/hostname" -> "zone"`,
				pod + `topologySpreadConstraints.0.whenUnsatisfiable: "ScheduleAnyway" -> nothing`,
			}
		}
	}
	return all
}

func eachCRD(change string) []string {
	var all []string
	for _, kind := range []string{"checkpoints", "features", "supervisorpolicies", "templates"} {
		all = append(all, "CustomResourceDefinition/"+kind+".tidewaiter.dev"+change)
	}
	return all
}

func withoutView() []string {
	return []string{
		`APIService/v1alpha1.view.tidewaiter.dev: removed`,
		`ClusterRole/tidewaiter-view-registration: removed`,
		`ClusterRoleBinding/tidewaiter-view-registration: removed`,
		managerPod + `containers.0.args.2: "--view-bind-address=:8446" -> nothing`,
		managerPod + `containers.0.ports.3.containerPort: 8446 -> nothing`,
		managerPod + `containers.0.ports.3.name: "view" -> nothing`,
		`NetworkPolicy/tidewaiter-view: removed`,
		`RoleBinding/tidewaiter-view-authentication-reader: removed`,
		`Service/tidewaiter-view: removed`,
	}
}

// TestValues: each value changes what it should, and nothing else. A value that no case sets is an error.
func TestValues(t *testing.T) {
	standard := defaults(t)
	set := map[string]bool{}
	for values, want := range changes() {
		mark(t, set, values)
		got, _, err := template(t, "default", values)
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), compare(standard, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", values, diff)
		}
	}
	for _, name := range leaves(t) {
		if !set[name] {
			t.Errorf("no case sets %s", name)
		}
	}
}

// TestMonitoring: what the parts for Prometheus and Grafana are like, and what their values change in them.
func TestMonitoring(t *testing.T) {
	const on = "metrics: {serviceMonitor: {enabled: true%s}, prometheusRule: {enabled: true%s}, grafanaDashboard: {enabled: true%s}}"
	plain, _, err := template(t, "default", fmt.Sprintf(on, "", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	config := objects{}
	for _, name := range []string{"servicemonitor.yaml", "prometheusrule.yaml"} {
		content, err := os.ReadFile(root + "/config/prometheus/" + name)
		if err != nil {
			t.Fatal(err)
		}
		config.add(t, name, content)
	}
	for id, want := range config {
		if diff := cmp.Diff(want, plain[id]); diff != "" {
			t.Errorf("%s is not that of config/prometheus (-want +got):\n%s", id, diff)
		}
	}
	dashboard, err := os.ReadFile(root + "/config/prometheus/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	data := plain["ConfigMap/tidewaiter-dashboard"]["data"].(map[string]any)
	if err := json.Unmarshal(dashboard, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(data["tidewaiter.json"].(string)), &got); err != nil || !cmp.Equal(want, got) {
		t.Errorf("the dashboard is not that of config/prometheus (%v): %s", err, cmp.Diff(want, got))
	}

	changed, _, err := template(t, "default", fmt.Sprintf(on, ", interval: 30s, additionalLabels: {a: b}", ", interval: 2m, additionalLabels: {a: b}", ", additionalLabels: {a: b}"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		`ConfigMap/tidewaiter-dashboard metadata.labels.a: nothing -> "b"`,
		`PrometheusRule/tidewaiter metadata.labels.a: nothing -> "b"`,
		`PrometheusRule/tidewaiter spec.groups.0.interval: nothing -> "2m"`,
		`ServiceMonitor/tidewaiter metadata.labels.a: nothing -> "b"`,
		`ServiceMonitor/tidewaiter spec.endpoints.0.interval: nothing -> "30s"`,
		`ServiceMonitor/tidewaiter-gateway metadata.labels.a: nothing -> "b"`,
		`ServiceMonitor/tidewaiter-gateway spec.endpoints.0.interval: nothing -> "30s"`,
	}, compare(plain, changed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNamespace: a release in tidewaiter-system finds its namespace, and brings none.
func TestNamespace(t *testing.T) {
	got, text, err := template(t, "tidewaiter-system", "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Namespace/tidewaiter-system: removed"}, compare(defaults(t), got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(text, "kubectl label --overwrite namespace tidewaiter-system") {
		t.Errorf("the notes do not say which labels the namespace needs:\n%s", text)
	}
}

// TestNotes: the notes have the next three commands.
func TestNotes(t *testing.T) {
	_, text, err := template(t, "default", "image: {tag: 9.8.7}")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(text, "\n  kubectl "); got != 3 || !strings.Contains(text, "Tidewaiter 9.8.7 is in") || strings.Contains(text, "kubectl label") {
		t.Errorf("the notes have %d commands:\n%s", got, text)
	}
}

// TestRefused: values that are unknown, or that are of the wrong type, are refused with their names.
func TestRefused(t *testing.T) {
	for values, want := range map[string]string{
		"replicas: 2":                                  "replicas",
		"controller: {replica: 2}":                     "replica",
		"controller: {replicas: two}":                  "/controller/replicas",
		"controller: {replicas: 0}":                    "/controller/replicas",
		"controller: {userNamespaces: maybe}":          "/controller/userNamespaces",
		"controller: {extraArgs: --a}":                 "/controller/extraArgs",
		"controller: {nodeSelector: {gpu: 1}}":         "/controller/nodeSelector/gpu",
		"image: registry.example.com/tidewaiter:1":     "/image",
		"image: {digest: abc}":                         "/image/digest",
		"image: {pullPolicy: Sometimes}":               "/image/pullPolicy",
		"image: {repository: ''}":                      "/image/repository",
		"imagePullSecrets: [pull]":                     "/imagePullSecrets/0",
		"imagePullSecrets: [{key: pull}]":              "/imagePullSecrets/0",
		"log: {format: xml}":                           "/log/format",
		"crds: {keep: 'yes'}":                          "/crds/keep",
		"gateway: {ledger: {maxBytes: 5Gi}}":           "/gateway/ledger/maxBytes",
		"metrics: {serviceMonitor: {interval: often}}": "/metrics/serviceMonitor/interval",
		"metrics: {serviceMonitor: {additional: yes}}": "additional",
		"metrics: {prometheusRule: {interval: often}}": "/metrics/prometheusRule/interval",
		"gateway: {replicas: 2}":                       "gateway.ledger.postgresSecretName",
	} {
		if _, _, err := template(t, "default", values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", values, err, want)
		}
	}
	if _, _, err := template(t, "default", "global: {a: b}"); err != nil {
		t.Errorf("values of a chart that has this one as a part are refused: %v", err)
	}
}

// TestKubernetesVersion: Helm refuses the versions of Kubernetes that preflight refuses, and takes the versions of cloud providers.
func TestKubernetesVersion(t *testing.T) {
	helm, err := exec.CommandContext(t.Context(), "go", "tool", "-n", "helm").Output()
	if err != nil {
		t.Fatal(err)
	}
	refused := "chart requires kubeVersion: " + load(t).Metadata.KubeVersion + " which is incompatible with Kubernetes v"
	for version, want := range map[string]string{
		"1.33.9": refused + "1.33.9", "1.33.9-gke.1": refused + "1.33.9-gke.1",
		"1.34.0-gke.1": "", "1.36.2": "", "1.37.0": "",
	} {
		out, err := exec.CommandContext(t.Context(), strings.TrimSpace(string(helm)), "template", "tidewaiter", chartDir, "--kube-version="+version).CombinedOutput()
		if (err != nil) != (want != "") || !strings.Contains(string(out), want) {
			t.Errorf("Kubernetes %s: %v, want %q:\n%.500s", version, err, want, out)
		}
	}
}

// TestLint is `helm lint --strict`.
func TestLint(t *testing.T) {
	for _, m := range lint.RunAll(chartDir, nil, "default").Messages {
		if m.Severity > support.InfoSev {
			t.Error(m)
		}
	}
}

// compare lists what differs between objects, leaf by leaf.
func compare(before, after objects) []string {
	var different []string
	for id := range maps.Keys(before) {
		if after[id] == nil {
			different = append(different, id+": removed")
		}
	}
	for id, object := range after {
		if before[id] == nil {
			different = append(different, id+": added")
			continue
		}
		old, now := map[string]string{}, map[string]string{}
		flatten(old, "", before[id])
		flatten(now, "", object)
		for path, leaf := range old {
			if now[path] == "" {
				different = append(different, fmt.Sprintf("%s %s: %s -> nothing", id, path, leaf))
			}
		}
		for path, leaf := range now {
			switch was := old[path]; was {
			case leaf:
			case "":
				different = append(different, fmt.Sprintf("%s %s: nothing -> %s", id, path, leaf))
			default:
				different = append(different, fmt.Sprintf("%s %s: %s -> %s", id, path, was, leaf))
			}
		}
	}
	slices.Sort(different)
	return different
}

// flatten gives the JSON of each leaf below a part.
func flatten(into map[string]string, path string, part any) {
	below := func(step string) string { return strings.TrimPrefix(path+"."+step, ".") }
	switch p := part.(type) {
	case map[string]any:
		for name, field := range p {
			flatten(into, below(name), field)
		}
		if len(p) > 0 {
			return
		}
	case []any:
		for i, element := range p {
			flatten(into, below(fmt.Sprint(i)), element)
		}
		if len(p) > 0 {
			return
		}
	}
	content, err := json.Marshal(part)
	if err != nil {
		panic(err) // it has been read from YAML
	}
	into[path] = string(content)
}

// leaves are the names of all values, from the schema.
func leaves(t *testing.T) []string {
	t.Helper()
	var top map[string]any
	if err := json.Unmarshal(load(t).Schema, &top); err != nil {
		t.Fatal(err)
	}
	var all []string
	var walk func(string, map[string]any)
	walk = func(path string, of map[string]any) {
		properties, _ := of["properties"].(map[string]any)
		for name, below := range properties {
			if _, isLeaf := below.(map[string]any)["default"]; isLeaf {
				all = append(all, strings.TrimPrefix(path+"."+name, "."))
			}
			walk(path+"."+name, below.(map[string]any))
		}
	}
	walk("", top)
	slices.Sort(all)
	return all
}

// mark the values that a case sets, with all that they are part of.
func mark(t *testing.T, set map[string]bool, values string) {
	t.Helper()
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	var walk func(string, any)
	walk = func(path string, of any) {
		set[path] = true
		below, _ := of.(map[string]any)
		for name, part := range below {
			walk(strings.TrimPrefix(path+"."+name, "."), part)
		}
	}
	walk("", given)
}
