// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/test/cluster"
)

// flip changes one bit in the middle of the commit $0 of the trusted repository, or of a pack where it is packed.
const flip = `p=/trusted/repo.git/objects/${0:0:2}/${0:2}; [ -e "$p" ] || p=$(ls /trusted/repo.git/objects/pack/*.pack | head -n 1)
chmod u+w "$p"; n=$(( $(stat -c %s "$p") / 2 )); b=$(od -An -tu1 -j$n -N1 "$p")
printf "\\x$(printf %x $((b ^ 1)))" | dd of="$p" bs=1 seek=$n conv=notrunc status=none`

// TestAudit reads the record of a Feature on its living pod and after it, finds a flipped bit, and counts its checkpoints.
func TestAudit(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 5*time.Minute)
	p.feature("audited", `echo "<form>" > web/login.html; until [ -e web/go ]; do sleep 0.2; done; rm web/go; echo "</form>" >> web/login.html`,
		func(s *v1alpha1.FeatureSpec) {
			s.Execution.Checkpoint.Interval = &metav1.Duration{Duration: 2 * time.Second}
		})
	f := p.until("audited", "a promoted checkpoint", func(f *v1alpha1.Feature) bool { return f.Status.Checkpoints.Valid > 0 })
	pod, first := f.Status.Job.PodName, p.checkpoints("audited")[0]

	p.wantSaid(pod, "whole: ", "watchdog", "verify", "--commit", first.Spec.Commit)
	p.wantSaid(pod, "\n+<form>\n", "watchdog", "diff", first.Name)
	p.wantSaid(pod, `"file_path":"web/login.html"`, "watchdog", "log", "--files")
	p.vandal()
	p.damage(first.Spec.Commit)
	out, _, err := k8s.Exec(p.ctx, p.project, pod, "watchdog", nil, "watchdog", "verify")
	if err == nil || !strings.Contains(out, "BROKEN at ") {
		t.Errorf("a flipped bit is not found on the living pod (%v): %s", err, out)
	}
	p.damage(first.Spec.Commit) // back
	p.wantSaid(pod, "whole: ", "watchdog", "verify")
	_, _, err = k8s.Exec(p.ctx, p.project, pod, "agent", nil, "touch", protocol.WorkspaceDir+"/web/go")
	p.must(err, "let the agent go on")
	f = p.phase("audited", v1alpha1.PhaseDelivered, v1alpha1.ReasonDelivered)

	if got := p.audit("sound", "verify"); !strings.Contains(got, "whole: ") || !strings.Contains(got, f.Status.Head) {
		t.Errorf("the record that the pod left: %s", got)
	}
	p.damage(first.Spec.Commit)
	if got := p.audit("damaged", "verify"); !strings.Contains(got, "BROKEN at ") {
		t.Errorf("a flipped bit is not found after the pod: %s", got)
	}
	p.wantMetrics(f)
}

// wantSaid runs a command in the watchdog's container.
func (p *place) wantSaid(pod, want string, command ...string) {
	p.Helper()
	out, _, err := k8s.Exec(p.ctx, p.project, pod, "watchdog", nil, command...)
	p.must(err, "ask the watchdog")
	if !strings.Contains(out, want) {
		p.Errorf("%q says %q, want something with %q", command, out, want)
	}
}

// auditPod is docs/audit-pod.yaml for a Feature, as a reader of it would fill it in.
func (p *place) auditPod(name, args string) *corev1.Pod {
	p.Helper()
	text, err := os.ReadFile("../../docs/audit-pod.yaml")
	p.must(err, "read the page")
	manager := p.podsOf("manager")[0].Spec.Containers[0].Image
	filled := strings.NewReplacer("<feature>", "audited", "<image>", manager, "<args>", args).Replace(string(text))
	pod := &corev1.Pod{}
	p.must(yaml.Unmarshal([]byte(filled), pod), "read the pod")
	pod.Namespace, pod.Name = p.project, name
	return pod
}

// audit runs the pod to its end and gives what it printed.
func (p *place) audit(name, args string) string {
	p.Helper()
	pod := p.auditPod(name, args)
	p.must(k8s.Create(p.ctx, pod), "make the pod")
	p.must(cluster.Until(p.ctx, "pod "+name+" to end", func(ctx context.Context) (bool, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed, err
	}), "wait")
	out, err := k8s.Clientset.CoreV1().Pods(p.project).GetLogs(name, &corev1.PodLogOptions{}).DoRaw(p.ctx)
	p.must(err, "read the log")
	return string(out)
}

// vandal is a pod that can write a Feature's trusted volume, as somebody could who owns the project.
func (p *place) vandal() {
	p.Helper()
	pod := p.auditPod("vandal", "verify")
	c := &pod.Spec.Containers[0]
	c.Image, c.Command = k8s.Image, []string{"sleep", "600"}
	c.VolumeMounts[0].ReadOnly = false
	p.must(k8s.Create(p.ctx, pod), "make the vandal")
	p.must(cluster.Until(p.ctx, "the vandal to run", func(ctx context.Context) (bool, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == corev1.PodRunning, err
	}), "wait")
}

func (p *place) damage(commit string) {
	p.Helper()
	_, _, err := k8s.Exec(p.ctx, p.project, "vandal", "audit", nil, "bash", "-euo", "pipefail", "-c", flip, commit)
	p.must(err, "flip a bit")
}

// podsOf a component of Tidewaiter.
func (p *place) podsOf(component string) []corev1.Pod {
	p.Helper()
	pods, err := k8s.Clientset.CoreV1().Pods(cluster.SystemNamespace).List(p.ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=" + component})
	p.must(err, "find the pods")
	if len(pods.Items) == 0 {
		p.Fatalf("there is no pod of the %s", component)
	}
	return pods.Items
}

// wantMetrics adds up what the replicas have counted of the project's checkpoints. Manager and gateway give metrics to those who may have them.
func (p *place) wantMetrics(f *v1alpha1.Feature) {
	p.Helper()
	token, err := k8s.Scraper(p.ctx, p.project)
	p.must(err, "let a scraper read metrics")
	total := int64(0)
	given := func(pod, service string) string {
		if code, body := p.metrics(pod, service, ""); code != http.StatusUnauthorized || strings.Contains(body, "tidewaiter_") {
			p.Errorf("%s gives metrics without a token: %d", pod, code)
		}
		code, body := p.metrics(pod, service, token)
		if code != http.StatusOK {
			p.Fatalf("%s gives no metrics: %d %s", pod, code, body)
		}
		return body
	}
	for _, g := range p.podsOf("gateway") {
		if body := given(g.Name, cluster.GatewayCertificate); !strings.Contains(body, "tidewaiter_backends_broken 0") {
			p.Errorf("%s says nothing of its backends", g.Name)
		}
	}
	for _, m := range p.podsOf("manager") {
		body := given(m.Name, cluster.ManagerCertificate)
		counted := regexp.MustCompile(`(?m)^tidewaiter_checkpoints_total\{[^}]*namespace="` + p.project + `"[^}]*\} (\d+)$`)
		for _, line := range counted.FindAllStringSubmatch(body, -1) {
			n, err := strconv.ParseInt(line[1], 10, 64)
			p.must(err, "read a metric")
			total += n
		}
		if want := `tidewaiter_features{namespace="` + p.project + `",phase="Delivered"} 1`; !strings.Contains(body, want) {
			p.Errorf("%s does not say %s", m.Name, want)
		}
	}
	if total != f.Status.Checkpoints.Total {
		p.Errorf("%d checkpoints were counted, and there were %d", total, f.Status.Checkpoints.Total)
	}
}

// metrics asks a replica for them.
func (p *place) metrics(pod, service, token string) (int, string) {
	p.Helper()
	code, body, err := k8s.Metrics(p.ctx, pod, service, token)
	p.must(err, "ask for metrics")
	return code, body
}
