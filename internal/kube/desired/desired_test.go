// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	podpolicy "k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/isolation"
	"github.com/tidewaiter/tidewaiter/internal/core/lifecycle"
	"github.com/tidewaiter/tidewaiter/internal/core/naming"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/kube/networkpolicy"
)

var update = flag.Bool("update", false, "write the golden files")

var options = Options{
	SystemNamespace: "tidewaiter-system", Image: "example.com/tidewaiter:1", UserNamespaces: true,
	Intake: netip.MustParseAddr("10.96.0.10"), Gateway: netip.MustParseAddr("10.96.0.11"),
}

// everything is a Feature with every field that reaches the pod.
func everything() *v1alpha1.Feature {
	return &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: "shop", UID: "uid-1", Labels: map[string]string{"team": "web"}},
		Spec: v1alpha1.FeatureSpec{
			Prompt: "Add a login page.",
			Repository: v1alpha1.Repository{
				URL: "https://git.example.com/shop.git", CredentialsSecretRef: &v1alpha1.SecretRef{Name: "shop-git"},
			},
			Agent: v1alpha1.Agent{
				Runtime: "command", Image: "example.com/agent:1", Command: []string{"work"}, Args: []string{"hard"},
				Env:              []v1alpha1.EnvVar{{Name: "COLOUR", Value: "blue"}},
				RuntimeClassName: "gvisor", RunAsUser: ptr.To[int64](2000),
			},
			Workspace: &v1alpha1.Workspace{Size: ptr.To(resource.MustParse("2Gi")), StorageClassName: ptr.To("fast")},
		},
	}
}

// everyPlace has every value that a policy in effect has of pods.
var everyPlace = policy.Pod{
	NodeSelector: map[string]string{"example.com/pool": "agents"}, PriorityClass: "batch", PullSecrets: []string{"mirror", "shop-registry"},
	Tolerations: []policy.Toleration{
		{Key: "example.com/agents", Operator: "Exists", Effect: "NoSchedule"},
		{Key: "example.com/spot", Operator: "Equal", Value: "yes", Effect: "NoExecute", Seconds: policy.Seconds{Set: true}},
	},
	Spread:   []policy.Spread{{Key: "topology.kubernetes.io/zone", Unsatisfiable: "ScheduleAnyway", MaxSkew: 1}},
	Limits:   map[string]policy.Quantity{"memory": {Text: "1Gi"}},
	Requests: map[string]policy.Quantity{"cpu": {Text: "500m"}},
}

// least is a Feature that says no more than it must.
func least() *v1alpha1.Feature {
	return &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: "shop", UID: "uid-2"},
		Spec: v1alpha1.FeatureSpec{
			Prompt:     "Do it.",
			Repository: v1alpha1.Repository{URL: "https://git.example.com/shop.git"},
			Agent:      v1alpha1.Agent{Runtime: "command", Image: "example.com/agent:1", Command: []string{"work"}},
		},
	}
}

// builtIn is a Feature whose agent is a program of Tidewaiter's own image.
func builtIn() *v1alpha1.Feature {
	f := least()
	f.Spec.Agent = v1alpha1.Agent{Runtime: "worker"}
	return f
}

func ephemeral() *v1alpha1.Feature {
	f := least()
	f.Spec.Workspace = &v1alpha1.Workspace{Size: ptr.To(resource.MustParse("64Mi")), Ephemeral: true}
	return f
}

func TestGolden(t *testing.T) {
	placed := options
	placed.Pod = everyPlace
	plain := options
	plain.UserNamespaces = false
	plain.Intake, plain.Gateway = netip.MustParseAddr("fd00::10"), netip.MustParseAddr("fd00::11")
	speaking := options
	speaking.Dialect, speaking.ContextWindow = "openai-chat", 64_000
	tests := map[string][]any{
		"job-agent-everything":    {Job(everything(), lifecycle.Start{Attempt: 3, Run: lifecycle.RunAgent, Mode: policy.ModeInteractive}, placed)},
		"job-gate-everything":     {Job(everything(), lifecycle.Start{Attempt: 5, Run: lifecycle.RunGate, Gate: lifecycle.Gate{Sum: "5c0ffee", Image: "registry.example.com/license-check:3"}}, placed)},
		"job-gate-least":          {Job(least(), lifecycle.Start{Attempt: 2, Run: lifecycle.RunGate, Gate: lifecycle.Gate{Sum: "5c0ffee"}}, options)},
		"job-seal-everything":     {Job(everything(), lifecycle.Start{Attempt: 4, Run: lifecycle.RunSeal}, placed)},
		"job-agent-least":         {Job(least(), lifecycle.Start{Attempt: 1, Run: lifecycle.RunAgent, Mode: policy.ModeInteractive}, plain)},
		"job-agent-deterministic": {Job(least(), lifecycle.Start{Attempt: 1, Run: lifecycle.RunAgent, Mode: policy.ModeDeterministic}, options)},
		"job-agent-worker":        {Job(builtIn(), lifecycle.Start{Attempt: 1, Run: lifecycle.RunAgent, Mode: policy.ModeDeterministic}, speaking)},
		"job-agent-ephemeral":     {Job(ephemeral(), lifecycle.Start{Attempt: 1, Run: lifecycle.RunAgent, Mode: policy.ModeInteractive}, options)},
		"claims-everything":       anys(Claims(everything())),
		"claims-least":            anys(Claims(least())),
		"claims-ephemeral":        anys(Claims(ephemeral())),
		"job-inquiry":             {InquiryJob(everything(), "0123456789abcdef", `{"id":"0123456789abcdef","kind":"diff"}`, placed)},
		"network-policy":          {NetworkPolicy(least(), "tidewaiter-system")},
		"ca-bundle":               {CABundle("shop", []byte("-----BEGIN CERTIFICATE-----\n"))},
	}
	for name, objects := range tests {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			for _, o := range objects {
				text, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n")
				got.Write(text)
			}
			golden(t, filepath.Join("testdata", name+".golden.yaml"), got.Bytes())
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func anys[T any](list []T) []any {
	var out []any
	for _, x := range list {
		out = append(out, x)
	}
	return out
}

// job renders a Job as the API server would read it.
func job(t *testing.T, f *v1alpha1.Feature, run lifecycle.RunKind, o Options) batchv1.Job {
	t.Helper()
	raw, err := json.Marshal(Job(f, lifecycle.Start{Attempt: 1, Run: run, Mode: policy.ModeInteractive}, o))
	if err != nil {
		t.Fatal(err)
	}
	var j batchv1.Job
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&j); err != nil {
		t.Fatal(err)
	}
	return j
}

func TestPodPassesRestricted(t *testing.T) {
	evaluator, err := podpolicy.NewEvaluator(podpolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*v1alpha1.Feature{"everything": everything(), "least": least(), "ephemeral": ephemeral()} {
		for _, run := range []lifecycle.RunKind{lifecycle.RunAgent, lifecycle.RunSeal, lifecycle.RunGate} {
			for _, userNamespaces := range []bool{true, false} {
				o := options
				o.UserNamespaces = userNamespaces
				template := job(t, f, run, o).Spec.Template
				for _, r := range evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &template.ObjectMeta, &template.Spec) {
					if !r.Allowed {
						t.Errorf("%s, %s run, user namespaces %t: %s: %s", name, run, userNamespaces, r.ForbiddenReason, r.ForbiddenDetail)
					}
				}
			}
		}
	}
}

// TestAgentSeesNothingItShouldNot holds for whatever a Feature says, so it looks at mounts and not at golden files.
func TestAgentSeesNothingItShouldNot(t *testing.T) {
	pod := job(t, everything(), lifecycle.RunAgent, options).Spec.Template.Spec
	agent := pod.Containers[0]
	allowed := []string{protocol.WorkspaceDir, protocol.HomeDir, protocol.RunDir, "/tmp"}
	for _, m := range agent.VolumeMounts {
		if !slices.Contains(allowed, m.MountPath) || m.SubPath != "" {
			t.Errorf("the agent has %s of volume %s", m.MountPath, m.Name)
		}
		if m.MountPath == protocol.RunDir && !m.ReadOnly {
			t.Error("the agent can write where its runner is")
		}
	}
	for _, c := range pod.InitContainers {
		for _, m := range c.VolumeMounts {
			if slices.Contains([]string{volumeToken, volumeCA, volumeGit}, m.Name) && !m.ReadOnly {
				t.Errorf("%s can write to %s", c.Name, m.Name)
			}
		}
		if text := strings.Join(append(c.Command, c.Args...), " "); strings.Contains(text, "git.example.com") {
			t.Errorf("%s learns of the work from its arguments: %s", c.Name, text)
		}
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("a service account token is mounted")
	}
	if pod.DNSPolicy != corev1.DNSNone {
		t.Errorf("the pod has DNS: %s", pod.DNSPolicy)
	}
}

// TestGateSeesNothingOfAnAgent: the container of a gate before the delivery has no volume that an agent has written to, and its pod has no claim of
// the Feature but the trusted one.
func TestGateSeesNothingOfAnAgent(t *testing.T) {
	pod := job(t, everything(), lifecycle.RunGate, options).Spec.Template.Spec
	empty := map[string]bool{}
	for _, v := range pod.Volumes {
		empty[v.Name] = v.EmptyDir != nil
		if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName != TrustedClaim("login") {
			t.Errorf("the pod has the claim %s", v.PersistentVolumeClaim.ClaimName)
		}
	}
	if len(pod.Containers) != 1 || pod.Containers[0].Name != "gate" || len(pod.Containers[0].Env) != 0 {
		t.Fatalf("containers: %+v", pod.Containers)
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		if !empty[m.Name] || m.MountPath == protocol.HomeDir || m.MountPath == protocol.RunDir && !m.ReadOnly {
			t.Errorf("the gate has %s of volume %s", m.MountPath, m.Name)
		}
	}
}

func TestJobIsNeverRetriedByItsController(t *testing.T) {
	spec := job(t, least(), lifecycle.RunAgent, options).Spec
	if ptr.Deref(spec.BackoffLimit, 6) != 0 || spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("another pod may follow: backoffLimit %v, restartPolicy %s", spec.BackoffLimit, spec.Template.Spec.RestartPolicy)
	}
	if ptr.Deref(spec.PodReplacementPolicy, "") != batchv1.Failed {
		t.Error("a pod may be replaced while it is still ending")
	}
	if spec.TTLSecondsAfterFinished != nil {
		t.Error("the Job goes by itself: its absence would look like a loss")
	}
}

func TestNamesFitTheirKinds(t *testing.T) {
	name := strings.Repeat("a", 52)
	// Pods carry the name of their Job as a label value. Their own names are cut by the API server, at the end.
	if got := len(naming.Job(name, math.MaxInt64)); got > 63 {
		t.Errorf("a Job's name has %d bytes", got)
	}
	if got := len(TrustedClaim(name)); got > 63 {
		t.Errorf("a claim's name has %d bytes", got)
	}
}

// TestIsolationIsWhatTheNetworkPolicyAllows: other network policies are compared with what is really applied.
func TestIsolationIsWhatTheNetworkPolicyAllows(t *testing.T) {
	raw, err := json.Marshal(NetworkPolicy(least(), "tidewaiter-system"))
	if err != nil {
		t.Fatal(err)
	}
	var applied networkingv1.NetworkPolicy
	if err := json.Unmarshal(raw, &applied); err != nil {
		t.Fatal(err)
	}
	got := networkpolicy.Values(&applied)
	got.Name, got.Pods = "", isolation.Selector{}
	if diff := cmp.Diff(*Isolation("tidewaiter-system"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPodLabelsAreThoseOfTheJob: which network policies select a pod is decided before the Job controller has made it.
func TestPodLabelsAreThoseOfTheJob(t *testing.T) {
	start := lifecycle.Start{Attempt: 3, Run: lifecycle.RunAgent, Mode: "Interactive"}
	want := maps.Clone(Job(least(), start, options).Spec.Template.Labels)
	for _, name := range []string{"batch.kubernetes.io/job-name", "job-name"} {
		want[name] = naming.Job(least().Name, 3)
	}
	for _, name := range []string{"batch.kubernetes.io/controller-uid", "controller-uid"} {
		want[name] = "u-1"
	}
	if diff := cmp.Diff(want, PodLabels(least(), start, "u-1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
